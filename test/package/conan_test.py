# SPDX-License-Identifier: Apache-2.0
"""The recipe for Conan: `conan create` makes a package from the tree without network and uses it, and a project of
somebody else's that asks for it by a conanfile.txt gets it; in CMake's configuration Debug, which nothing else builds
as CMake has it. Called by ctest with the lab's python, which has Conan; 12 seconds for line hz7."""

import sys
import unittest
from pathlib import Path

from packages import LINES, ROOT, VERSION, PackageTest, command, need

CONAN = Path(sys.executable).parent / "conan"
SETTINGS = ("-c", "tools.cmake.cmaketoolchain:generator=Ninja", "-s", "build_type=Debug")


class Conan(PackageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lines = ";".join(LINES)
        cls.conan("profile", "detect")
        cls.conan("remote", "disable", "*")
        words = ("create", cls.copy_tree(), "-o", f"hakozuna/*:lines={cls.lines}", *SETTINGS)
        cls.told = command("sh", "-c", 'exec "$@" 2>&1', "sh", CONAN, *words, CONAN_HOME=cls.scratch / "home")

    @classmethod
    def conan(cls, *words, **more):
        return command(CONAN, *words, CONAN_HOME=cls.scratch / "home", **more)

    def test_its_own_program(self):
        for how in ("linked", "direct"):
            self.assertRegex(self.told, rf"RUN: \S+/{how} {LINES[0]} (drop-in|beside)\n")

    def test_a_project_that_requires_it(self):
        folder = self.scratch / "consumer"
        folder.mkdir()
        (folder / "conanfile.txt").write_text(
            f"[requires]\nhakozuna/{VERSION}\n[options]\nhakozuna/*:lines={self.lines}\n[generators]\nCMakeToolchain\n",
            encoding="utf-8",
        )
        self.conan("install", folder, "--output-folder", folder, *SETTINGS)
        command(
            "cmake",
            "-G",
            "Ninja",
            "-S",
            ROOT / "package/conan",
            "-B",
            folder / "build",
            f"-DHZ_LINE={LINES[-1]}",
            f"-DCMAKE_TOOLCHAIN_FILE={folder}/conan_toolchain.cmake",
            "-DCMAKE_BUILD_TYPE=Debug",
        )
        command("cmake", "--build", folder / "build")
        command(folder / "build/linked", LINES[-1], "drop-in")
        command(folder / "build/direct", LINES[-1], "beside")

    def test_other_systems_are_refused(self):
        told = self.conan(
            "install",
            "--requires",
            f"hakozuna/{VERSION}",
            "-o",
            f"hakozuna/*:lines={self.lines}",
            "-s",
            "os=Windows",
            *SETTINGS,
            expect=6,
        )
        self.assertIn("Hakozuna runs on Linux", told)


if __name__ == "__main__":
    need("cmake", "ninja")
    unittest.main()
