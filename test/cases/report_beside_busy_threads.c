// SPDX-License-Identifier: Apache-2.0
// A thread frees a block twice while others are busy in the heap. The process that walks to the calls has the
// heap as it was at its fork: another thread may hold a lock of it. The report has its calls all the same.
// run: HZ_ON_INVALID=report
// alone
// prints: ok
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 3, kReports = 8, kRounds = 6 };

static volatile int ended;

static void* work(void* unused) {
  (void)unused;
  void* blocks[64] = {0};
  for (unsigned i = 0; !ended; ++i) {
    free(blocks[i % 64]);
    blocks[i % 64] = malloc(i * 37 % 30000);
  }
  for (int i = 0; i < 64; ++i) free(blocks[i]);
  return NULL;
}
static int reports(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < kReports; ++i) {
    void* volatile block = malloc(1000);
    free((char*)block + 16);
    free(block);
  }
  ended = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}

// Returns how many of the reports of a process came to main.
static int reports_to_main(const char* program) {
  int ends[2], found = 0;
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    execl(program, program, "reports", NULL);
    _exit(1);
  }
  close(ends[1]);
  FILE* const lines = fdopen(ends[0], "r");
  char line[1000];
  while (fgets(line, sizeof line, lines) != NULL)
    if (strncmp(line, "hz: called from main+", 21) == 0) ++found;
  fclose(lines);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? found : -1;
}

int main(int argc, char** argv) {
  if (argc > 1) return reports();
  int found = 0;
  for (int i = 0; i < kRounds; ++i) found += reports_to_main(argv[0]);
  printf(found == kRounds * kReports ? "ok\n" : "%d of %d reports have their calls\n", found,
         kRounds * kReports);
  return 0;
}
