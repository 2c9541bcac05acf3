// SPDX-License-Identifier: Apache-2.0
//
// A fork in a process of one thread, whose child ends at once, costs few page faults more than without us, in
// the parent and in the child: each is a page that is copied, or code that is mapped. The program runs itself
// without us to compare.
//
// lines: hakozuna
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 64, kMoreInParent = 1, kMoreInChild = 8 };  // measured: 0 and 4

static long faults_of(int who) {
  struct rusage used;
  getrusage(who, &used);
  return used.ru_minflt;
}
static void fork_often(int times) {
  for (int i = 0; i < times; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) exit(1);
  }
}
// The mean of many forks, rounded up: the kernel may map a page for a moment.
static void count(long* parent, long* child) {
  void* blocks[300];
  for (int i = 0; i < 300; ++i) blocks[i] = malloc(16 + 3 * (size_t)i);
  for (int i = 0; i < 300; i += 2) free(blocks[i]);
  fork_often(4);  // what is done once
  const long own = faults_of(RUSAGE_SELF), children = faults_of(RUSAGE_CHILDREN);
  fork_often(kForks);
  *parent = (faults_of(RUSAGE_SELF) - own + kForks - 1) / kForks;
  *child = (faults_of(RUSAGE_CHILDREN) - children + kForks - 1) / kForks;
  for (int i = 1; i < 300; i += 2) free(blocks[i]);
}

int main(int argc, char** argv) {
  long parent, child, usual_parent, usual_child;
  count(&parent, &child);
  if (argc > 1) {
    printf("%ld %ld\n", parent, child);
    return 0;
  }
  char command[4096];
  snprintf(command, sizeof command, "'%s' without", argv[0]);
  unsetenv("LD_PRELOAD");
  FILE* const answer = popen(command, "r");
  if (answer == NULL || fscanf(answer, "%ld %ld", &usual_parent, &usual_child) != 2) return 77;
  pclose(answer);
  printf("parent %ld without us %ld, child %ld without us %ld\n", parent, usual_parent, child, usual_child);
  return parent <= usual_parent + kMoreInParent && child <= usual_child + kMoreInChild ? 0 : 1;
}
