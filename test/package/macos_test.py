# SPDX-License-Identifier: Apache-2.0
"""The direct API on macOS, as far as it goes without one: for both processors the library is compiled by zig, and a
program of C is linked with it, for which every function that it needs of macOS must be there. Nothing is run. Called by
ctest with the lab's python, which has zig; twenty seconds."""

import struct
import sys
import unittest
from pathlib import Path

from packages import LINES, ROOT, PackageTest, command

try:
    import ziglang
except ImportError:
    print("skipped: zig is not installed")
    sys.exit(77)

ZIG = Path(ziglang.__file__).parent / "zig"
PROGRAM = """
#include <hakozuna/hakozuna.h>
int main(void) { void* block = hz_malloc(100); hz_free(block); return hz_owns(&block) + 0 * FAULT; }
"""
PROCESSORS = {"aarch64": 0x0100000C, "x86_64": 0x01000007}
MACH_O = 0xFEEDFACF


class Macos(PackageTest):
    def test_is_compiled_and_linked(self):
        for processor in PROCESSORS:
            with self.subTest(processor):
                self.compile(processor)
                library = self.scratch / processor / f"libhakozuna-{LINES[0]}-direct.a"
                program = self.link(processor, library)
                magic, kind = struct.unpack("<II", program.read_bytes()[:8])
                self.assertEqual((magic, kind), (MACH_O, PROCESSORS[processor]))
                self.assertIn("undefined symbol", self.link(processor, library, fault="missing_in_macos()", expect=1))

    def compile(self, processor):
        settings = {
            "CMAKE_TOOLCHAIN_FILE": ROOT / "cmake/macos.cmake",
            "HZ_ZIG": ZIG,
            "HZ_MACOS_PROCESSOR": processor,
            "HZ_LINES_ENABLED": ";".join(LINES),
            "HZ_WERROR": "ON",
            "CMAKE_BUILD_TYPE": "RelWithDebInfo",
            "HZ_BUILD_TESTS": "OFF",
            "HZ_BUILD_BENCH": "OFF",
        }
        words = [f"-D{name}={value}" for name, value in settings.items()]
        command("cmake", "-S", ROOT, "-B", self.scratch / processor, "-G", "Ninja", *words)
        command("cmake", "--build", self.scratch / processor, "--parallel", "2")

    def link(self, processor, library, fault="0", expect=0):
        source, program = self.scratch / "program.c", self.scratch / f"program-{processor}"
        source.write_text(("int missing_in_macos(void);" + PROGRAM).replace("FAULT", fault), encoding="utf-8")
        target = f"{processor}-macos.11.0"
        words = ("cc", "-target", target, "-I", ROOT / "include", source, library, "-o", program)
        said = command(ZIG, *words, expect=expect)
        return said if expect else program


if __name__ == "__main__":
    unittest.main()
