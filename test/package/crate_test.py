# SPDX-License-Identifier: Apache-2.0
"""The Rust crate: what cargo would publish is unpacked, built from the sources that are in it, and runs its own tests
there; clippy, rustfmt and rustdoc have nothing to say. Called by ctest; 15 seconds for line hz7."""

import re
import subprocess
import sys
import unittest

from packages import LINES, ROOT, SKIPPED, VERSION, PackageTest, command, environment, need


class Crate(PackageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tree = cls.copy_tree()
        cls.settings = {"CARGO_TARGET_DIR": cls.scratch / "target", "CARGO_TERM_COLOR": "never"}
        command("cargo", "package", "--no-verify", folder=tree, **cls.settings)
        made = cls.scratch / "target/package" / f"hakozuna-{VERSION}.crate"
        command("tar", "-xf", made, "-C", cls.scratch)
        cls.crate = cls.scratch / f"hakozuna-{VERSION}"

    def cargo(self, *words, **changes):
        return command("cargo", *words, folder=self.crate, **self.settings, **changes)

    def test_what_is_in_it(self):
        parts = {path.name for path in self.crate.iterdir()}
        self.assertLessEqual({"CMakeLists.txt", "Cargo.lock", "Cargo.toml", "LICENSE", "src", "include"}, parts)
        self.assertLessEqual(
            parts & {path.name for path in ROOT.iterdir()},
            {"CMakeLists.txt", "Cargo.lock", "Cargo.toml", "LICENSE", "cmake", "include", "package", "src"},
        )

    def test_a_feature_for_each_line_but_the_default_one(self):
        text = (self.crate / "Cargo.toml").read_text(encoding="utf-8")
        listed = re.search(r"^\[features\]\n((?:\S+ = \[\]\n)+)", text, re.MULTILINE)[1]
        lines = re.findall(
            r"^  (\S+) +\w+ +line/\S+$", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE
        )
        self.assertEqual(re.findall(r"^(\S+) =", listed, re.MULTILINE), lines[1:])

    def test_its_own_tests(self):
        """Those of a line; HZ_STATS shows that the heap served the program, and not the heap of the tests beside it."""
        for line in LINES:
            features = ["--features", line] if line != "hakozuna" else []
            words = ["cargo", "test", "--locked", *features]
            done = subprocess.run(
                words,
                cwd=self.crate,
                env=environment(HZ_STATS=1, HZ_TEST_LINE=line, **self.settings),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            passed = [
                int(number)
                for number in re.findall(
                    r"^test result: ok\. (\d+) passed; 0 failed; 0 ignored", done.stdout, re.MULTILINE
                )
            ]
            self.assertEqual(passed, [0, 3, 4, 5, 2, 3], done.stdout)
            served = re.findall(
                rf"^hz: stats line={line} version={VERSION} .* program=(global|looks|requests|runtimes)-",
                done.stderr,
                re.MULTILINE,
            )
            self.assertEqual(sorted(served), ["global", "looks", "requests", "runtimes"], done.stderr)

    def test_two_lines_are_refused(self):
        told = self.cargo("build", "--features", "hz7,hz8", expect=101)
        self.assertIn("a program has one heap, and the features ask for hz7 and hz8", told)

    def test_clippy(self):
        self.cargo("clippy", "--all-targets", "--", "-D", "warnings", DOCS_RS=1)

    def test_rustfmt(self):
        command("cargo", "fmt", "--check", "--", "--config-path", ROOT / "package/rust/rustfmt.toml", folder=self.crate)

    def test_documentation(self):
        self.cargo("doc", "--no-deps", DOCS_RS=1, RUSTDOCFLAGS="-D warnings")


if __name__ == "__main__":
    need("cmake", "cargo", "cargo-clippy", "cargo-fmt")
    version = tuple(map(int, re.search(r"(\d+)\.(\d+)", command("cargo", "--version")).groups()))
    if version < (1, 70):
        print("skipped: a cargo before 1.70 asks a registry by git")
        sys.exit(SKIPPED)
    unittest.main()
