# SPDX-License-Identifier: Apache-2.0
"""How much stack each entry of a library takes at most, by the compiler's own account: its unwind tables say how far
the stack has grown at every instruction, and what is called there comes on top, along the whole call graph. It sees
what is shipped, whichever compiler made it. Called by CTest: depth.py LIBRARY. Fails where an entry takes more than it
may, and where a call leads to what is not accounted for."""

import bisect
import re
import subprocess
import sys

# Bytes below the caller's frame, with everything that the C library takes in between.
LIMIT = 2048
# The first call of a thread may make the C library call us in turn, for the program's 33rd thread-specific key.
LIMIT_NESTED = 2560
LIMIT_WITH_A_REPORT = 4096

# Who calls us, by demangled name: the program, and the C library at a thread's end and around a fork.
ENTRIES = [
    r"malloc|free|calloc|realloc|reallocarray|reallocf|memalign|aligned_alloc|posix_memalign|valloc|pvalloc",
    r"free_sized|free_aligned_sized|malloc_usable_size|cfree|__libc_\w+|hz_(?!stats|ctl|walk|heap_walk|heap_stats)\w+",
    r"operator (new|delete)(\[\])?\(.*\)",
    r"hz::(Threads<.*>::on_thread_exit|Forks<.*>::(on_fork|after_fork|in_child))\(.*\)",
]
LEAST_ENTRIES = 40

REPORTS = r"hz::FaultReport::"
# Ends in the program's own code, or in the C++ runtime's: theirs is the stack that it takes. So does a walk along the
# stack, for which nobody is asked but who wants a heap profile (doc/observe.md says what that needs).
OUTSIDE = r"hz::new_after_failure|hz::try_new|__throw_bad_alloc|abort|hz::os::walk_stack"
# Calls of a pointer to a function, and what that takes at most.
POINTERS = {
    r"hz::Options::": 256,
    r"hz::Arena::": 256,
    r"hz::os::call::(getcpu|clock_gettime)\(": 256,
    # CPython's: its version, which it prints into a buffer, once; and loads and pthread_getspecific.
    r"hz::os::PythonStack::find_interpreter\(": 2048,
    r"hz::os::PythonStack::": 256,
}
# The same, of one that is ours; where there is none (hz7) it is never set.
POINTS_TO = {r"hz::FaultReport::tell\(": r"hz::\(anonymous namespace\)::explain\(.*\)"}

# What the C library takes for the calls that we make: read from glibc 2.36's code, and rounded up.
LIBC = [
    (r"mem(cpy|move|set|chr|cmp)|str\w+", 64),
    (r"syscall|m(map|unmap|protect|advise|remap|incore)|sched_yield", 64),
    (r"getrlimit|prlimit|sysinfo|getpid|getpagesize|getauxval", 64),
    (r"open|read|write|close|fcntl|access|getcwd|readlink|sigaction|raise|prctl", 128),
    (r"sched_getaffinity|pthread_setcancelstate|pthread_sigmask|sig(fill|empty|add)set", 128),
    (r"sched_getcpu|clock_gettime", 256),  # in the vDSO
    (r"__errno_location", 16),
    (r"pthread_key_create|pthread_getspecific|pthread_self|sysconf|_IO_list_(un|reset)?lock", 128),
    (r"pthread_setspecific|__register_atfork|pthread_atfork", 96),
    (r"pthread_attr_\w+", 128),
    (r"pthread_create", 1024),
    (r"dl_iterate_phdr|dladdr", 512),
    # By pointers in a variable of ours: loads of CPython's, and pthread_getspecific.
    (r"_ZN2hz2os\w*6pythonE", 256),
]
# These allocate; what they call of ours comes on top, once: none of them is called from there again.
ALLOCATES = {"pthread_setspecific": "calloc", "__register_atfork": "malloc", "pthread_atfork": "malloc"}


def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def whole(symbol):
    """A function that the compiler has split in two has one frame."""
    return symbol.removesuffix(".cold")


class Library:
    def __init__(self, path):
        self.rows = self.read_frames(output("readelf", "--debug-dump=frames-interp", path))
        self.starts = sorted(self.rows)
        self.frames = {}  # function: how far the stack grows in it, its return address included
        self.calls = {}  # function: {(what it calls, how far the stack has grown there)}; None: by a pointer
        self.read_code(output("objdump", "-d", "-w", "--no-show-raw-insn", path))
        names = list(self.frames)
        self.readable = dict(zip(names, output("c++filt", text="\n".join(names)).splitlines()))
        self.memory = {}

    @staticmethod
    def read_frames(text):
        rows, current = {}, []
        for line in text.splitlines():
            if match := re.search(r"FDE cie=.* pc=([0-9a-f]+)\.\.", line):
                current = rows.setdefault(int(match[1], 16), [])
            elif match := re.match(r"([0-9a-f]{16}) (\w+)\+?(\w*)", line):
                current.append((int(match[1], 16), int(match[3]) if match[2] == "rsp" else None))
        return rows

    def grown(self, address):
        rows = self.rows[self.starts[bisect.bisect_right(self.starts, address) - 1]]
        at = bisect.bisect_right(rows, address, key=lambda row: row[0])
        return rows[at - 1][1] if at else 8

    def read_code(self, text):
        function = None
        for line in text.splitlines():
            if match := re.match(r"[0-9a-f]+ <(.*)>:", line):
                function = whole(match[1])
                self.frames.setdefault(function, 0)
                self.calls.setdefault(function, set())
                continue
            match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
            if match is None or function is None or function.endswith("@plt"):
                continue
            grown = self.grown(int(match[1], 16))
            if grown is None:
                continue  # the procedure linkage table
            self.frames[function] = max(self.frames[function], grown)
            jump = re.match(r"(?:\w+ )?(call|j\w+)\s+(\S.*)", match[2])
            if jump is None:
                continue
            symbol = re.search(r"<([^>+@]+)[^>+]*(?:\+0x[0-9a-f]+)?>", jump[2])
            target = whole(symbol[1]) if symbol else None
            if jump[1] == "call":
                self.calls[function].add((target, grown))
            elif target not in (None, function):  # a tail call; without a symbol: a jump in a table
                self.calls[function].add((target, grown - 8))

    def depth(self, function, reports, again, above=()):
        """(bytes, the path): `again`: a function of the C library may call us, which it does once."""
        key = (function, reports, again)
        if key in self.memory:
            return self.memory[key]
        if function in above:
            sys.exit("recursion: " + " -> ".join(above + (function,)))
        name = self.readable.get(function, function)
        if re.match(OUTSIDE, name) or re.search(OUTSIDE, name) and function not in self.frames:
            return 0, []
        if not reports and re.search(REPORTS, name):
            return 0, []
        if function not in self.frames:
            return self.in_libc(function, reports, again)
        deepest = self.frames[function], [(self.frames[function], name)]
        for target, grown in self.calls[function]:
            ours = [function for pattern, function in POINTS_TO.items() if re.search(pattern, name)]
            if target is None and ours:
                known = [f for f, of in self.readable.items() if re.fullmatch(ours[0], of)]
                below, path = max((self.depth(f, reports, again, (*above, function)) for f in known), default=(0, []))
            elif target is None:
                pointed = [most for pattern, most in POINTERS.items() if re.search(pattern, name)]
                if not pointed:
                    sys.exit(f"{name} calls a pointer to a function: how deep does that go?")
                below, path = pointed[0], [(pointed[0], "by a pointer")]
            else:
                below, path = self.depth(target, reports, again, above + (function,))
            if grown + below > deepest[0]:
                deepest = grown + below, [(grown, name), *path]
        self.memory[key] = deepest
        return deepest

    def in_libc(self, function, reports, again):
        for pattern, most in LIBC:
            if re.fullmatch(pattern, function):
                path = [(most, f"{function} of the C library")]
                if again and function in ALLOCATES:
                    below, rest = self.depth(ALLOCATES[function], reports, False)
                    return most + below, path + rest
                return most, path
        return sys.exit(f"{function} of the C library: how much stack does that take?")


def main():
    library = Library(sys.argv[1])
    entries = [f for f, name in library.readable.items() if any(re.fullmatch(e, name) for e in ENTRIES)]
    if len(entries) < LEAST_ENTRIES:
        sys.exit(f"only {len(entries)} entries were found: {entries}")
    failed = False
    for what, limit, reports, again in (
        ("without a report", LIMIT, False, False),
        ("without a report, called by the C library in turn", LIMIT_NESTED, False, True),
        ("with a report", LIMIT_WITH_A_REPORT, True, True),
    ):
        depths = sorted(
            ((*library.depth(entry, reports, again), library.readable[entry]) for entry in entries), reverse=True
        )
        print(f"{what}: at most {depths[0][0]} bytes of {limit}; the least: {depths[-1][0]}, {depths[-1][2]}")
        for bytes_, path, entry in depths[:1] + [one for one in depths[1:] if one[0] > limit]:
            failed |= bytes_ > limit
            print(f"{'FAILED: ' if bytes_ > limit else ''}{entry}: {bytes_} bytes")
            for own, name in path:
                print(f"  {own:5} {name}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
