// SPDX-License-Identifier: Apache-2.0
// The time of large blocks is in proportion to their number, also where they are freed from the last to the
// first, and where many free places are a little too short. (The source read the rows of the whole free run
// for each block that it purged, and all runs of a list for each block that it sought: 16 times as long for
// four times as many.)
//
// lines: hakozuna hz3 hz7 secure
// prints: ok
// seconds: 30
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kFew = 2500, kMany = 4 * kFew, kTries = 3 };
static const size_t kSize = 4400000, kLarger = 4500000;
static char* blocks[kMany];
static char* more[kMany];

static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void take(char** where, int from, int count, int step, size_t size) {
  for (int i = from; i < count; i += step)
    if ((where[i] = malloc(size)) == NULL) exit(77);  // fewer addresses
}
static double backwards(int count) {
  take(blocks, 0, count, 1, kSize);
  const double began = seconds();
  for (int i = count; i-- > 0;) free(blocks[i]);
  return seconds() - began;
}
static double holes(int count) {
  take(blocks, 0, count, 1, kSize);
  for (int i = 0; i < count; i += 2) free(blocks[i]);
  const double began = seconds();
  take(more, 0, count, 2, kLarger);
  return seconds() - began;
}
// The least of a few processes: other work on the machine makes one longer.
static double least(double (*of)(int), int count) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    int ends[2];
    double taken = 0;
    if (pipe(ends) != 0) exit(1);
    const pid_t child = fork();
    if (child == 0) {
      taken = of(count);
      _exit(write(ends[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
    }
    close(ends[1]);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status == 77 << 8) exit(77);
    if (read(ends[0], &taken, sizeof taken) != sizeof taken) exit(1);
    close(ends[0]);
    if (i == 0 || taken < best) best = taken;
  }
  return best;
}

int main(void) {
  static const struct {
    double (*of)(int);
    const char* name;
  } kCases[] = {{backwards, "freed backwards"}, {holes, "beside holes"}};
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    const double few = least(kCases[i].of, kFew), many = least(kCases[i].of, kMany);
    const double most = 8 * few + 0.02;
    fprintf(stderr, "%s: %.4f s, %.4f s\n", kCases[i].name, few, many);
    if (many > most)
      return printf("%s: %.3f s for few, %.3f s for four times as many\n", kCases[i].name, few, many), 1;
  }
  puts("ok");
  return 0;
}
