// SPDX-License-Identifier: Apache-2.0
// A crash handler that puts the default action back and returns is followed by our report of the access, and
// by the end through the signal.
// run: HZ_GUARD_SAMPLE=1 signal
// run: HZ_GUARD_SAMPLE=1 sigaction
// run: HZ_GUARD_SAMPLE=1 found
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6 hz8 secure
// alone
// prints: E08
// exits: -11
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* how;
static struct sigaction found;
static volatile sig_atomic_t times;

static void put_back(int number) {
  struct sigaction usual;
  memset(&usual, 0, sizeof usual);
  usual.sa_handler = SIG_DFL;
  if (++times > 1) abort();
  if (strcmp(how, "signal") == 0) signal(number, SIG_DFL);
  if (strcmp(how, "sigaction") == 0) sigaction(number, &usual, NULL);
  if (strcmp(how, "found") == 0) sigaction(number, &found, NULL);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  how = argv[1];
  struct sigaction own;
  memset(&own, 0, sizeof own);
  own.sa_handler = put_back;
  sigaction(SIGSEGV, &own, &found);
  char* volatile block = malloc(40);
  free(block);
  return block[3];
}
