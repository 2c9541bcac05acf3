// SPDX-License-Identifier: Apache-2.0
// sigset, bsd_signal and ssignal show the default action where SIGTERM, SIGSEGV or SIGBUS has a handler of
// ours, as signal does. A program that sets the default action by one of them still has its statistics
// written when SIGTERM ends it.
// run: HZ_STATS=1 HZ_STATS_FILE=/dev/null
// run: HZ_GUARD_SAMPLE=10
// run:
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*Handler)(int);
typedef Handler (*Set)(int, Handler);

static int failed;
static void expect(int right, const char* what, int number) {
  if (!right) printf("wrong: %s of signal %d\n", what, number), failed = 1;
}
static void other(int number) { (void)number; }

static void check(Set set, const char* name, int number) {
  if (set == NULL) return;
  expect(set(number, other) == SIG_DFL, name, number);
  expect(set(number, SIG_DFL) == other, name, number);
  expect(set(number, SIG_IGN) == SIG_DFL, name, number);
  expect(set(number, SIG_DFL) == SIG_IGN, name, number);
}

int main(void) {
  static const int kNumbers[] = {SIGTERM, SIGSEGV, SIGBUS, SIGUSR1};
  free(malloc(100));
  const Set set_and_unblock = (Set)dlsym(RTLD_DEFAULT, "sigset");
  for (unsigned i = 0; i < sizeof kNumbers / sizeof *kNumbers; ++i) {
    check((Set)dlsym(RTLD_DEFAULT, "bsd_signal"), "bsd_signal", kNumbers[i]);
    check((Set)dlsym(RTLD_DEFAULT, "ssignal"), "ssignal", kNumbers[i]);
    check(set_and_unblock, "sigset", kNumbers[i]);
    if (set_and_unblock == NULL) continue;
    expect(set_and_unblock(kNumbers[i], SIG_HOLD) == SIG_DFL, "sigset that blocks", kNumbers[i]);
    expect(set_and_unblock(kNumbers[i], SIG_DFL) == SIG_HOLD, "sigset that unblocks", kNumbers[i]);
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    expect(sigismember(&blocked, kNumbers[i]) == 0, "the mask", kNumbers[i]);
  }
  if (set_and_unblock != NULL) expect(set_and_unblock(-1, SIG_DFL) == SIG_ERR, "sigset", -1);
  if (!failed) puts("ok");
  return failed;
}
