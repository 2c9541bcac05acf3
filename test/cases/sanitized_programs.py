# SPDX-License-Identifier: Apache-2.0
# Programs that MemorySanitizer and ThreadSanitizer check. Their runtimes take most addresses when they start, which is
# after us: the heap keeps out of their place. Skipped where no compiler has such a runtime.
# lines: hakozuna hz7 secure
# alone
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
COMPILERS = (("clang", "memory"), ("clang", "thread"), ("gcc", "thread"))
SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void* work(void* bytes) {
  for (size_t n = (size_t)bytes; n != 0; n /= 2) free(memset(malloc(n), 1, n));
  return NULL;
}
int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, (void*)1000000) != 0) return 1;
  pthread_join(thread, NULL);  // first: a heap under ThreadSanitizer hands memory on without its knowledge
  work((void*)1000000);
  puts("ok");
  return 0;
}
"""


def run(command: list[str], preload: str) -> str:
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload:
        variables["LD_PRELOAD"] = preload
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=15, check=False)
    except FileNotFoundError:
        return "it is not there"
    return done.stdout + done.stderr + ("" if done.returncode == 0 else f"exit code {done.returncode}")


tried = 0
with tempfile.TemporaryDirectory() as folder:
    source, program = Path(folder, "source.c"), Path(folder, "program")
    source.write_text(SOURCE, encoding="utf-8")
    for compiler, sanitizer in COMPILERS:
        program.unlink(missing_ok=True)
        run([compiler, "-O1", "-pthread", f"-fsanitize={sanitizer}", str(source), "-o", str(program)], "")
        if not program.exists() or run([str(program)], "") != "ok\n":
            continue
        tried += 1
        said = run([str(program)], os.environ["LD_PRELOAD"])
        if said != "ok\n":
            sys.exit(f"{compiler} -fsanitize={sanitizer}: {said}")
sys.exit(0 if tried else SKIPPED)
