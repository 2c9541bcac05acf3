# SPDX-License-Identifier: Apache-2.0
#
# check_library.py LIBRARY EXPORTS...: what a shared library of ours may need and show, read with readelf.
# Called by CTest, once per library; package.fault-is-found.* show that it finds each kind of fault.
import re
import subprocess
import sys
from pathlib import Path

MAX_STATIC_TLS = 64  # what a late dlopen can count on


def readelf(option, library):
    return subprocess.run(["readelf", "-W", option, library], check=True, capture_output=True, text=True).stdout


GLIBC = "libc.so.6"
MUSL = ("libc.so", "libc.musl-x86_64.so.1")  # as Debian calls it, and Alpine


def needs(dynamic):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)


def needed_faults(dynamic):
    needed = needs(dynamic)
    if len(needed) == 1 and needed[0] in (GLIBC, *MUSL):
        return []
    return [f"needs {' '.join(needed) or 'nothing'}, expected the C library alone"]


def wanted_names(lines, dynamic):
    """Of the list's lines NAME [glibc]."""
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {name for name, *where in rows if where != ["glibc"] or not set(needs(dynamic)).intersection(MUSL)}


def soname_faults(dynamic, library):
    """Programs that were linked ask for this name: it says which interface they know."""
    names = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    if [name for name in names if re.fullmatch(r"libhakozuna-.+\.so\.\d+", name)] != names or not names:
        return [f"is called {' '.join(names) or 'nothing'}, expected libhakozuna-<line>.so.<version>"]
    beside = library.with_name(names[0])
    return [] if beside.exists() and beside.samefile(library) else [f"is not to be found as {names[0]} beside itself"]


def unload_faults(dynamic):
    return [] if re.search(r"\(FLAGS_1\).*\bNODELETE\b", dynamic) else ["can be unloaded: NODELETE is not set"]


def binding_faults(dynamic):
    return [] if re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic) else ["binds lazily: NOW is not set"]


def tls_faults(headers):
    sizes = [int(row.split()[5], 16) for row in headers.splitlines() if row.split()[:1] == ["TLS"]]
    return [f"has {size} bytes of static TLS, at most {MAX_STATIC_TLS} allowed" for size in sizes
            if size > MAX_STATIC_TLS]


def exported(symbols):
    names = set()
    for row in symbols.splitlines():
        fields = row.split()
        if len(fields) == 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] != "UND":
            names.add(fields[7])
    return names


def export_faults(symbols, wanted):
    found = exported(symbols)
    return ([f"exports {name}, which is not on the list" for name in sorted(found - wanted)]
            + [f"does not export {name}" for name in sorted(wanted - found)])


def path_faults(library):
    """A path in it, of the source or of what was built, makes it another library in another place."""
    content = library.read_bytes()
    places = (Path(__file__).resolve().parents[2], library.resolve().parent)
    return [f"tells where it was built: {place}" for place in places if str(place).encode() in content]


def main(library, *lists):
    dynamic = readelf("--dynamic", library)
    wanted = wanted_names([row for one in lists for row in Path(one).read_text(encoding="utf-8").splitlines()], dynamic)
    faults = (needed_faults(dynamic) + soname_faults(dynamic, Path(library)) + unload_faults(dynamic) + binding_faults(dynamic)
              + tls_faults(readelf("--program-headers", library)) + path_faults(Path(library))
              + export_faults(readelf("--dyn-syms", library), wanted))
    for fault in faults:
        print(f"{library}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
