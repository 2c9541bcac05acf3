# SPDX-License-Identifier: Apache-2.0
"""What guides.py makes of a page: it runs all commands in one bash, and finds each line that is not as shown."""

import tempfile
import unittest
from pathlib import Path

import guides

PAGE = """# A page
<!-- needs: sh -->
<!-- run: hidden=5 -->

```text title="folder/file"
one
two
```

```console
$ cat folder/file
one
two
$ echo $hidden words, \\
goes on
5 words, goes on
$ seq 9
1
...
9
```

```sh
$ not run
```
"""


class Pages(unittest.TestCase):
    def seen(self, text: str) -> list[list[str]]:
        return guides.run(guides.read(text))

    def faults(self, text: str) -> list[str]:
        return guides.differences(guides.read(text), self.seen(text))

    def test_what_is_read(self) -> None:
        page = guides.read(PAGE)
        self.assertEqual(page.needs, ["sh"])
        self.assertEqual(page.files, {"folder/file": "one\ntwo\n"})
        self.assertEqual([one.hidden for one in page.commands], [True, False, False, False])

    def test_a_page_that_is_true(self) -> None:
        self.assertEqual(self.faults(PAGE), [])

    def test_a_page_that_is_false(self) -> None:
        for true, false in (
            ("\none\ntwo\n$", "\none\n$"),
            ("words, goes on\n$", "words\n$"),
            ("9\n```", "8, words\n```"),
        ):
            self.assertEqual(len(self.faults(PAGE.replace(true, false))), 1, false)

    def test_numbers_may_differ_and_amounts_a_little(self) -> None:
        self.assertTrue(guides.agree("pid 17: live  20.1 MiB |▁█|", "pid 4711: live 9.9 MiB | █|"))
        self.assertFalse(guides.agree("live 20.1 MiB", "live 50.0 MiB"))
        self.assertFalse(guides.agree("Rss: 90000 kB", "Rss: 20000 kB"))
        self.assertFalse(guides.agree("rss:105.68M", "rss:12.31M"))
        self.assertFalse(guides.agree("live 20.1 MiB", "dirty 20.1 MiB"))

    def test_a_page_is_written_anew(self) -> None:
        old = PAGE.replace("\none\ntwo\n$", "\nold\n$")
        page = guides.read(old)
        self.assertEqual(guides.rewritten(old, page, guides.run(page)), PAGE)

    def test_what_runs_on_is_ended(self) -> None:
        page = guides.read("```console\n$ (setsid sleep 100 & echo $!)\n1\n```\n")
        ((pid,),) = guides.run(page)
        self.assertFalse(Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text())

    def test_a_command_that_hangs_is_named(self) -> None:
        seen = [["1"]]
        self.assertIn("1 ended", guides.differences(guides.read(PAGE), seen)[0])

    def test_programs_that_are_not_installed(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
            file.write("<!-- needs: sh no-such-program -->\n")
            file.flush()
            self.assertEqual(guides.main([file.name]), guides.SKIPPED)


if __name__ == "__main__":
    unittest.main()
