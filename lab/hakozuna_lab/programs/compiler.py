# SPDX-License-Identifier: Apache-2.0
"""g++ and clang++ on one file heavy with templates, optimised. The file is that of test/preload/g++.sh, which links and
runs the result, too; here the compiler proper is all that is measured."""

import functools

from hakozuna_lab.programs.program import SHARED, Job, Program, Record, find, first_line, measure_to_end


def compile_templates(name: str, job: Job) -> Record:
    # A part of a file does not compile; less than all of it is nothing.
    source = SHARED / "templates.cpp" if job.scale >= 1 else "/dev/null"
    options = ["-std=c++17", "-O2", "-g", "-c", "-x", "c++", str(source), "-o", "templates.o"]
    return measure_to_end(job, [find(name), *options], 1)


def version(name: str) -> str:
    return first_line(find(name), "-dumpfullversion" if name == "g++" else "-dumpversion")


def compiler(name: str) -> Program:
    needs = (name, "as", "time") if name == "g++" else (name, "time")
    return Program(
        name, ("templates",), needs, functools.partial(version, name), functools.partial(compile_templates, name)
    )


GXX = compiler("g++")
CLANGXX = compiler("clang++")
