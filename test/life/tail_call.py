# SPDX-License-Identifier: Apache-2.0
#
# tail_call.py OBJECT: dlopen and dlmopen in OBJECT hand over to the next one by a jump, so that the caller's return
# address is what the C library sees. The next one is known by its address alone, so a call to it is an indirect one. Read from
# objdump; called by CTest for every library in every build.
import re
import subprocess
import sys

CALL = re.compile(r"\t(?:callq?\s+\*|blr\s)")
JUMP = re.compile(r"\t(?:jmpq?\s+\*%|br\s+x)")


def check(path, function):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", path], check=True,
                          capture_output=True, text=True).stdout
    code = [line for line in text.splitlines() if re.match(r"\s+[0-9a-f]+:\t", line)]
    calls = [line for line in code if CALL.search(line)]
    jumps = [line for line in code if JUMP.search(line)]
    if jumps and not calls:
        return 0
    print(f"{path}: {function} has {len(calls)} indirect calls and {len(jumps)} indirect jumps, "
          "expected a jump and no call")
    print("\n".join(code) or "(no such function)")
    return 1


def main(path):
    return max(check(path, function) for function in ("dlopen", "dlmopen"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
