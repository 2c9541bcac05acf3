# SPDX-License-Identifier: Apache-2.0
"""The recipe for Conan 2: `conan create .` builds what `cmake --install` installs, and package/conan uses it. The
option `lines` names the lines that are built, the default one first, separated by semicolons; without it all are."""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Hakozuna(ConanFile):
    name = "hakozuna"
    description = "A family of drop-in memory allocators"
    license = "Apache-2.0"
    author = "The Hakozuna authors"
    topics = ("allocator", "malloc", "memory")
    settings = "os", "arch", "compiler", "build_type"
    options = {"lines": ["ANY"]}  # noqa: RUF012  # the recipe's own form
    default_options = {"lines": ""}  # noqa: RUF012
    exports_sources = (
        "CMakeLists.txt",
        "LICENSE",
        "hz",
        "cmake/*",
        "doc/man/*",
        "include/*",
        "lab/hakozuna_lab/*.py",
        "observe/*",
        "package/*.in",
        "package/gdb/*",
        "src/*",
    )
    test_package_folder = "package/conan"

    def set_version(self) -> None:
        header = Path(self.recipe_folder, "include", "hakozuna", "hakozuna.h").read_text(encoding="utf-8")
        found = re.search(r'#define HZ_VERSION "(.*)"', header)
        assert found
        self.version = found[1]

    def export(self) -> None:
        """set_version asks the header also where the recipe is kept."""
        copy(self, "include/hakozuna/hakozuna.h", self.recipe_folder, self.export_folder)

    def validate(self) -> None:
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("Hakozuna runs on Linux, on x86_64 and armv8")

    def layout(self) -> None:
        cmake_layout(self)

    def generate(self) -> None:
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HZ_BUILD_TESTS"] = False
        toolchain.cache_variables["HZ_BUILD_BENCH"] = False
        toolchain.cache_variables["HZ_LINES_ENABLED"] = str(self.options.lines)
        toolchain.generate()

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self) -> None:
        CMake(self).install()

    def package_info(self) -> None:
        """find_package finds the project's own files; other generators are told of the default line."""
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/hakozuna"]
        self.cpp_info.libs = ["hakozuna"]
        self.cpp_info.system_libs = ["pthread"]
