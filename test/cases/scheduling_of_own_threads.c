// SPDX-License-Identifier: Apache-2.0
// A thread of real-time class on one processor makes the heap start its threads, in the process and in a
// child of a fork. They run in the normal class, on all processors that the process had at its start.
//
// run:
// run: HZ_CONTROL=1
// prints: ok
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 12000, kSize = 1000, kPatience = 40 };

static cpu_set_t at_start;

static void burst(void) {
  static void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(kSize);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
}

static int is_ours(const char* task) {
  char path[300], name[32] = "";
  snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fgets(name, sizeof name, file) == NULL) name[0] = 0;
  fclose(file);
  return strncmp(name, "hz-", 3) == 0;
}

// Returns how many threads of the heap have another class or other processors.
static int inherited(void) {
  int found = 0;
  DIR* const tasks = opendir("/proc/self/task");
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
    if (task->d_name[0] == '.' || !is_ours(task->d_name)) continue;
    const int thread = atoi(task->d_name);
    cpu_set_t cpus;
    sched_getaffinity(thread, sizeof cpus, &cpus);
    if (sched_getscheduler(thread) != SCHED_OTHER || !CPU_EQUAL(&cpus, &at_start)) ++found;
  }
  closedir(tasks);
  return found;
}

// A thread that has just begun still has what it inherited.
static int check(const char* where) {
  burst();
  usleep(50000);
  for (int i = 0; inherited() != 0; ++i) {
    if (i == kPatience) return printf("%s: %d threads inherited\n", where, inherited()), 1;
    usleep(20000);
  }
  return 0;
}

static void* idle(void* unused) {
  pause();
  return unused;
}

static void* run(void* unused) {
  cpu_set_t one;
  CPU_ZERO(&one);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &at_start)) --last;
  CPU_SET(last, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) perror("sched_setaffinity");
  const struct sched_param priority = {.sched_priority = 10}, none = {.sched_priority = 0};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) sched_setscheduler(0, SCHED_BATCH, &none);
  int failed = check("process");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    const int wrong = check("child");
    fflush(stdout);
    _exit(wrong);
  }
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0) failed = 1;
  if (!failed) puts("ok");
  return unused;
}

int main(void) {
  sched_getaffinity(0, sizeof at_start, &at_start);
  pthread_t thread;
  pthread_create(&thread, NULL, run, NULL);
  pthread_join(thread, NULL);
  return 0;
}
