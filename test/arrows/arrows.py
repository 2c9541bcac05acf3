# SPDX-License-Identifier: Apache-2.0
#
# arrows.py ROOT: the rules of the house that can be read from the source files. Called by CTest; self_test.py plants
# one violation of each rule and sees it found.
#   arrows   base <- os <- box <- heap <- security <- line <- export; a box sees base, os and its own role's contract.hpp
#   floors   a folder of src/heap sees those that stand before it in FLOORS
#   list     an extension of the heap is named in its own files and in its list's
#   #if      only in src/base/compiler.hpp and src/os/, elsewhere `if constexpr`
#   header   every source file begins with its SPDX line and a comment that says what it is for
#   walk     the page that walks through a heap names every function and type of it
#   length   README, guides, pages of results, pictures, rows and all pages together stay short enough to be read
import re
import sys
from pathlib import Path

LAYERS = ["base", "os", "box", "heap", "security", "line", "export"]
# Folders of src/heap. A file includes its own floor and those below it, of which all but the first know the state.
FLOORS = ["samples", "settings", "state", "spans", "exchange", "boundary", "huge", "process", "heaps", "views", "api",
          "one_lock"]
# What the heap calls through a list of extensions (heap/samples/extension.hpp), and the files that name it beside these.
EXTENSIONS = {"GuardedPool": "heap/samples/guarded.", "HeapProfile": "heap/samples/heap_profile."}
LIST = "heap/samples/sampling."
LICENSE = "SPDX-License-Identifier: Apache-2.0"
COMMENT_MARKS = {".cpp": "//", ".hpp": "//", ".c": "//", ".h": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".map": "#"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>|(\w+))')
# Folders of src/ that a page walks through, and what these define.
WALKS = {"heap/one_lock": "doc/line/hz7.md"}
README_LINES, SHORT_LINES, DOC_LINES = 150, 60, 9000  # short: a page of results, a guide; doc: all pages together
PICTURE_BYTES, ROW_BYTES = 60_000, 2_000_000  # rows: all files together
DEFINITION = re.compile(r"^  (?!return|if|for|while|switch|else)(?:[\w:<>&*\[\]]+ )+[*&]?(\w+)\([^;]*$"
                        r"|^ *(?:struct|class|enum class) (\w+)\b(?!;)", re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*(?:el)?if(?:n?def)?\b")


def layer(path):
    return path.split("/")[0]


def role(path):
    """The folder that a box lives in: box/front/bins.hpp -> box/front."""
    return "/".join(path.split("/")[:2])


def floor(path):
    """The place of a file of heap/ in FLOORS. A file that lies in no folder is below all of them."""
    folder = path.split("/")[1]
    return FLOORS.index(folder) if folder in FLOORS else -1


def include_fault(src, user, angled, quoted, macro):
    """Why this include is against the rules, or None. All paths are relative to src."""
    if macro:
        if macro == "HZ_LINE_HEADER" and layer(user) == "export":
            return None
        return f"includes {macro}: only export may name the line by macro"
    used = angled or quoted
    public = used.startswith("hakozuna/")
    if public:
        return f"includes {used}: base depends on nothing" if layer(user) == "base" else None
    if angled:
        return f"includes <{used}>: files of the house are included in quotes" if (src / used).is_file() else None
    if not (src / used).is_file():
        return f'includes "{used}": no such file in src (write the path from src)'
    if LAYERS.index(layer(used)) > LAYERS.index(layer(user)):
        return f"includes {used}: {layer(user)} must not know {layer(used)}"
    if layer(user) == "box" and layer(used) == "box" and role(used) != role(user):
        return f"includes {used}: a box knows base, os and the parts of its own role"
    if layer(user) == layer(used) == "heap" and floor(used) > floor(user):
        return f"includes {used}: {role(user)} must not know {role(used)}"
    return None


def file_faults(src, user):
    lines = (src / user).read_text(encoding="utf-8").splitlines()
    if layer(user) not in LAYERS:
        yield f"{user}: is in no layer ({' '.join(LAYERS)})"
        return
    if layer(user) == "heap" and floor(user) < 0 and user.count("/") > 1:
        yield f"{user}: is on no floor ({' '.join(FLOORS)})"
    may_ask = user == "base/compiler.hpp" or layer(user) == "os"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        fault = include_fault(src, user, match[2], match[1], match[3]) if match else None
        if fault:
            yield f"{user}:{number}: {fault}"
        if CONDITION.match(line) and not may_ask:
            yield f"{user}:{number}: #if outside of base/compiler.hpp and os/"
        for name in set(re.findall(r"\w+", line)) & EXTENSIONS.keys():
            if not user.startswith((EXTENSIONS[name], LIST)):
                yield f"{user}:{number}: names {name}: only {EXTENSIONS[name]}* and {LIST}* may, others call Extensions"


def header_fault(path):
    mark = "#" if path.name == "CMakeLists.txt" or not path.suffix else COMMENT_MARKS[path.suffix]
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()[:5]]
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    if mark == "//" and lines and lines[0].startswith("/*"):
        lines[0], mark = "*" + lines[0][2:].removesuffix("*/").rstrip(), "*"
    if not lines or lines[0] != f"{mark} {LICENSE}":
        return "does not begin with its SPDX line"
    if path.suffix == ".py" and any(line.startswith('"""') for line in lines[1:3]):
        return None
    comment = [line[len(mark):].strip() for line in lines[1:3] if line.startswith(mark)]
    return None if any(comment) else "has no comment after the SPDX line that says what it is for"


def header_faults(root):
    yield from (f"{name}: {header_fault(root / name)}" for name in ("hz", "CMakeLists.txt")
                if (root / name).is_file() and header_fault(root / name))
    for folder in ("src", "include", "test", "bench", "lab", "cmake"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in COMMENT_MARKS or path.name == "CMakeLists.txt"):
                fault = header_fault(path)
                if fault:
                    yield f"{path.relative_to(root)}: {fault}"


def walk_faults(root):
    for folder, page in WALKS.items():
        paths = sorted((root / "src" / folder).glob("*.hpp"))
        text = (root / page).read_text(encoding="utf-8") if paths else ""
        named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", text))))
        for path in paths:
            for match in DEFINITION.finditer(path.read_text(encoding="utf-8")):
                name = match[1] or match[2]
                if name not in named:
                    yield f"{page}: does not name {name} of {path.relative_to(root)}"


def document_faults(root):
    """What is too long to be read, or too large to be loaded with a page."""
    def lines(path):
        return len(path.read_text(encoding="utf-8").splitlines())

    results = root / "doc" / "results"
    sizes = [("README.md", lines(root / "README.md"), README_LINES, "lines")] if (root / "README.md").is_file() else []
    short = [path for folder in (results, root / "doc" / "guides") for path in sorted(folder.glob("*.md"))]
    sizes += [(path.relative_to(root), lines(path), SHORT_LINES, "lines") for path in short]
    sizes += [(path.relative_to(root), path.stat().st_size, PICTURE_BYTES, "bytes")
              for path in sorted((root / "doc").rglob("*.svg"))]
    rows = sum(path.stat().st_size for path in (results / "rows").glob("*"))
    sizes.append(("doc/results/rows", rows, ROW_BYTES, "bytes"))
    sizes.append(("doc", sum(lines(path) for path in (root / "doc").rglob("*.md")), DOC_LINES, "lines"))
    yield from (f"{name}: {size} {unit}, not {most} at most" for name, size, most, unit in sizes if size > most)


def faults(root):
    src = root / "src"
    files = sorted(str(path.relative_to(src)) for path in src.rglob("*") if path.is_file())
    if not files:
        yield "src: no files"
        return
    for name in files:
        yield from file_faults(src, name)
    yield from header_faults(root)
    yield from walk_faults(root)
    yield from document_faults(root)


def main():
    found = list(faults(Path(sys.argv[1])))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
