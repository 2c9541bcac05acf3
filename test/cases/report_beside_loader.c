// SPDX-License-Identifier: Apache-2.0
// A thread frees a block twice while another one has the loader's lock, and waits for it: the plugin's
// constructor. The walk to the calls needs that lock. It is given up, and the report ends.
// run: HZ_ON_INVALID=report
// lines: hakozuna hz7
// alone
// prints: ok
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (dlopen(argv[1], RTLD_NOW) == NULL) return puts(dlerror()), 1;
  puts("ok");
  return 0;
}
