// SPDX-License-Identifier: Apache-2.0
//
// A program may be started with a name of any length: its statistics line is whole nevertheless.
//
// run: HZ_STATS=json
// prints: "program":"n{255}","counting".*"preset_moves":\d+\}\n$
// alone
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  static char name[2000];
  memset(name, 'n', sizeof name - 1);
  if (argc == 1) execl("/proc/self/exe", name, argv[0], (char*)NULL);
  return argc == 1;
}
