# SPDX-License-Identifier: Apache-2.0
"""The libraries for macOS, as far as it goes without one: for both processors they are compiled by zig, and a program
of C is linked with the direct API, for which every function that it needs of macOS must be there. Of the library that
takes malloc's place the linked file is read: what it exports, what it needs, what runs when it is loaded. Nothing is
run. Called by ctest with the lab's python, which has zig; twenty seconds."""

import re
import struct
import sys
import unittest
from pathlib import Path

from packages import LINES, ROOT, VERSION, PackageTest, command

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
FAULTY = """
#include <stdlib.h>
_Thread_local int number = 1;
void* faulty(void) { return malloc((size_t)++number); }
"""
PROCESSORS = {"aarch64": 0x0100000C, "x86_64": 0x01000007}
MACH_O, LIBRARY = 0xFEEDFACF, 6
# Load commands, kinds of sections, and bits of symbols: <mach-o/loader.h>, <mach-o/nlist.h>.
SYMBOLS, SEGMENT, NEEDS, NAME = 0x2, 0x19, 0xC, 0xD
CONSTRUCTORS, THREAD_LOCAL = (0x9, 0x16), (0x11, 0x12, 0x13, 0x14, 0x15)
PRIVATE, TYPE, EXTERNAL = 0x10, 0x0E, 0x01

# How the zone comes to be the first, and nothing that would call malloc.
ZONE_CALLS = {
    "_malloc_default_purgeable_zone",
    "_malloc_get_all_zones",
    "_malloc_zone_register",
    "_malloc_zone_unregister",
}
MALLOC_FAMILY = re.compile(
    r"^_(malloc|calloc|realloc|free|posix_memalign|aligned_alloc|valloc|strdup|_tlv_bootstrap|_tlv_atexit)$"
)


class MachO:
    """A linked file of 64 bits and one processor."""

    def __init__(self, path):
        data = path.read_bytes()
        self.magic, self.processor, _, self.kind, count, _, _, _ = struct.unpack_from("<8I", data)
        self.name, self.needs, self.sections, self.exports, self.imports = "", [], {}, set(), set()
        at = 32
        for _ in range(count):
            command_kind, size = struct.unpack_from("<II", data, at)
            body = data[at : at + size]
            command_kind &= 0x7FFFFFFF
            if command_kind in (NAME, NEEDS):
                text = body[struct.unpack_from("<I", body, 8)[0] :].split(b"\0")[0].decode()
                if command_kind == NAME:
                    self.name = text
                else:
                    self.needs.append(text)
            elif command_kind == SEGMENT:
                for section in range(struct.unpack_from("<I", body, 64)[0]):
                    name, _, _, length, _, _, _, _, flags = struct.unpack_from("<16s16sQQ5I", body, 72 + 80 * section)
                    self.sections[name.rstrip(b"\0").decode()] = (flags & 0xFF, length)
            elif command_kind == SYMBOLS:
                self.read_symbols(data, *struct.unpack_from("<4I", body, 8))
            at += size

    def read_symbols(self, data, table, count, names, _size):
        for index in range(count):
            name, kind, _, _, _ = struct.unpack_from("<IBBHQ", data, table + 16 * index)
            if kind & EXTERNAL and not kind & 0xE0:
                text = data[names + name : data.index(b"\0", names + name)].decode()
                (self.exports if kind & TYPE and not kind & PRIVATE else self.imports).add(text)

    def of_kind(self, kinds):
        return {name: length for name, (kind, length) in self.sections.items() if kind in kinds}


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
                for line in LINES:
                    self.look_at(self.scratch / processor / f"libhakozuna-{line}.dylib", processor)
                self.assertTrue((self.scratch / processor / "libhakozuna.dylib").exists())

    def test_faults_are_seen(self):
        source, path = self.scratch / "faulty.c", self.scratch / "libfaulty.dylib"
        source.write_text(FAULTY, encoding="utf-8")
        command(ZIG, "cc", "-target", "aarch64-macos.11.0", "-dynamiclib", source, "-o", path)
        library = MachO(path)
        self.assertLessEqual({"_faulty"}, library.exports)
        self.assertEqual(library.of_kind(CONSTRUCTORS), {})
        self.assertNotEqual(library.of_kind(THREAD_LOCAL), {})
        self.assertEqual(sorted(n for n in library.imports if MALLOC_FAMILY.match(n)), ["__tlv_bootstrap", "_malloc"])

    def look_at(self, path, processor):
        library = MachO(path)
        self.assertEqual((library.magic, library.processor, library.kind), (MACH_O, PROCESSORS[processor], LIBRARY))
        self.assertEqual(Path(library.name).name, f"{path.stem}.{VERSION.split('.')[0]}.dylib")
        self.assertEqual(library.needs, ["/usr/lib/libSystem.B.dylib"])
        names = (ROOT / "test/package/exports.txt").read_text(encoding="utf-8").split()
        self.assertEqual(library.exports, {f"_{name}" for name in names if name.startswith("hz_")})
        # One of them makes the zone the first. The heap opens in another.
        self.assertGreaterEqual(sum(library.of_kind(CONSTRUCTORS).values()), 2 * 4)
        self.assertLessEqual(ZONE_CALLS, library.imports)
        # dyld would get them by malloc: os/per_thread.hpp.
        self.assertEqual(library.of_kind(THREAD_LOCAL), {})
        self.assertEqual([name for name in library.imports if MALLOC_FAMILY.match(name)], [])

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
