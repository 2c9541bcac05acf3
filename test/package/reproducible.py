# SPDX-License-Identifier: Apache-2.0
#
# reproducible.py SOURCE BUILD LINE [CMAKE OPTION...]: builds a line once more, from a copy of the tree in another place,
# under another name, in another time zone, from files of another date, by make, and compares each of its libraries with
# the one in BUILD, byte by byte. Called by CTest; takes as long as a line takes to compile.
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WHAT_IS_BUILT_FROM = ("CMakeLists.txt", "LICENSE", "cmake", "include", "package", "src")
ELSEWHERE = {"USER": "somebody", "LOGNAME": "somebody", "HOME": "/nonexistent", "TZ": "Pacific/Chatham", "LC_ALL": "C"}
OLD = 946_684_800  # seconds: the year 2000


def copy_tree(source, copy):
    for name in WHAT_IS_BUILT_FROM:
        if (source / name).is_dir():
            shutil.copytree(source / name, copy / name)
        else:
            shutil.copy(source / name, copy / name)
    for path in copy.rglob("*"):
        os.utime(path, (OLD, OLD))


def build(source, folder, line, options):
    """By make, where it is there: what Ninja finds out by itself, make must be told (CMake's dependencies)."""
    generator = "Unix Makefiles" if shutil.which("make") else "Ninja"
    configure = ["cmake", "-S", source, "-B", folder, "-G", generator, f"-DHZ_LINES_ENABLED={line}",
                 "-DHZ_BUILD_TESTS=OFF", "-DHZ_BUILD_BENCH=OFF", *options]
    for command in (configure, ["cmake", "--build", folder, "--parallel", "2"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **ELSEWHERE}, umask=0o077)


def first_difference(one, other):
    return next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))


def faults(folder, other, line):
    found = []
    for name in (f"libhakozuna-{line}.so", f"libhakozuna-{line}.a", f"libhakozuna-{line}-direct.a"):
        one, two = (folder / name).read_bytes(), (other / name).read_bytes()
        if one != two:
            found.append(f"{name}: {len(one)} and {len(two)} bytes, different from byte {first_difference(one, two)} on")
    return found


def main(source, folder, line, *options):
    with tempfile.TemporaryDirectory(prefix="hakozuna in another place ") as place:
        copy, other = Path(place, "source"), Path(place, "what is built")
        copy.mkdir()
        copy_tree(Path(source), copy)
        build(copy, other, line, options)
        found = faults(Path(folder), other, line)
    print("\n".join(found) or f"line {line}: all three libraries are the same, built in another place")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
