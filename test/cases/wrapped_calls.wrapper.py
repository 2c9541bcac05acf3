# SPDX-License-Identifier: Apache-2.0
"""wrapped_calls.wrapper.py OUTPUT LIBRARY...: writes the C source of a library that wraps each function which one of
these libraries imports from the C library. A wrapper keeps the arguments, allocates, and jumps to the next function of
that name. x86-64 only."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char* const names[] = {NAMES};
static void* found[sizeof names / sizeof *names];
static __thread int inside;

// Called by each wrapper: where to jump.
__attribute__((used)) static void* note(unsigned long which) {
  if (found[which] == NULL) {
    found[which] = dlsym(RTLD_NEXT, names[which]);
    if (found[which] == NULL) abort();
  }
  if (inside) return found[which];  // what allocates may call the same
  inside = 1;
  void* large = malloc(100000);
  char* line = NULL;
  if (asprintf(&line, "%s %p\n", names[which], large) >= 0) free(line);
  free(large);
  inside = 0;
  return found[which];
}

__asm__(
    ".text\n"
    "wrapper:\n"
    "  push %rdi\n  push %rsi\n  push %rdx\n  push %rcx\n  push %r8\n  push %r9\n  push %rax\n"
    "  sub $128, %rsp\n"
    "  movups %xmm0, (%rsp)\n  movups %xmm1, 16(%rsp)\n  movups %xmm2, 32(%rsp)\n  movups %xmm3, 48(%rsp)\n"
    "  movups %xmm4, 64(%rsp)\n  movups %xmm5, 80(%rsp)\n  movups %xmm6, 96(%rsp)\n  movups %xmm7, 112(%rsp)\n"
    "  mov %r11, %rdi\n"
    "  call note\n"
    "  mov %rax, %r11\n"
    "  movups (%rsp), %xmm0\n  movups 16(%rsp), %xmm1\n  movups 32(%rsp), %xmm2\n  movups 48(%rsp), %xmm3\n"
    "  movups 64(%rsp), %xmm4\n  movups 80(%rsp), %xmm5\n  movups 96(%rsp), %xmm6\n  movups 112(%rsp), %xmm7\n"
    "  add $128, %rsp\n"
    "  pop %rax\n  pop %r9\n  pop %r8\n  pop %rcx\n  pop %rdx\n  pop %rsi\n  pop %rdi\n"
    "  jmp *%r11\n"
WRAPPERS);
"""


def symbols(library: str, *options: str) -> list[list[str]]:
    """The words of each line that nm prints."""
    command = ["nm", "-D", *options, library]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split() for line in text.splitlines()]


def main(output: str, *libraries: str) -> int:
    """What is imported with a version is the C library's; of that, what it has as a function."""
    imported = {words[-1] for library in libraries for words in symbols(library, "--undefined-only")}
    wanted = {name.split("@")[0] for name in imported if "@" in name}
    resolved = subprocess.run(["ldd", libraries[0]], check=True, capture_output=True, text=True).stdout
    c_library = re.search(r"libc\.so\.6 => (\S+)", resolved)
    if c_library is None:
        return 1
    functions = {words[-1].split("@")[0] for words in symbols(c_library[1], "--defined-only") if words[1] in "TWi"}
    names = sorted(name for name in wanted & functions if name != "dlsym")
    wrappers = [
        f'    ".globl {name}\\n.type {name}, @function\\n{name}:\\n  mov ${number}, %r11d\\n  jmp wrapper\\n"'
        for number, name in enumerate(names)
    ]
    text = SOURCE.replace("NAMES", ", ".join(f'"{name}"' for name in names)).replace("WRAPPERS", "\n".join(wrappers))
    Path(output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
