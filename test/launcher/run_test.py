# SPDX-License-Identifier: Apache-2.0
#
# `hz run` around a program: exit codes, arguments, environment, what cannot be served, statistics; and what hz says
# about itself.
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launcher import BUILD, DEFAULT, HELPERS, LINES, ROOT, environment, hz, library

# Allocates, and leaves stderr open to the end, which not every program does.
PROGRAM = [sys.executable, "-c", "print('text')"]


class ExitCodes(unittest.TestCase):
    def expect(self, code, *args, **changes):
        result = hz(*args, **changes)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_those_of_the_program(self):
        for code in (0, 1, 77):
            self.expect(code, "run", "--", "sh", "-c", f"exit {code}")

    def test_signal_of_the_program(self):
        self.expect(-signal.SIGTERM, "run", "--", "sh", "-c", "kill -TERM $$")

    def test_not_found(self):
        self.expect(127, "run", "--", "no-such-program-anywhere")

    def test_not_executable_in_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a-program").write_text("", encoding="utf-8")
            (Path(folder) / "a-folder").mkdir()
            path = f"{folder}:/usr/bin:/bin"
            for name, code in (("a-program", 126), ("a-folder", 127)):
                self.expect(code, "run", "--", name, PATH=path)
                self.assertIn("cannot be executed" if code == 126 else "was not found",
                              self.expect(1, "doctor", "--", name, PATH=path).stderr)

    def test_not_executable_for_what_measures(self):
        for words in (("run", "--measure"), ("run", "--profile-heap"), ("tune",)):
            self.assertIn("cannot be executed", self.expect(126, *words, "--", "/etc/passwd").stderr)

    def test_not_executable(self):
        self.expect(126, "run", "--", ROOT / "LICENSE")

    def test_unknown_option(self):
        self.assertIn("--nonsense", self.expect(125, "run", "--nonsense", "--", "true").stderr)

    def test_unknown_line_lists_the_lines(self):
        result = self.expect(125, "run", "--line", "nonsense", "--", "true")
        self.assertIn("nonsense", result.stderr)
        for line in LINES:
            self.assertIn(line, result.stderr.split(":")[-1].split())

    def test_line_is_no_pattern(self):
        self.expect(125, "run", "--line", "hz.", "--", "true")

    def test_line_without_a_name(self):
        self.expect(125, "run", "--line")

    def test_heap_profiles_of_nothing(self):
        for args in (["--leaks", "true"], ["--profile-heap=x", "true"], ["--profile-heap=0", "true"], ["--profile-heap"],
                     ["--profile-heap", "--measure", "true"], ["--line", "hz7", "--profile-heap", "true"]):
            self.assertEqual(len(self.expect(125, "run", *args).stderr.splitlines()), 1, args)

    def test_statistics_for_a_file_that_cannot_be_written(self):
        for file in ("/dev", "/dev/null/x", "no/such/folder/x"):
            self.assertIn(f"{file}: cannot be written", self.expect(125, "run", "--stats-file", file, "--", "true").stderr)
        self.expect(0, "run", "--stats-file", "/dev/stderr", "--", "true")

    def test_completion_of_other_shells_is_refused(self):
        self.expect(2, "completion", "tcsh")
        self.expect(2, "completion")
        self.expect(2, "completion", "bash", "zsh")

    def test_words_too_many(self):
        for words in (("version", "x"), ("doctor", "1", "2"), ("help", "nonsense"), ("doctor", "--line", DEFAULT, "1"),
                      ("help", "run", "x"), ("doctor", "")):
            self.assertIn("hz: error: ", self.expect(2, *words).stderr)

    def test_values_behind_an_equals_sign(self):
        for name in ("nonsense", ".*", "hz."):
            self.assertIn(f"there is no line '{name}'", self.expect(125, "run", f"--line={name}", "true").stderr)
        self.assertIn("--line needs a name", self.expect(125, "run", "--line=", "true").stderr)
        self.expect(0, "run", f"--line={DEFAULT}", "--stats-file=/dev/stderr", "true")
        self.assertIn("--pairs needs", self.expect(125, "tune", "--pairs=0", "true").stderr)
        self.expect(0, "doctor", f"--line={DEFAULT}", "--", "true")

    def test_numbers_that_are_too_large(self):
        self.assertIn("above 1G", self.expect(125, "run", "--profile-heap=2G", "true").stderr)
        self.assertIn("above 1G", self.expect(125, "run", f"--profile-heap={'9' * 30}", "true").stderr)
        self.assertIn("--pairs needs", self.expect(125, "run", "--measure", "--pairs", "9" * 20, "true").stderr)

    def test_a_relative_build_directory(self):
        folder, name = BUILD.parent, BUILD.name
        done = subprocess.run(
            [ROOT / "hz", "run", "sh", "-c", "cd /; grep -c libhakozuna /proc/self/maps"], cwd=folder,
            env=environment(HZ_BUILD_DIR=name), capture_output=True, text=True, timeout=60, check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_nothing_after_dashes(self):
        self.expect(125, "run", "--")

    def test_library_not_built(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn(empty, self.expect(125, "run", "--", "true", HZ_BUILD_DIR=empty).stderr)

    def test_path_that_a_preload_cannot_name(self):
        for character in " :":
            with tempfile.TemporaryDirectory(prefix=f"a{character}b") as odd:
                (Path(odd) / library().name).symlink_to(library())
                self.assertIn("LD_PRELOAD", self.expect(125, "run", "--", "true", HZ_BUILD_DIR=odd).stderr)

    def test_unknown_command(self):
        self.assertIn("usage:", self.expect(2, "nonsense").stderr)
        self.assertIn("usage:", self.expect(2).stderr)

    def test_what_cannot_be_asked_for(self):
        """Of each command: the same exit code, said on stderr alone, and before anything is built for it."""
        commands = self.expect(0, "completion", "words", "").stdout.split()
        self.assertIn("bench", commands)
        for command in set(commands) - {"help"}:
            result = self.expect(125 if command in ("run", "tune") else 2, command, "--no-such-option")
            self.assertEqual(result.stdout, "", command)
            self.assertNotIn("building", result.stderr, command)

    def test_help_and_version(self):
        help_text = self.expect(0, "help").stdout
        for line in LINES:
            self.assertIn(line, help_text)
        for word in ("version", "--version", "-V"):
            self.assertRegex(self.expect(0, word).stdout, r"^hakozuna \d+\.\d+\.\d+\n$")


    def test_each_command_has_help(self):
        with tempfile.TemporaryDirectory() as empty:  # nothing is built, and nothing runs
            for command in set(self.expect(0, "completion", "words", "").stdout.split()) - {"help"}:
                for words in ((command, "--help"), (command, "-h"), ("help", command)):
                    result = self.expect(0, *words, HZ_BUILD_DIR=empty)
                    self.assertTrue(result.stdout.startswith(f"usage: hz {command}"), result.stdout)
                    self.assertEqual(result.stderr, "")
            self.assertIn("--stats-file", self.expect(0, "run", "--line", "hz8", "--help", HZ_BUILD_DIR=empty).stdout)
        self.assertEqual(hz("run", "printf", "%s", "--help").stdout, "--help")

    def test_what_cannot_be_tuned(self):
        for word, code, *args in (("no program", 125), ("hz7", 125, "--line", "hz7", "true"), ("--nonsense", 125, "--nonsense"),
                                  ("number", 125, "--pairs", "0", "true"), ("not found", 127, "--", "no-such-program")):
            self.assertIn(word, self.expect(code, "tune", *args).stderr)


class Jemalloc(unittest.TestCase):
    """A program that is linked with jemalloc asks it for figures: they are to be ours."""

    PROGRAM = HELPERS / "hz-asks-jemalloc"

    def setUp(self):
        if not library("je").exists():
            self.skipTest("libhakozuna-je.so is not built")

    def expect(self, answer, told, *args, **changes):
        result = hz("run", *args, "--", self.PROGRAM, **changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith(answer), result.stdout)
        self.assertEqual(told, "linked with jemalloc" in result.stderr, result.stderr)
        return result

    def test_it_is_served_by_the_line_that_answers(self):
        self.assertIn("line je", self.expect("5.3.0", True).stderr)

    def test_a_line_that_is_named_is_taken(self):
        self.expect("5.3.0", False, "--line", "je")
        for line in LINES:
            self.expect("another's", False, "--line", line)

    def test_a_preload_of_the_users_does_not_count(self):
        own = str(HELPERS / "libjemalloc.so.2")
        self.assertNotIn("jemalloc", hz("run", "--", "true", LD_PRELOAD=own).stderr)

    def test_a_script_is_judged_by_its_program(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script"
            script.write_text(f"#!{self.PROGRAM}\n", encoding="utf-8")
            script.chmod(0o755)
            self.assertIn("linked with jemalloc", hz("run", "--", script).stderr)

    def test_without_that_line_the_default_one_serves_it_and_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / library().name).symlink_to(library())
            self.assertIn("there is no", self.expect("another's", True, HZ_BUILD_DIR=folder).stderr)

    def test_measured(self):
        result = hz("run", "--measure", "--pairs", "1", "--", self.PROGRAM)
        self.assertIn("linked with jemalloc", result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)


class Completion(unittest.TestCase):
    """What each shell offers for the last word, by the script that `hz completion` prints for it."""

    def expect_words(self, completed):
        self.assertEqual(completed("do"), ["doctor"])
        self.assertEqual(completed("run", "--mea"), ["--measure"])
        self.assertEqual(completed("test", "--al"), ["--all"])
        self.assertLessEqual(set(LINES), set(completed("run", "--line", "")))
        self.assertEqual(completed("completion", "z"), ["zsh"])

    def output(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f"{command[0]} is not installed")
        done = subprocess.run(list(map(str, command)), env=environment(), capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_bash(self):
        script = '. <("$1" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hz; printf "%s\n" "${COMPREPLY[@]}"'
        self.expect_words(lambda *words: self.output("bash", "-c", script, "bash", ROOT / "hz", *words).split())

    def test_zsh(self):
        """As a file of a folder where zsh looks; what compadd is told is what matches the word before the cursor."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "_hz").write_text(hz("completion", "zsh").stdout, encoding="utf-8")
            script = """fpath=($1 $fpath); shift; autoload -Uz compinit; compinit -u -D; [[ $_comps[hz] == _hz ]] || exit 1
                compadd() { print -l -- ${(M)${(P)2}:#$words[CURRENT]*} }
                words=("$@"); CURRENT=$#; _hz"""
            self.expect_words(lambda *words: self.output("zsh", "-f", "-c", script, "zsh", folder, ROOT / "hz", *words).split())

    def test_zsh_that_reads_it(self):
        script = 'autoload -Uz compinit; compinit -u -D; . <("$1" completion zsh); print $_comps[hz]'
        self.assertEqual(self.output("zsh", "-f", "-c", script, "zsh", ROOT / "hz"), "_hz\n")

    def test_fish(self):
        script = 'cd $argv[1]; set -e argv[1]; $argv[1] completion fish | source; complete -C (string join " " -- $argv)'
        with tempfile.TemporaryDirectory() as empty:  # fish offers files as well
            self.expect_words(lambda *words: self.output("fish", "--no-config", "-c", script, empty, ROOT / "hz", *words).split())


class HeapProfile(unittest.TestCase):
    """`hz run --profile-heap`: around a program, as without."""

    LEAK = [sys.executable, "-c", "import ctypes; ctypes.CDLL(None).malloc(8 << 20)"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name)

    def run_it(self, *args, **changes):
        return hz("run", *args, HZ_PROFILE_HEAP_FILE=str(self.scratch / "%p.heap"), **changes)

    def profiles(self):
        return sorted(self.scratch.glob("*.heap"))

    def test_what_is_told(self):
        result = self.run_it("--profile-heap", "--", *self.LEAK)
        self.assertEqual(result.returncode, 0, result.stderr)
        (file,) = self.profiles()
        self.assertIn(f"the heap profile is {file};", result.stderr)
        self.assertIn("\ninterval 524288\n", file.read_text(encoding="utf-8"))
        self.assertEqual(hz("prof", "--leaks", "--at-least", "8M", file).returncode, 1)

    def test_leaks(self):
        result = self.run_it("--profile-heap=65536", "--leaks", "--", *self.LEAK)
        self.assertEqual(result.returncode, 99, result.stderr)
        self.assertIn("8.0 MiB in 1 block live at the end", result.stderr)
        self.assertEqual(self.run_it("--profile-heap", "--leaks", "--", "true").returncode, 0)

    def test_codes_and_signals_of_the_program(self):
        self.assertEqual(self.run_it("--profile-heap", "--leaks", "--", "sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(self.run_it("--profile-heap", "--", "no-such-program-anywhere").returncode, 127)
        killed = self.run_it("--profile-heap", "--leaks", "--", "sh", "-c", "kill -KILL $$")
        self.assertEqual(killed.returncode, 128 + signal.SIGKILL)
        self.assertIn("sh was ended by signal 9, and wrote no heap profile", killed.stderr)

    def test_signals_to_hz_reach_the_program(self):
        command = [str(ROOT / "hz"), "run", "--profile-heap", "--", "sh", "-c", "trap 'exit 7' TERM; echo; read line"]
        with subprocess.Popen(command, env=environment(HZ_PROFILE_HEAP_FILE=str(self.scratch / "%p.heap")), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
            running.stdout.readline()
            running.terminate()
            self.assertEqual(running.wait(60), 7)

    def test_environment_and_input_of_the_program(self):
        names = "PYTHONPATH", "HZ_BUILD_DIR"
        shown = self.run_it("--profile-heap", "--", "sh", "-c", "cat; env", stdin="input\n", PYTHONPATH="/mine").stdout
        self.assertTrue(shown.startswith("input\n"))
        there = dict(line.split("=", 1) for line in shown.splitlines()[1:] if "=" in line)
        self.assertEqual({name: there.get(name) for name in names}, {"PYTHONPATH": "/mine", "HZ_BUILD_DIR": None})
        self.assertEqual(there["LD_PRELOAD"], str(library()))

    def test_no_profile_is_no_success(self):
        result = self.run_it("--profile-heap", "--leaks", "--", HELPERS / "hz-static-sleep", "0")
        self.assertEqual(result.returncode, 125)
        self.assertIn("wrote no heap profile", result.stderr)


class Unserved(unittest.TestCase):
    """What the loader will not give our library to is named, and runs all the same."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name)

    def expect(self, code, word, program, *args):
        result = hz("run", "--", program, *args)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        lines = [line for line in result.stderr.splitlines() if line.startswith("hz: warning: will not be served: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(word, lines[0])
        self.assertIn(str(program), lines[0])

    def changed(self, place, content):
        """A copy of sleep(1) with other bytes somewhere in its header."""
        program = self.scratch / "changed"
        sleep = bytearray(Path(shutil.which("sleep")).read_bytes())
        sleep[place:place + len(content)] = content
        program.write_bytes(sleep)
        program.chmod(0o755)
        return program

    def test_static(self):
        self.expect(0, "static program", HELPERS / "hz-static-sleep", 0)

    def test_headers_elsewhere(self):
        content = bytearray((HELPERS / "hz-static-sleep").read_bytes())
        headers = content[64:64 + 56 * int.from_bytes(content[56:58], "little")]
        content += b"\0" * (-len(content) % 4096)
        content[32:40] = len(content).to_bytes(8, "little")
        program = self.scratch / "moved"
        program.write_bytes(content + headers)
        program.chmod(0o755)
        self.expect(hz("run", "--", program, 0).returncode, "static program", program, 0)
        content = bytearray(Path(shutil.which("sleep")).read_bytes())
        headers = content[64:64 + 56 * int.from_bytes(content[56:58], "little")]
        content += b"\0" * (-len(content) % 4096)
        content[32:40] = len(content).to_bytes(8, "little")
        program.write_bytes(content + headers)
        self.assertNotIn("will not be served", hz("run", "--", program, 0).stderr)

    def test_another_malloc_in_front_is_told(self):
        result = hz("run", "--", "true", LD_PRELOAD=str(HELPERS / "libhz-own-malloc.so"))
        self.assertIn("will not be served", result.stderr)
        self.assertIn("comes first in LD_PRELOAD", result.stderr)

    def test_script_of_a_static_program(self):
        script = self.scratch / "script"
        script.write_text(f"#! {HELPERS / 'hz-static-sleep'} 0\n", encoding="utf-8")
        script.chmod(0o755)
        self.expect(0, "static program", script)

    def test_setuid(self):
        program = self.scratch / "privileged"
        shutil.copy(shutil.which("sleep"), program)
        program.chmod(0o4755)
        if not program.stat().st_mode & 0o4000:
            self.skipTest("this file system knows no setuid")
        self.expect(0, "setuid", program, 0)

    def test_other_processor(self):
        self.expect(126, "another kind of processor", self.changed(18, (243).to_bytes(2, "little")), 0)

    def test_32_bit(self):
        program = self.changed(4, b"\1")
        self.expect(hz("run", "--", program, 0).returncode, "not a 64-bit ELF", program, 0)

    def test_musl(self):
        glibc, musl = b"/lib64/ld-linux-x86-64.so.2\0", b"/lib/ld-musl-x86_64.so.1\0"
        place = Path(shutil.which("sleep")).read_bytes().find(glibc)
        if place < 0:
            self.skipTest("no x86-64 glibc program at hand")
        program = self.changed(place, musl.ljust(len(glibc), b"\0"))
        self.expect(hz("run", "--", program, 0).returncode, "uses musl", program, 0)

    def test_nothing_is_said_of_others(self):
        script = self.scratch / "script"
        script.write_text("#!/bin/sh\n:\n", encoding="utf-8")
        script.chmod(0o755)
        bare = self.scratch / "bare"
        bare.write_text(":\n", encoding="utf-8")
        bare.chmod(0o755)
        for program in (shutil.which("sleep"), script, bare):
            self.assertEqual(hz("run", "--", program, 0).stderr, "")

    def test_it_costs_next_to_nothing(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        log = self.scratch / "log"
        command = ["strace", "-f", "-qq", "-e", "trace=execve", "-o", log, ROOT / "hz", "run", "--", shutil.which("sleep"), "0"]
        subprocess.run(command, env=environment(), check=True, timeout=60)
        programs = [line for line in log.read_text(encoding="utf-8").splitlines() if line.endswith(" = 0")]
        self.assertLessEqual(len(programs), 16, "\n".join(programs))


class PassesOn(unittest.TestCase):
    def test_arguments(self):
        words = ["two words", "", "*", "$HOME", "a\\b", "'", '"', "-x", "--", "new\nline"]
        result = hz("run", "--", sys.executable, "-c", "import sys; print(repr(sys.argv[1:]))", *words)
        self.assertEqual(result.stdout.strip(), repr(words))

    def test_dashes_are_optional(self):
        self.assertEqual(hz("run", "echo", "--stats", "x").stdout, "--stats x\n")

    def test_program_name_with_an_equals_sign(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "a=b"
            program.symlink_to("/bin/echo")
            self.assertEqual(hz("run", "--", program, "x").stdout, "x\n")

    def test_input(self):
        self.assertEqual(hz("run", "--", "cat", stdin="text").stdout, "text")

    def test_existing_preload_stays_first(self):
        first = next(line.split()[-1] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
                    if "/libm.so" in line)
        result = hz("run", "--", sys.executable, "-c", "import os; print(os.environ['LD_PRELOAD'])", LD_PRELOAD=first)
        self.assertEqual(result.stdout, f"{first}:{library()}\n")

    def test_another_of_ours_is_replaced(self):
        first = next(line.split()[-1] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
                    if "/libm.so" in line)
        for other in (f"libhakozuna-{LINES[-1]}.so.0", library(LINES[-1]), library().with_name("libhakozuna.so")):
            for preload in (f"{other}:{first}", f"{first} {other}"):
                result = hz("run", "--", "printenv", "LD_PRELOAD", LD_PRELOAD=preload, LD_LIBRARY_PATH=str(BUILD))
                self.assertEqual((result.stdout, result.stderr), (f"{first}:{library()}\n", ""))

    def test_preload_alone(self):
        self.assertEqual(hz("run", "--", "printenv", "LD_PRELOAD").stdout, f"{library()}\n")

    def test_own_settings_do_not_leak(self):
        self.assertEqual(hz("run", "--", "printenv", "HZ_BUILD_DIR").returncode, 1)

    def test_through_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            link = Path(folder) / "hz"
            link.symlink_to(ROOT / "hz")
            self.assertEqual(hz("run", "echo", "x", launcher=link).stdout, "x\n")


class Statistics(unittest.TestCase):
    def test_silent_without(self):
        result = hz("run", "--", *PROGRAM)
        self.assertEqual((result.stdout, result.stderr), ("text\n", ""))

    def test_text(self):
        result = hz("run", "--stats", "--", *PROGRAM)
        self.assertEqual(result.stdout, "text\n")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith(f"hz: stats line={DEFAULT} "), result.stderr)

    def test_json(self):
        result = hz("run", "--stats=json", "--", *PROGRAM)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        told = json.loads(result.stderr)
        self.assertEqual((told["hz"], told["line"]), ("stats", DEFAULT))

    def test_names_the_process(self):
        told = json.loads(hz("run", "--stats=json", "--", sys.executable, "-c", "print('text')").stderr)
        self.assertGreater(told["pid"], 0)
        self.assertEqual(told["program"], Path(sys.executable).name)

    def test_at_a_signal(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stats"
            script = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
            result = hz("run", "--stats-file", file, "--", sys.executable, "-c", script)
            self.assertEqual((result.returncode, result.stderr), (-signal.SIGTERM, ""))
            self.assertTrue(file.read_text(encoding="utf-8").startswith(f"hz: stats line={DEFAULT} "))

    def test_a_file_for_each_process(self):
        script = "import os, subprocess; os.close(2); subprocess.run(['sleep', '0'])"
        with tempfile.TemporaryDirectory() as folder:
            for options in (["--stats=json", f"--stats-file={folder}/%p"], ["--stats-file", f"{folder}/%p", "--stats=json"]):
                self.assertEqual(hz("run", *options, "--", sys.executable, "-c", script).stderr, "")
                made = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in Path(folder).iterdir()}
                self.assertEqual({told["program"] for told in made.values()}, {Path(sys.executable).name, "sleep"})
                self.assertEqual([str(told["pid"]) for told in made.values()], list(made))

    def test_what_it_does_not_understand(self):
        self.assertIn("--stats-file FILE", hz("run", "--stats=x", "--", "true").stderr)
        self.assertIn("needs a name", hz("run", "--stats-file").stderr)

    def test_every_line(self):
        for line in LINES:
            for option in (["--line", line], [f"--line={line}"]):
                told = json.loads(hz("run", *option, "--stats=json", "--", *PROGRAM).stderr)
                self.assertEqual(told["line"], line)


class Demonstration(unittest.TestCase):
    program = BUILD / "bench" / "demo" / "hz-demo"

    def setUp(self):
        if not self.program.is_file():
            self.skipTest("built without HZ_BUILD_BENCH")

    def test_refuses_a_wrong_label(self):
        for expected in ("system", "nonsense"):
            result = hz("run", "--", self.program, expected, "0.01")
            self.assertEqual(result.returncode, 3)
            self.assertIn(f"refused: expected {expected}, but malloc is served by {DEFAULT}", result.stderr)
        self.assertEqual(hz("run", "--", self.program, DEFAULT, "0.01").returncode, 0)

    def test_table(self):
        result = hz("run")
        self.assertEqual(result.returncode, 0, result.stderr)
        head, *rows = result.stdout.splitlines()
        self.assertEqual(head.split()[-4:], ["C", "library", DEFAULT, "ratio"])
        self.assertEqual(len(rows), 3, result.stdout)
        for row in rows:
            theirs, ours, ratio = map(float, row.split()[-3:])
            self.assertGreater(theirs, 0)
            self.assertGreater(ours, 0)
            self.assertAlmostEqual(ratio, ours / theirs, delta=0.02 + 0.06 * ratio)


if __name__ == "__main__":
    unittest.main()
