// SPDX-License-Identifier: Apache-2.0
//
// Where the statistics line goes, and that it is written when the process is told to end. See os.hpp for the
// contract; called when the heap opens, at exit and in a signal handler: async-signal-safe, and nothing
// allocates.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "os/linux_file.hpp"
#include "os/os.hpp"

namespace hz::os {
namespace {

constexpr std::size_t kLongestPath = 1000;
constexpr std::size_t kLongestFolder = 1000;

constinit char statistics_path[kLongestFolder + 1 + kLongestPath + 1] = {};  // "": the error stream

// With the process's number in place of each %p.
void expand(const char* path, char* out, std::size_t capacity) {
  char* const end = out + capacity - 1;
  for (const char* in = path; *in != 0 && out != end;) {
    if (in[0] != '%' || in[1] != 'p') {
      *out++ = *in++;
      continue;
    }
    in += 2;
    char digits[20];
    unsigned count = 0;
    for (std::uint64_t n = process_id(); n != 0; n /= 10) digits[count++] = static_cast<char>('0' + n % 10);
    while (count != 0 && out != end) *out++ = digits[--count];
  }
  *out = 0;
}

bool append(const char* path, const char* text, std::size_t length) {
  const NoCancel no_cancel;
  constexpr mode_t kMode = 0666;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, kMode);
  if (file < 0) return false;
  const bool whole = write(file, text, length) == static_cast<ssize_t>(length);
  close(file);
  return whole;
}

using LastWords = void (*)();
constinit LastWords last_words = nullptr;

void end(int signal) {
  last_words();
  raise(signal);  // its handler is the default again
}

}  // namespace

bool write_statistics_to(const char* path, std::size_t length) {
  const KeepErrno keep;
  if (length == 0 || length > kLongestPath) return false;
  std::size_t folder = 0;
  if (path[0] != '/') {
    if (getcwd(statistics_path, kLongestFolder) == nullptr) return statistics_path[0] = 0, false;
    folder = strlen(statistics_path);
    statistics_path[folder++] = '/';
  }
  memcpy(statistics_path + folder, path, length);
  statistics_path[folder + length] = 0;
  return true;
}

void write_statistics(const char* text, std::size_t length) {
  const KeepErrno keep;
  if (statistics_path[0] != 0) {
    char path[sizeof statistics_path];
    expand(statistics_path, path, sizeof path);
    if (append(path, text, length)) return;
  }
  write_error(text, length);
}

void before_termination(void (*last)()) {
  const KeepErrno keep;
  struct sigaction now;
  if (sigaction(SIGTERM, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL)
    return;
  last_words = last;
  struct sigaction ours = {};
  ours.sa_handler = &end;
  ours.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
  sigaction(SIGTERM, &ours, nullptr);
}

}  // namespace hz::os
