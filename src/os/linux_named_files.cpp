// SPDX-License-Identifier: Apache-2.0
//
// Files that the user named: where the statistics line goes, and the profile; and that they are written when
// the process is told to end. See os.hpp for the contract; called when the heap opens, at exit and in a
// signal handler: async-signal-safe, and nothing allocates.
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

struct Path {
  char text[kLongestFolder + 1 + kLongestPath + 1] = {};  // "": none
};
constinit Path paths[2];
Path& path_of(File file) { return paths[static_cast<unsigned>(file)]; }

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

// `how`: O_APPEND or O_TRUNC, and what else the file is opened with; `path`: room for the name.
bool write_to(File named, Path& path, int how, const char* text, std::size_t length) {
  if (path_of(named).text[0] == 0) return false;
  expand(path_of(named).text, path.text, sizeof path.text);
  const NoCancel no_cancel;
  constexpr mode_t kMode = 0666;
  const int file = open(path.text, O_WRONLY | O_CREAT | how | O_CLOEXEC | O_NOCTTY, kMode);
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

bool keep_path(File file, const char* path, std::size_t length) {
  const KeepErrno keep;
  if (length == 0 || length > kLongestPath) return false;
  char* const text = path_of(file).text;
  std::size_t folder = 0;
  if (path[0] != '/') {
    if (getcwd(text, kLongestFolder) == nullptr) return text[0] = 0, false;
    folder = strlen(text);
    text[folder++] = '/';
  }
  memcpy(text + folder, path, length);
  text[folder + length] = 0;
  return true;
}

void write_statistics(const char* text, std::size_t length) {
  const KeepErrno keep;
  Path path;
  if (!write_to(File::kStatistics, path, O_APPEND, text, length)) write_error(text, length);
}

bool write_profile(const char* text, std::size_t length) {
  const KeepErrno keep;
  static constinit Path path;  // no stack of 2 KiB: the program may ask for it anywhere
  return write_to(File::kProfile, path, O_TRUNC | O_NONBLOCK, text, length);  // nobody may read from a pipe
}

const char* kept_path(File file) { return path_of(file).text; }

std::ptrdiff_t read_profile(char* out, std::size_t room) {
  const KeepErrno keep;
  const NoCancel no_cancel;
  static constinit Path expanded;  // no stack of 2 KiB: this may be a process's first call of malloc
  expand(kept_path(File::kProfile), expanded.text, sizeof expanded.text);
  // What would not end, or would wait for somebody else, is no profile.
  const int file = open(expanded.text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return -1;
  std::size_t bytes = 0;
  for (ssize_t n = 1; n != 0 && bytes < room;) {
    n = read(file, out + bytes, room - bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return close(file), -1;
    bytes += static_cast<std::size_t>(n);
  }
  close(file);
  return static_cast<std::ptrdiff_t>(bytes);
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
