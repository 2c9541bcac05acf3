# SPDX-License-Identifier: Apache-2.0
#
# text_size.py ARCHIVE MEMBER MOST: fails if the code of that member of a static library is larger than MOST bytes, or if
# there is none. Called by CTest for the line that promises to be tiny.
import subprocess
import sys


def text_bytes(archive, member):
    """All sections .text and .text.*, as `size -A` lists them: "name size address"."""
    listing = subprocess.run(["size", "-A", archive], check=True, capture_output=True, text=True).stdout
    ours = [part for part in listing.split("\n\n") if part.strip().startswith(member)]
    if len(ours) != 1:
        sys.exit(f"{archive} has {len(ours)} members {member}")
    rows = (line.split() for line in ours[0].splitlines())
    return sum(int(row[1]) for row in rows if len(row) == 3 and row[0].split(".")[1:2] == ["text"])


def main():
    archive, member, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
    found = text_bytes(archive, member)
    print(f"{member}: {found} bytes of code, at most {most} allowed")
    return 0 if 0 < found <= most else 1


if __name__ == "__main__":
    sys.exit(main())
