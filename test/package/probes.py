# SPDX-License-Identifier: Apache-2.0
#
# probes.py LINE PROCESSOR FILE...: the probes that tracers find in each FILE, a library of ours or what was linked with
# one, as readelf reads their notes. Called by CTest; package.fault-is-found.probes shows that it finds a fault.
import re
import subprocess
import sys
from collections import Counter

PROBES = {"refill", "flush", "span_acquired", "span_retired", "purge", "fault", "limit"}
UNCACHED = {"hz7": {"refill", "flush"}}  # no thread of it has slots of its own
OPERANDS = {"x86_64": r"%r\w+|\$-?\d+", "aarch64": r"x\d+|-?\d+"}
NOTE = re.compile(
    r"Provider: (?P<provider>.*)\n\s+Name: (?P<name>.*)\n\s+Location: (?P<at>\w+), Base: (?P<base>\w+), "
    r"Semaphore: (?P<semaphore>\w+)\n\s+Arguments: (?P<arguments>.*)"
)


def readelf(option, file):
    return subprocess.run(["readelf", "-W", option, file], check=True, capture_output=True, text=True).stdout


def sections(file):
    """Start and size, by name. An archive's are those of its members' files: nothing lies anywhere yet."""
    rows = re.findall(r"\] (\S+) +\w+ +([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) ", readelf("--section-headers", file))
    return {name: (int(at, 16), int(size, 16)) for name, at, size in rows}


def faults(file, line, processor):
    notes = [match.groupdict() for match in NOTE.finditer(readelf("--notes", file))]
    wanted = PROBES - UNCACHED.get(line, set())
    found = Counter(note["name"] for note in notes)
    for name in sorted(wanted - set(found)):
        yield f"has no probe {name}"
    for name in sorted(set(found) - wanted):
        yield f"has a probe {name}, which is not on the list"
    operand = f"8@({OPERANDS[processor]})"
    for note in notes:
        if note["provider"] != "hakozuna":
            yield f"{note['name']}: the provider is {note['provider']}"
        if not re.fullmatch(f"{operand} {operand}", note["arguments"]):
            yield f"{note['name']}: the arguments are {note['arguments']}"
        if int(note["semaphore"], 16) != 0:
            yield f"{note['name']}: has a semaphore"
    if file.endswith(".a"):
        return
    lie = sections(file)
    begin, size = lie.get(".text", (0, 0))
    for note in notes:
        if not begin <= int(note["at"], 16) < begin + size:
            yield f"{note['name']}: is at {note['at']}, outside of the code"
        if int(note["base"], 16) != lie.get(".stapsdt.base", (0, 0))[0]:
            yield f"{note['name']}: the base is {note['base']}, where no section .stapsdt.base is"


def main(line, processor, files):
    told = [f"{file}: {fault}" for file in files for fault in faults(file, line, processor)]
    for fault in told:
        print(fault)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
