# SPDX-License-Identifier: Apache-2.0
#
# Plants one violation of each rule of arrows.py in a small tree and sees that exactly it is found, and that the tree
# is clean without.
import tempfile
import unittest
from pathlib import Path

import arrows

HEADER = "// SPDX-License-Identifier: Apache-2.0\n//\n// What it is for.\n"
CLEAN = {
    "base/compiler.hpp": "#if defined(__clang__)\n#endif\n",
    "base/bits.hpp": '#include <cstdint>\n#include "base/compiler.hpp"\n',
    "os/linux.cpp": '#include "base/bits.hpp"\n#ifdef X\n#endif\n',
    "box/front/contract.hpp": '#include "base/bits.hpp"\n',
    "box/front/bins.hpp": '#include "box/front/contract.hpp"\n',
    "box/route/contract.hpp": "",
    "heap/api/heap.hpp": '#include "box/front/contract.hpp"\n#include "hakozuna/hakozuna.h"\n',
    "heap/one_lock/heap.hpp": "struct Heap {\n  static void* take(unsigned n) {\n  }\n};\n",
    "line/one.hpp": '#include "heap/api/heap.hpp"\n#include "box/front/bins.hpp"\n',
    "export/malloc.cpp": "#include HZ_LINE_HEADER\n",
}


class Arrows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        for name, text in CLEAN.items():
            self.write("src/" + name, HEADER + text)
        self.write("doc/line/hz7.md", "`Heap::take` takes.\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def plant(self, name, text):
        self.write("src/" + name, HEADER + text)

    def expect_only(self, *parts):
        found = list(arrows.faults(self.root))
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_clean_tree_passes(self):
        self.assertEqual(list(arrows.faults(self.root)), [])

    def test_empty_tree_fails(self):
        self.assertEqual(list(arrows.faults(self.root / "nowhere")), ["src: no files"])

    def test_every_arrow_upwards_is_found(self):
        homes = ["base/bits.hpp", "os/linux.cpp", "box/front/contract.hpp", "heap/api/heap.hpp", "line/one.hpp",
                 "export/malloc.cpp"]
        for low, user in enumerate(homes):
            for used in homes[low + 1:]:
                with self.subTest(user=user, used=used):
                    self.plant(user, f'#include "{used}"\n')
                    self.expect_only(user + ":4", "must not know")
                    self.plant(user, CLEAN[user])

    def test_floor_above_is_found(self):
        self.plant("heap/process/fork.hpp", "struct Fork {};\n")
        self.plant("heap/spans/discard.hpp", '#include "heap/process/fork.hpp"\n')
        self.expect_only("heap/spans/discard.hpp:4", "heap/spans must not know heap/process")

    def test_folder_without_a_floor(self):
        self.plant("heap/attic/box.hpp", "struct Box {};\n")
        self.expect_only("heap/attic/box.hpp", "is on no floor")

    def test_extension_outside_of_its_list(self):
        for name, home in arrows.EXTENSIONS.items():
            for allowed in (home, arrows.LIST):
                self.plant(allowed + "cpp", f"void {name}::in_child() {{}}\n")
            self.assertEqual(list(arrows.faults(self.root)), [])
            for user in ("heap/process/fork.hpp", "heap/samples/stacks.cpp", "security/seals.hpp", "export/direct.cpp"):
                with self.subTest(name=name, user=user):
                    self.plant(user, f"inline void begin() {{ k{name}; {name}::in_child(); }}\n")
                    self.expect_only(user + ":4", f"names {name}: only {home}*")
                    (self.root / "src" / user).unlink()

    def test_walk_past_a_function(self):
        self.write("doc/line/hz7.md", "`Heap` and what it can take.\n")
        self.expect_only("doc/line/hz7.md", "does not name take of src/heap/one_lock/heap.hpp")

    def test_documents_that_are_too_long(self):
        for name, text, size in (
            ("README.md", "a\n" * 151, "151 lines, not 150"),
            ("doc/results/a.md", "a\n" * 61, "61 lines, not 60"),
            ("doc/guides/a.md", "a\n" * 61, "61 lines, not 60"),
            ("doc/a.svg", "a" * 60_001, "60001 bytes, not 60000"),
        ):
            self.write(name, text)
            self.assertEqual([f"{name}: {size} at most"], list(arrows.faults(self.root)))
            self.write(name, "")

    def test_box_of_another_role(self):
        self.plant("box/front/bins.hpp", '#include "box/route/contract.hpp"\n')
        self.expect_only("box/front/bins.hpp:4", "a box knows")

    def test_relative_path(self):
        self.plant("heap/api/heap.hpp", '#include "../line/one.hpp"\n')
        self.expect_only("heap/api/heap.hpp:4", "no such file")

    def test_angled_include_of_ours(self):
        self.plant("heap/api/heap.hpp", "#include <line/one.hpp>\n")
        self.expect_only("heap/api/heap.hpp:4", "in quotes")

    def test_line_by_macro_outside_of_export(self):
        self.plant("heap/api/heap.hpp", "#include HZ_LINE_HEADER\n")
        self.expect_only("heap/api/heap.hpp:4", "only export")

    def test_base_includes_public_header(self):
        self.plant("base/bits.hpp", '#include "hakozuna/hakozuna.h"\n')
        self.expect_only("base/bits.hpp:4", "depends on nothing")

    def test_conditions(self):
        for condition in ("#if X", "#ifdef X", "# ifndef X", "#elif X"):
            with self.subTest(condition=condition):
                self.plant("heap/api/heap.hpp", condition + "\n")
                self.expect_only("heap/api/heap.hpp:4", "#if outside")

    def test_file_in_no_layer(self):
        self.plant("misc/odds.hpp", "")
        self.expect_only("misc/odds.hpp", "no layer")

    def test_missing_license(self):
        self.write("src/heap/api/heap.hpp", "// What it is for.\n")
        self.expect_only("heap/api/heap.hpp", "SPDX")

    def test_missing_comment(self):
        self.write("src/heap/api/heap.hpp", "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n")
        self.expect_only("heap/api/heap.hpp", "no comment")

    def test_block_comments_are_comments(self):
        self.write("test/good.c", f"/* {arrows.LICENSE}\n *\n * What it is for.\n */\n")
        self.write("test/bad.c", f"/* {arrows.LICENSE} */\nint main(void);\n")
        self.expect_only("test/bad.c", "no comment")

    def test_python_may_use_a_docstring(self):
        license_line = HEADER.splitlines()[0].replace("//", "#") + "\n"
        self.write("bench/good.py", license_line + '"""What it is for."""\n')
        self.write("bench/bad.py", license_line + "import sys\n")
        self.expect_only("bench/bad.py", "no comment")

    def test_missing_license_of_a_script(self):
        self.write("hz", "#!/bin/sh\n# What it is for.\n")
        self.expect_only("hz", "SPDX")


if __name__ == "__main__":
    unittest.main()
