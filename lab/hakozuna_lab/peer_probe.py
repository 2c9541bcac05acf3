# SPDX-License-Identifier: Apache-2.0
"""Does a library really serve malloc, all of it, in a process with threads and forks? `probe` starts this file as a
program under the contender; the program says which file each function of the family came from, and uses them."""

import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from hakozuna_lab import LabError
from hakozuna_lab.contender import Contender
from hakozuna_lab.paths import ROOT

# All that glibc would otherwise serve from its own heap; its reallocarray and strdup call these. Its pvalloc does not,
# but no program uses it, and jemalloc before 5.3.1 has none.
FAMILY = (
    "malloc",
    "free",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "malloc_usable_size",
)
SIZES = (1, 24, 100, 1000, 5000, 40_000, 300_000, 3_000_000)
SECONDS = 60


def probe(contender: Contender) -> Mapping[str, Any]:
    """A record like a lane's, as far as it says who served; LabError if it was another, or not for all functions."""
    # Python's own objects come from malloc, too, so the interpreter is the first program that must run.
    env = contender.environment() | {"PYTHONMALLOC": "malloc", "PYTHONPATH": str(ROOT / "lab")}
    command = [sys.executable, "-m", "hakozuna_lab.peer_probe"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{contender.name}: the probe did not end within {SECONDS} s") from error
    if done.returncode != 0:
        raise LabError(f"{contender.name}: the probe ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    record: dict[str, Any] = json.loads(done.stdout)
    contender.check(record)
    strangers = [f"{name} from {file}" for name, file in record["family"].items() if file != record["allocator_file"]]
    if strangers:
        raise LabError(f"{contender.name}: malloc came from {record['allocator_file']}, but {', '.join(strangers)}")
    return record


class DlInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Family:
    """The functions as the program finds them. Calls release the interpreter's lock, so threads really meet."""

    def __init__(self) -> None:
        self.process = ctypes.CDLL(None)
        size, block = ctypes.c_size_t, ctypes.c_void_p
        self.malloc = self.function("malloc", block, size)
        self.calloc = self.function("calloc", block, size, size)
        self.realloc = self.function("realloc", block, block, size)
        self.reallocarray = self.function("reallocarray", block, block, size, size)
        self.aligned_alloc = self.function("aligned_alloc", block, size, size)
        self.memalign = self.function("memalign", block, size, size)
        self.posix_memalign = self.function("posix_memalign", ctypes.c_int, ctypes.POINTER(block), size, size)
        self.valloc = self.function("valloc", block, size)
        self.usable = self.function("malloc_usable_size", size, block)
        self.free = self.function("free", None, block)

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        found = getattr(self.process, name)
        found.restype, found.argtypes = result, arguments
        return found

    def file(self, name: str) -> str:
        info = DlInfo()
        address = ctypes.cast(getattr(self.process, name), ctypes.c_void_p)
        return info.file.decode() if self.process.dladdr(address, ctypes.byref(info)) and info.file else "nowhere"

    def check(self, block: int | None, size: int, alignment: int) -> int:
        """The block is there, large enough and aligned; it is written to and given back."""
        if not block or block % alignment or self.usable(block) < size:
            raise SystemExit(f"a block of {size} bytes, alignment {alignment}: {block}")
        ctypes.memset(block, 0x5A, size)
        return block

    def use_all(self, size: int) -> None:
        page = os.sysconf("SC_PAGESIZE")
        place = ctypes.c_void_p()
        if self.posix_memalign(ctypes.byref(place), 4096, size):
            raise SystemExit("posix_memalign failed")
        blocks = [
            self.check(self.malloc(size), size, 16 if size > 8 else 8),
            self.check(self.aligned_alloc(64, (size + 63) // 64 * 64), size, 64),
            self.check(self.memalign(256, size), size, 256),
            self.check(place.value, size, 4096),
            self.check(self.valloc(size), size, page),
            self.check(self.reallocarray(None, size, 2), 2 * size, 8),
        ]
        zeroed = self.calloc(size, 1)
        if any(ctypes.string_at(zeroed, size)):
            raise SystemExit("calloc did not clear the block")
        grown = self.realloc(self.check(zeroed, size, 8), 2 * size)
        if ctypes.string_at(grown, size) != b"\x5a" * size:
            raise SystemExit("realloc lost the content")
        for block in [*blocks, self.check(grown, 2 * size, 8)]:
            self.free(block)


def exchange(family: Family) -> None:
    """Each thread frees what its neighbour allocated."""
    threads = 4
    boxes: list[list[int]] = [[] for _ in range(threads)]
    gate = threading.Barrier(threads)

    def work(me: int) -> None:
        boxes[me] = [family.malloc(16 + 8 * (n % 64)) for n in range(500)]
        gate.wait()
        for block in boxes[(me + 1) % threads]:
            family.free(block)

    workers = [threading.Thread(target=work, args=(me,)) for me in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def fork(family: Family) -> None:
    """The child of a process with another thread allocates, too."""
    gate = threading.Event()
    bystander = threading.Thread(target=gate.wait)
    bystander.start()
    child = os.fork()
    if child == 0:
        family.use_all(100)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    gate.set()
    bystander.join()
    if status != 0:
        raise SystemExit(f"the child of a fork ended with {status}")


def main() -> None:
    family = Family()
    files = {name: family.file(name) for name in FAMILY}
    # Blocks of two allocators in one process end badly; then the record says why nothing was tried.
    if set(files.values()) == {files["malloc"]}:
        for size in SIZES:
            family.use_all(size)
        exchange(family)
        fork(family)
    print(json.dumps({"allocator_file": files["malloc"], "family": files}))


if __name__ == "__main__":
    main()
