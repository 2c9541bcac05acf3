# SPDX-License-Identifier: Apache-2.0
"""sbom.py STAGE BILL VERSION: the bill of materials of an installation in STAGE is valid SPDX, tells of every file that is
there what its sums are, and of the libraries that they need what the linker wrote into them. Then the same of bills that are
wrong, which must be found out. Called by CTest with the lab's python, which has SPDX's tools; takes a second."""

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from spdx_tools.spdx.model.checksum import ChecksumAlgorithm
from spdx_tools.spdx.model.document import Document
from spdx_tools.spdx.model.relationship import RelationshipType
from spdx_tools.spdx.parser.error import SPDXParsingError
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def needed(library: Path) -> list[str]:
    dynamic = subprocess.run(["readelf", "-W", "-d", library], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)


def file_faults(document: Document, stage: Path, bill: Path) -> list[str]:
    """The sums of what is listed, and what is not listed."""
    listed = {file.name.removeprefix("./"): file for file in document.files}
    there = {str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file() and not path.is_symlink()}
    faults = [f"{name} is not there" for name in sorted(listed.keys() - there)]
    faults += [f"{name} is not listed" for name in sorted(there - listed.keys() - {str(bill)})]
    for name in sorted(listed.keys() & there):
        sums = {one.algorithm: one.value for one in listed[name].checksums}
        content = (stage / name).read_bytes()
        for algorithm, digest in ((ChecksumAlgorithm.SHA1, "sha1"), (ChecksumAlgorithm.SHA256, "sha256")):
            if sums.get(algorithm) != hashlib.new(digest, content).hexdigest():
                faults.append(f"{name}: another {digest}")
    return faults


def faults(stage: Path, bill: Path, version: str, text: str) -> list[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".spdx.json", encoding="utf-8") as copy:
        copy.write(text)
        copy.flush()
        try:
            document = parse_file(copy.name)
        except SPDXParsingError as error:
            return error.get_messages()
    found = [message.validation_message for message in validate_full_spdx_document(document)]
    package, *others = document.packages
    if package.version != version:
        found.append(f"it is of version {package.version}, not {version}")
    depends = [one for one in document.relationships if one.relationship_type == RelationshipType.DEPENDS_ON]
    libraries = [path for path in stage.rglob("libhakozuna*.so.*") if not path.is_symlink()]
    told = [one.name for one in others if one.spdx_id in {relation.related_spdx_element_id for relation in depends}]
    if not libraries or any(needed(path) != ["libc.so.6"] for path in libraries) or told != ["glibc"]:
        found.append(f"it tells of {told}, and libc alone is needed")
    return found + file_faults(document, stage, bill)


def main(stage: Path, bill: Path, version: str) -> int:
    text = (stage / bill).read_text(encoding="utf-8")
    found = faults(stage, bill, version, text)
    sha256 = hashlib.sha256((stage / "include/hakozuna/hakozuna.h").read_bytes()).hexdigest()
    for wrong, told in (
        (text.replace('"dataLicense": "CC0-1.0"', '"dataLicense": "none"'), "data_license must be"),
        (text.replace(f'"versionInfo": "{version}"', '"versionInfo": "9"'), "not " + version),
        (text.replace(sha256, "0" * 64), "hakozuna.h: another sha256"),
        (text.replace("./include/hakozuna/hakozuna.h\"", "./include/other.h\""), "other.h is not there"),
        (text.replace('"DEPENDS_ON"', '"OTHER"'), "it tells of []"),
        (text.replace('"SPDXID": "SPDXRef-libc"', '"SPDXID": "SPDXRef-other"'), "SPDXRef-libc"),
    ):
        if not any(told in message for message in faults(stage, bill, version, wrong)):
            found.append(f"a bill in which {told} passes")
    print("\n".join(found) or f"{stage / bill}: valid, and true of what is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
