// SPDX-License-Identifier: Apache-2.0
// A handler of SIGSEGV that stood before guarded pages began is the program's still, after it has put the
// default action in its place and put the handler back.
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6 hz8 secure
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sigjmp_buf back;
static void handle(int number) { siglongjmp(back, number); }

static int is_handled(void) {
  static char* volatile nowhere;
  if (sigsetjmp(back, 1) != 0) return 1;
  *nowhere = 1;
  return 0;
}

int main(void) {
  int (*ctl)(const char*, const char*, char*, size_t) =
      (int (*)(const char*, const char*, char*, size_t))dlsym(RTLD_DEFAULT, "hz_ctl");
  struct sigaction usual, found;
  char answer[200];
  signal(SIGSEGV, handle);
  free(malloc(1));
  if (ctl != NULL && ctl("guard_sample", "1000", answer, sizeof answer) != 0) return puts(answer), 1;
  memset(&usual, 0, sizeof usual);
  usual.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &usual, &found);
  sigaction(SIGSEGV, &found, NULL);
  puts(is_handled() ? "ok" : "wrong");
  return 0;
}
