// SPDX-License-Identifier: Apache-2.0
// With HZ_STATS the library keeps a second descriptor of stderr, for programs that close theirs. A program
// may close that one, as closefrom(3) does, or open another file that gets its number: the line at the exit
// goes to the stderr that is there, or was there at the start, and never into the other file.
// run: HZ_STATS=1
// alone
// prints: ok
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[] = "/tmp/hz-stderr-kept-XXXXXX";

static void replace(int number) {
  const int file = open(name, O_WRONLY | O_APPEND);
  if (file < 0 || dup2(file, number) < 0) _exit(3);
}

static int child(const char* what) {
  if (strcmp(what, "others") == 0) {
    for (int file = 3; file < 400; ++file) close(file);
  } else if (strcmp(what, "copy") == 0) {
    replace(100);
  } else if (strcmp(what, "stderr") == 0) {
    replace(STDERR_FILENO);
  } else if (strcmp(what, "closed") == 0) {
    close(STDERR_FILENO);
  }
  free(malloc(100));
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2) return strcpy(name, argv[0]), child(argv[1]);
  static const char* const kWays[] = {"nothing", "others", "copy", "stderr", "closed"};
  const int file = mkstemp(name);
  int failed = 0;
  for (unsigned i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const pid_t one = fork();
    if (one == 0) {
      dup2(ends[1], STDERR_FILENO);
      for (int other = 3; other < 400; ++other) close(other);
      execl("/proc/self/exe", name, kWays[i], (char*)NULL);
      _exit(2);
    }
    close(ends[1]);
    char text[8192];
    size_t length = 0;
    for (ssize_t n = 0; (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
      length += (size_t)n;
    text[length] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(one, &status, 0);
    if (status != 0 || strstr(text, "hz: stats ") == NULL)
      printf("wrong: %s: status %d, stderr '%s'\n", kWays[i], status, text), failed = 1;
    if (lseek(file, 0, SEEK_END) != 0)
      printf("wrong: %s: written into the other file\n", kWays[i]), failed = 1;
  }
  unlink(name);
  if (!failed) puts("ok");
  return failed;
}
