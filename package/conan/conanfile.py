# SPDX-License-Identifier: Apache-2.0
"""What `conan create .` runs on the package that it made: a program that links with the default line, and one that has
its heap beside the C library's. Called by Conan; a few seconds."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = ("VirtualRunEnv",)

    def requirements(self) -> None:
        self.requires(self.tested_reference_str)

    def layout(self) -> None:
        cmake_layout(self)

    def line(self) -> str:
        return str(self.dependencies["hakozuna"].options.lines).split(";")[0] or "hakozuna"

    def generate(self) -> None:
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HZ_LINE"] = self.line()
        toolchain.user_presets_path = False
        toolchain.generate()

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self) -> None:
        if can_run(self):
            for program, how in (("linked", "drop-in"), ("direct", "beside")):
                self.run(f"{Path(self.build_folder, program)} {self.line()} {how}", env="conanrun")
