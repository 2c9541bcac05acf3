// SPDX-License-Identifier: Apache-2.0
// A program that deletes objects by a type of another size does so at each of them. By default it goes on,
// and the first 16 are reported, so that its log does not fill. A line says that later ones are not. A
// program with HZ_ON_INVALID=report gets all of them; secure ends the program at the first.
// alone
// prints: ok
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr unsigned kObjects = 100;

int work() {
  for (unsigned i = 0; i < kObjects; ++i) operator delete (operator new(28), std::size_t{16});
  return 0;
}

unsigned count(const char* text, const char* what) {
  unsigned found = 0;
  for (const char* at = text; (at = std::strstr(at, what)) != nullptr; ++at) ++found;
  return found;
}

struct Result {
  unsigned reports, notices;
  bool ended_well;
};

Result run(const char* self, bool report_all) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (report_all) setenv("HZ_ON_INVALID", "report", 1);
    execl(self, self, "work", static_cast<char*>(nullptr));
    _exit(2);
  }
  close(ends[1]);
  static char text[1 << 20];
  std::size_t length = 0;
  for (ssize_t n = 0; (n = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
    length += static_cast<std::size_t>(n);
  text[length] = 0;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {count(text, " E05 size-mismatch ptr="), count(text, "hz: warning: E05 size-mismatch: 16 reported"),
          status == 0};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return work();
  const bool secure = std::strstr(std::getenv("LD_PRELOAD"), "secure") != nullptr;
  const Result normal = run(argv[0], false);
  const Result all = run(argv[0], true);
  const bool right = secure ? normal.reports == 1 && normal.notices == 0 && !normal.ended_well
                            : normal.reports == 16 && normal.notices == 1 && normal.ended_well;
  if (!right) std::printf("wrong: by default %u reports, %u notices\n", normal.reports, normal.notices);
  if (all.reports != kObjects || all.notices != 0 || !all.ended_well)
    std::printf("wrong: with report %u reports, %u notices\n", all.reports, all.notices);
  if (right && all.reports == kObjects && all.notices == 0 && all.ended_well) std::puts("ok");
  return 0;
}
