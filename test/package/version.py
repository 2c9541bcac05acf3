# SPDX-License-Identifier: Apache-2.0
#
# version.py SOURCE BUILD LINE: the version is a semantic one, stands in include/hakozuna/hakozuna.h and where a format
# demands that it is written down, and is what everything that is built or asked says. Called by CTest; takes a tenth of a second.
import re
import subprocess
import sys
from pathlib import Path

HOME = "include/hakozuna/hakozuna.h"
SEMANTIC = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
# What is built from, and what runs; peers have versions of their own.
PLACES = ("CMakeLists.txt", "CMakePresets.json", "cmake", "hz", "include", "lab", "package", "src", "test/package")
MADE = (".xml",)
UNTRACKED = {"__pycache__", "build"}  # folders that tools leave behind
DEMANDED = ("package/vcpkg/vcpkg.json",)  # files of PLACES whose format has no other way


def files(source):
    for place in PLACES:
        found = [source / place] if (source / place).is_file() else sorted((source / place).rglob("*"))
        yield from (path for path in found if path.is_file() and not UNTRACKED & set(path.relative_to(source).parts))


def statements(source, version):
    """Files that state it, each as often as it does."""
    quoted = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.])")
    for path in files(source):
        if path.suffix not in MADE:
            yield from [str(path.relative_to(source))] * len(quoted.findall(path.read_text(encoding="utf-8")))


def faults(source, build, line):
    version = re.search(r'^#define HZ_VERSION "(.*)"$', (source / HOME).read_text(encoding="utf-8"), re.MULTILINE)[1]
    if not SEMANTIC.fullmatch(version):
        yield f"{version} is no semantic version"
    stated, wanted = sorted(statements(source, version)), sorted([HOME, *DEMANDED])
    if stated != wanted:
        yield f"{version} is to stand once in {' '.join(wanted)}, and stands in {' '.join(stated) or 'no file'}"
    major, minor, *_ = version.split(".")
    library = (build / f"libhakozuna-{line}.so").resolve().name
    said = subprocess.run([source / "hz", "--version"], capture_output=True, text=True, check=True).stdout
    for what, found, wanted in (
        ("the library's name", library, f"libhakozuna-{line}.so.{version}"),
        ("hz --version", said.strip(), f"hakozuna {version}"),
        ("pkg-config", re.search("^Version: (.*)$", (build / "hakozuna.pc").read_text(), re.MULTILINE)[1], version),
        ("find_package", re.search(r'^set\(PACKAGE_VERSION "(.*)"\)$',
                                   (build / "hakozuna-config-version.cmake").read_text(), re.MULTILINE)[1], version),
        ("doc/linking.md", re.search(r"find_package\(hakozuna (\S+) REQUIRED\)",
                                     (source / "doc" / "linking.md").read_text())[1], f"{major}.{minor}"),
        ("CHANGELOG", re.search(r"^## (\S+?),? ", (source / "CHANGELOG.md").read_text(), re.MULTILINE)[1], version),
    ):
        if found != wanted:
            yield f"{what} says {found}, not {wanted}"


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3]))
    print("\n".join(found) or "one version, told by all")
    sys.exit(1 if found else 0)
