# SPDX-License-Identifier: Apache-2.0
"""The recipes that CI does not carry out: hadolint finds no fault with the Containerfile, what it copies is there, and
it preloads the library that the Debian package has; the port for vcpkg has the project's version and calls what vcpkg
has. And every package has the version of the header. Called by ctest with the lab's python, which has hadolint; a
second."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from packages import ALL_LINES, ROOT, VERSION, command

HADOLINT = Path(sys.executable).parent / "hadolint"


class Container(unittest.TestCase):
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")

    def test_hadolint_finds_no_fault(self):
        self.assertEqual(command(HADOLINT, ROOT / "Containerfile"), "")

    def test_hadolint_would_find_one(self):
        done = subprocess.run(
            [str(HADOLINT), "-"],
            input=self.text.replace("--no-install-recommends ", ""),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertIn("DL3015", done.stdout)

    def test_what_is_copied_is_there_and_enough(self):
        copied = [name for names in re.findall(r"^COPY (.*) \S+$", self.text, re.MULTILINE) for name in names.split()]
        for name in copied:
            self.assertTrue((ROOT / name).exists(), name)
        # What the Debian package is made of, as CMake's files name it.
        self.assertLessEqual(
            {"CMakeLists.txt", "LICENSE", "hz", "cmake", "debian", "doc/man", "include", "lab/hakozuna_lab", "observe"}
            | {"package", "src"},
            set(copied),
        )

    def test_the_library_that_is_preloaded(self):
        self.assertIn(f"ENV LD_PRELOAD=libhakozuna-{ALL_LINES[0]}.so.{VERSION.split('.')[0]}\n", self.text)


class Port(unittest.TestCase):
    def test_manifest(self):
        manifest = json.loads((ROOT / "package/vcpkg/vcpkg.json").read_text(encoding="utf-8"))
        self.assertEqual(
            (manifest["name"], manifest["version-semver"], manifest["license"]), ("hakozuna", VERSION, "Apache-2.0")
        )
        self.assertRegex(manifest["supports"], r"linux")

    def test_portfile_is_cmake(self):
        """With commands that do nothing in the place of vcpkg's: they are called, and nothing else of vcpkg's is."""
        known = (
            "vcpkg_cmake_configure",
            "vcpkg_cmake_install",
            "vcpkg_cmake_config_fixup",
            "vcpkg_fixup_pkgconfig",
            "vcpkg_install_copyright",
        )
        stubs = "".join(f"function({name})\nmessage(STATUS {name})\nendfunction()\n" for name in known)
        script = f"set(CURRENT_PORT_DIR [[{ROOT}/package/vcpkg]])\nset(CURRENT_PACKAGES_DIR /nonexistent)\n{stubs}"
        script += "include(${CURRENT_PORT_DIR}/portfile.cmake)\n"
        script += "if(NOT EXISTS ${SOURCE_PATH}/CMakeLists.txt)\nmessage(FATAL_ERROR ${SOURCE_PATH})\nendif()\n"
        with tempfile.NamedTemporaryFile("w", suffix=".cmake", encoding="utf-8") as file:
            file.write(script)
            file.flush()
            done = subprocess.run(["cmake", "-P", file.name], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(re.findall(r"^-- (\w+)$", done.stdout, re.MULTILINE), list(known))


class Versions(unittest.TestCase):
    def test_all_packages_have_the_version_of_the_header(self):
        for name, pattern in (
            ("Cargo.toml", r'^version = "(.*)"'),
            ("Cargo.lock", r'name = "hakozuna"\nversion = "(.*)"'),
            ("debian/changelog", r"\Ahakozuna \((.*)\)"),
        ):
            text = (ROOT / name).read_text(encoding="utf-8")
            self.assertEqual(re.search(pattern, text, re.MULTILINE)[1], VERSION, name)

    def test_the_package_is_called_as_the_interface(self):
        control = (ROOT / "debian/control").read_text(encoding="utf-8")
        self.assertIn(f"\nPackage: libhakozuna{VERSION.split('.')[0]}\n", control)


if __name__ == "__main__":
    unittest.main()
