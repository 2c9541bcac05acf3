// SPDX-License-Identifier: Apache-2.0
//
// hostile LINE LIBRARY      commits every kind of kinds.hpp, each in a process of its own that has LIBRARY
//                           preloaded, two at a time, and compares what came of it with what is expected of
//                           LINE (secure, or any other); -v prints all of them
// hostile FAMILY NUMBER     commits one kind, in this process
//
// Exit code 0 only if every kind ended as expected, and as many of them were found as the line promises.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "hostile/kinds.hpp"

extern char** environ;

namespace hz_test {
namespace {

constexpr int kThwartedCode = 64;
constexpr char kReached = '!';
constexpr unsigned kAtOnce = 2, kSeconds = 60;

// --- in the process of a kind

int Commit(const char* name, std::size_t number) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kSeconds);
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    if (std::strcmp(kFamilies[i].name, name) != 0) continue;
    const End end = kFamilies[i].commit(kSizes[number]);
    if (end == End::kUnseen && write(1, &kReached, 1) != 1) return 3;
    return end == End::kThwarted ? kThwartedCode : 0;
  }
  return 2;
}

// --- in the one that runs them

struct Kind {
  const Family* family = nullptr;
  std::size_t number = 0;
  pid_t pid = 0;
  int out = -1, error = -1;
  std::string how;

  std::string name() const {
    return family->sizes == 1 ? family->name : std::string(family->name) + "." + kSizeNames[number];
  }
  bool reached_its_end() const { return how == "none" || how.find("@exit") != std::string::npos; }
};

std::string Contents(int file) {
  std::string all;
  char some[4096];
  for (ssize_t n = 0; (n = read(file, some, sizeof some)) > 0;) all.append(some, static_cast<std::size_t>(n));
  close(file);
  return all;
}

bool Begin(Kind& kind, const std::string& preload) {
  int out[2], error[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, out[1], 1);
  posix_spawn_file_actions_adddup2(&files, error[1], 2);
  std::string number = std::to_string(kind.number), name = kind.family->name, program = "/proc/self/exe";
  char* const arguments[] = {program.data(), name.data(), number.data(), nullptr};
  std::vector<char*> environment;
  for (char** one = environ; *one != nullptr; ++one)
    if (std::strncmp(*one, "LD_PRELOAD=", 11) != 0 && std::strncmp(*one, "HZ_", 3) != 0)
      environment.push_back(*one);
  std::string setting = preload;
  environment.push_back(setting.data());
  environment.push_back(nullptr);
  const int failed = posix_spawn(&kind.pid, program.c_str(), &files, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&files);
  close(out[1]);
  close(error[1]);
  kind.out = out[0];
  kind.error = error[0];
  return failed == 0;
}

std::string Ended(Kind& kind, int status) {
  const std::string said = Contents(kind.error);
  const bool reached = Contents(kind.out).find(kReached) != std::string::npos;
  const std::size_t at = said.find(": E0");
  if (at != std::string::npos) return said.substr(at + 2, 3) + (reached && !WIFEXITED(status) ? "@exit" : "");
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGILL
               ? "SEGV"
               : "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) == kThwartedCode) return "thwarted";
  if (WEXITSTATUS(status) == 0 && reached) return "none";
  return "exit code " + std::to_string(WEXITSTATUS(status)) + " " + said;
}

const char* ExpectedOf(const Kind& kind, bool secure) {
  const Expected& all = secure ? kind.family->secure : kind.family->plain;
  std::size_t i = kind.number;
  while (i != 0 && (all.of[i] == nullptr || *all.of[i] == '\0')) --i;
  return all.of[i];
}
bool IsAmong(std::string_view how, std::string_view alternatives) {
  while (true) {
    const std::size_t bar = alternatives.find('|');
    const std::string_view one = alternatives.substr(0, bar);
    if (one == "*" || one == how) return true;
    if (bar == std::string_view::npos) return false;
    alternatives.remove_prefix(bar + 1);
  }
}

bool RunAll(std::vector<Kind>& kinds, const std::string& preload) {
  std::size_t begun = 0, running = 0;
  while (begun < kinds.size() || running != 0) {
    while (begun < kinds.size() && running < kAtOnce) {
      if (!Begin(kinds[begun], preload)) return std::perror("hostile"), false;
      ++begun;
      ++running;
    }
    int status = 0;
    const pid_t pid = wait(&status);
    --running;
    for (std::size_t i = 0; i < begun; ++i)
      if (kinds[i].pid == pid) kinds[i].how = Ended(kinds[i], status);
  }
  return true;
}

struct Count {
  unsigned found = 0, all = 0;
  void add(bool was_found) {
    found += was_found ? 1 : 0;
    ++all;
  }
};

// Of the public suites' 116 kinds three (realloc_reuse) end as they do whatever an allocator does.
constexpr unsigned kPublicForNobody = 3;
constexpr unsigned kLeastKinds = 120, kLeastPublic = 105, kAllPublic = 116, kAllBadPublic = 36;

int CommitAll(const char* line, const char* library, bool verbose) {
  const bool secure = std::strcmp(line, "secure") == 0;
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    for (std::size_t number = 0; number < kFamilies[i].sizes; ++number) {
      Kind kind;
      kind.family = &kFamilies[i];
      kind.number = number;
      kinds.push_back(kind);
    }
  }
  if (!RunAll(kinds, std::string("LD_PRELOAD=") + library)) return 1;

  Count all, as_public, bad_public;
  bool failed = false;
  for (const Kind& kind : kinds) {
    const char* expected = ExpectedOf(kind, secure);
    const bool as_expected = IsAmong(kind.how, expected);
    const bool found = kind.how != "none";
    all.add(found);
    // E05 is fatal in secure alone.
    const bool stopped = !kind.reached_its_end() && (secure || kind.how != "E05");
    if (kind.family->is_public) as_public.add(stopped);
    if (kind.family->is_public && kind.family->is_bad_free) bad_public.add(found);
    if (!as_expected)
      std::printf("FAILED: %s: %s, expected %s\n", kind.name().c_str(), kind.how.c_str(), expected);
    if (verbose) std::printf("%-28s %-12s %s\n", kind.name().c_str(), kind.how.c_str(), expected);
    failed |= !as_expected;
  }
  as_public.all += kPublicForNobody;
  std::printf(
      "%s: %u of %u kinds found; as public suites count %u of %u; of double and invalid frees %u of %u\n",
      line, all.found, all.all, as_public.found, as_public.all, bad_public.found, bad_public.all);
  if (all.all < kLeastKinds || as_public.all != kAllPublic || bad_public.all != kAllBadPublic)
    failed = true, std::printf("FAILED: the corpus has fewer kinds than it should have\n");
  if (bad_public.found != bad_public.all) failed = true, std::printf("FAILED: a bad free was not found\n");
  if (secure && as_public.found < kLeastPublic)
    failed = true, std::printf("FAILED: at least %u should have been found\n", kLeastPublic);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  if (argc == 3 && argv[2][0] >= '0' && argv[2][0] <= '2' && argv[2][1] == '\0')
    return hz_test::Commit(argv[1], static_cast<std::size_t>(argv[2][0] - '0'));
  if (argc == 3 || (argc == 4 && std::strcmp(argv[3], "-v") == 0))
    return hz_test::CommitAll(argv[1], argv[2], argc == 4);
  std::fprintf(stderr, "usage: hostile LINE LIBRARY [-v] | hostile FAMILY NUMBER\n");
  return 2;
}
