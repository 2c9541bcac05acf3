// SPDX-License-Identifier: Apache-2.0
// signal(SIGSEGV, ...) shows the handler that stood before guarded pages began, or the default action, and
// never ours: a handler that was shown can be set by signal again, and called with the signal's number. What
// is set so does what it did before. (Ours was set without the details of a signal, which it reads.)
//
// run: HZ_GUARD_SAMPLE=1 raised
// run: HZ_GUARD_SAMPLE=1 read
// run: later
// run: HZ_GUARD_SAMPLE=1 called
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6 hz8 secure
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static void ignore(int number) { (void)number; }
static void leave(int number) { siglongjmp(back, number); }
static void (*found)(int);
static void hand_on(int number) {
  if (found == SIG_DFL) _exit(7);
  found(number);
}

static void fail(const char* text) {
  puts(text);
  exit(1);
}
static void expect_default(int number) {
  void (*const old)(int) = signal(number, ignore);
  if (old != SIG_DFL) fail("the default action is not shown");
  signal(number, old);
}

// How a child ends.
static int end_of(void (*what)(void)) {
  int status = 0;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    fclose(stderr);
    what();
    _exit(0);
  }
  waitpid(child, &status, 0);
  return status;
}
static void raise_it(void) { raise(SIGSEGV); }
static void read_it(void) {
  char* volatile block = malloc(40);
  free(block);
  if (block[3] == 1) _exit(1);
}
static void hand_it_on(void) {
  found = signal(SIGSEGV, hand_on);
  read_it();
}

int main(int argc, char** argv) {
  int (*ctl)(const char*, const char*, char*, size_t) =
      (int (*)(const char*, const char*, char*, size_t))dlsym(RTLD_DEFAULT, "hz_ctl");
  char answer[200];
  free(malloc(1));
  if (argc != 2) return 2;
  if (strcmp(argv[1], "later") == 0) {
    signal(SIGSEGV, leave);
    if (ctl != NULL && ctl("guard_sample", "1", answer, sizeof answer) != 0) fail(answer);
    if (signal(SIGSEGV, ignore) != leave) fail("the program's handler is not shown");
    signal(SIGSEGV, leave);
    if (sigsetjmp(back, 1) == 0) {
      raise(SIGSEGV);
      fail("the program's handler is not called");
    }
  } else {
    expect_default(SIGSEGV);
    expect_default(SIGSEGV);
    expect_default(SIGBUS);
    if (strcmp(argv[1], "raised") == 0 && WTERMSIG(end_of(raise_it)) != SIGSEGV) fail("it goes on");
    if (strcmp(argv[1], "read") == 0 && ctl != NULL && WTERMSIG(end_of(read_it)) != SIGSEGV) fail("it reads");
    if (strcmp(argv[1], "called") == 0 && ctl != NULL && WEXITSTATUS(end_of(hand_it_on)) != 7)
      fail("a handler finds another than the default one");
  }
  puts("ok");
  return 0;
}
