// SPDX-License-Identifier: Apache-2.0
//
// POSIX: files by their names, and what is done before a process is ended by SIGTERM. See named_files.hpp and
// os.hpp for the contracts; called when the heap opens, at exit and in a signal handler.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "os/named_files.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {
namespace files {

bool is_absolute(const char* path) { return path[0] == '/'; }

bool current_folder(char* out, std::size_t room) {
  const KeepErrno keep;
  return getcwd(out, room) != nullptr;
}

std::intptr_t open_to_write(const char* path, Write how) {
  const KeepErrno keep;
  const NoCancel no_cancel;
  constexpr mode_t kMode = 0666;
  const int flags = how == Write::kAppend ? O_APPEND : how == Write::kReplace ? O_TRUNC | O_NONBLOCK : O_EXCL;
  return open(path, O_WRONLY | O_CREAT | flags | O_CLOEXEC | O_NOCTTY, kMode);
}

bool write(std::intptr_t file, const char* text, std::size_t length) {
  const KeepErrno keep;
  const NoCancel no_cancel;
  while (length != 0) {
    const ssize_t n = ::write(static_cast<int>(file), text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text += n;
    length -= static_cast<std::size_t>(n);
  }
  return true;
}

void close_written(std::intptr_t file) {
  const KeepErrno keep;
  const NoCancel no_cancel;
  close(static_cast<int>(file));
}

bool rename(const char* from, const char* to) {
  const KeepErrno keep;
  return ::rename(from, to) == 0;
}

void remove(const char* path) {
  const KeepErrno keep;
  unlink(path);
}

std::ptrdiff_t read(const char* path, char* out, std::size_t room) {
  const KeepErrno keep;
  const NoCancel no_cancel;
  // What would not end, or would wait for somebody else, is no profile.
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return -1;
  std::size_t bytes = 0;
  for (ssize_t n = 1; n != 0 && bytes < room;) {
    n = ::read(file, out + bytes, room - bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return close(file), -1;
    bytes += static_cast<std::size_t>(n);
  }
  close(file);
  return static_cast<std::ptrdiff_t>(bytes);
}

}  // namespace files

namespace {

using LastWords = void (*)();
constinit LastWords last_words = nullptr;

void end(int signal) {
  last_words();
  raise(signal);  // its handler is the default again
}

}  // namespace

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
