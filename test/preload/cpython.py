# SPDX-License-Identifier: Apache-2.0
"""CPython's own regression suite, every object a block of ours (PYTHONMALLOC=malloc): no new failure.

cpython.py LIBRARY [--whole | --half 0|1] [--once plain|served] [MODULE...], with HZ_TEST_LINE. What fails with us is run without us too,
and what fails there as well does not count; what is new then is run once more alone, both ways, so that a test that
fails now and then by itself does not count either. --once is for `hz suites`, which compares itself: one run, as it is. Exit codes as in lib.sh. Costs under a minute on two idle
processors, --half (every second module, from the first or the second) half of it, --whole about ten.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

# What asks most of a heap and does not mostly wait: containers, text, buffers, threads, forks, C libraries.
SHORT = """
test_array test_ast test_asyncgen test_buffer test_bytes test_bz2 test_cmath test_collections test_compile
test_contextlib test_copy test_csv test_ctypes test_datetime test_decimal test_deque test_descr test_dict
test_exceptions test_fork1 test_fractions test_functools test_gc test_generators test_hashlib test_heapq test_iter
test_itertools test_json test_list test_long test_lzma test_marshal test_memoryio test_memoryview test_mmap
test_ordered_dict test_os test_pickle test_posix test_pyexpat test_queue test_re test_set test_shelve test_sort
test_struct test_subprocess test_sys test_thread test_threading test_threading_local test_tracemalloc test_tuple
test_unicode test_weakref test_xml_etree_c test_zlib
""".split()
# Waits for a peer on a kind of network that virtual machines offer and do not serve.
NEVER = "*VSOCK*"
CASE = re.compile(r"^(?:FAIL|ERROR): (\S+) \(([\w.]+)\)")


def python_with_suite():
    for python in ("/usr/bin/python3", sys.executable):
        if subprocess.run([python, "-c", "import test.libregrtest, test.test_list"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return python
    if os.environ.get("CI") == "true":
        sys.exit("FAILED: CPython's regression suite is missing")
    print("skipped: CPython's regression suite is missing")
    sys.exit(77)


class Suite:
    def __init__(self, python, library, folder):
        self.python, self.library, self.folder = python, library, folder

    def environment(self, served):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PYTHON", "HZ_")) and name != "LD_PRELOAD"}
        clean.update(PYTHONMALLOC="malloc", TMPDIR=self.folder)
        if served:
            clean["LD_PRELOAD"] = self.library
        return clean

    def check_served(self):
        """The same environment, the same program: is it ours that serves it?"""
        code = f"""
import ctypes, sys
ours = {os.path.realpath(self.library)!r} in open('/proc/self/maps').read() and hasattr(ctypes.CDLL(None), 'hz_line')
sys.exit(not ours)"""
        if subprocess.run([self.python, "-c", code], env=self.environment(True), check=False).returncode != 0:
            sys.exit("FAILED: our library does not serve python")

    def command(self, modules, alone=False):
        """What runs MODULES (none: all)."""
        command = [self.python, "-m", "test", "-W", "--timeout", "400", "--tempdir", self.folder, "--ignore", NEVER]
        if not alone:
            command += ["-j", str(len(os.sched_getaffinity(0)))]
        return command + modules

    def once(self, modules, served):
        """The suite's own words and exit code."""
        return subprocess.run(self.command(modules), env=self.environment(served), cwd=self.folder, check=False,
                              stdin=subprocess.DEVNULL).returncode

    def run(self, modules, served, alone=False):
        """Runs MODULES (none: all); what failed, as {module: {case, ...}}."""
        command = self.command(modules, alone)
        how = ("with us" if served else "without us") + (", alone" if alone else "")
        print(f"--- {how}: {' '.join(modules) or 'all'}", flush=True)
        done = subprocess.run(command, env=self.environment(served), cwd=self.folder, text=True, errors="replace",
                              check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        failed = self.failures(done.stdout)
        print(done.stdout[-3000:] if failed or done.returncode else self.summary(done.stdout), flush=True)
        complaint = re.search(r"^hz: .*", done.stdout, re.MULTILINE)
        if complaint:
            sys.exit(f"FAILED: the allocator complained: {complaint.group()}")
        if done.returncode != 0 and not failed:
            sys.exit(f"FAILED: the suite ended with {done.returncode} and named no test")
        return failed

    @staticmethod
    def summary(text):
        return "\n".join(row for row in text.splitlines() if re.match(r"(All )?\d+ tests?|Total|Tests result", row))

    @staticmethod
    def failures(text):
        """Modules from the list at the end, or from their progress lines; cases from the details before it."""
        listed = re.search(r"^\d+ tests? failed:\n((?:    .*\n)+)", text, re.MULTILINE)
        failed = {module: set() for module in (listed.group(1).split() if listed else [])}
        for module in re.findall(r"\] (test_\w+) (?:crashed|timed out)", text):
            failed.setdefault(module, set()).add("crashed")
        for row in text.splitlines():
            case = CASE.match(row)
            for module in failed:
                if case and f".{module}." in f".{case.group(2)}.":
                    failed[module].add(case.group(2))
        return failed


def new_failures(served, plain):
    found = {}
    for module, cases in served.items():
        known = plain.get(module)
        fresh = cases if known is None else cases - known
        if known is None or fresh:
            found[module] = sorted(fresh)
    return found


def show(title, failed):
    print(f"{title}: {'none' if not failed else ''}")
    for module, cases in sorted(failed.items()):
        print(f"  {module}: {' '.join(sorted(cases)) or 'as a whole'}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--once", choices=("plain", "served"))
    parser.add_argument("modules", nargs="*")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        suite = Suite(python_with_suite(), os.path.abspath(wanted.library), folder)
        short = SHORT if wanted.half is None else SHORT[wanted.half::2]
        modules = [] if wanted.whole else wanted.modules or short
        if wanted.once != "plain":
            suite.check_served()
        if wanted.once:
            return suite.once(modules, served=wanted.once == "served")
        served = suite.run(modules, served=True)
        plain = suite.run(sorted(served), served=False) if served else {}
        new = new_failures(served, plain)
        show("failures with us", served)
        show("of these, failures without us", plain)
        confirmed = {}
        for module in sorted(new):
            again = new_failures(suite.run([module], served=True, alone=True),
                                 suite.run([module], served=False, alone=True))
            confirmed.update(again)
        if new:
            show("failures with us only, at first", new)
        show(f"new failures of line {os.environ['HZ_TEST_LINE']}", confirmed)
    return 1 if confirmed else 0


if __name__ == "__main__":
    sys.exit(main())
