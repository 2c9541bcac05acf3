// SPDX-License-Identifier: Apache-2.0
//
// POSIX: files by their names, and what is done before a process is ended by SIGTERM. See named_files.hpp and
// os.hpp for the contracts; called when the heap opens, at exit and in a signal handler.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>

#include "base/compiler.hpp"
#include "os/calls.hpp"
#include "os/named_files.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {
namespace files {
namespace {

constexpr mode_t kMode = 0666;
constexpr unsigned kMostLinks = 4;           // of which each leads to the next
constexpr std::size_t kLongestTarget = 384;  // on a stack that may have 16 KiB

// The way to a file, which is no file yet.
#ifdef O_PATH
constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

// Links of /proc name what is open, and cannot be read as a path.
enum class Link : unsigned char { kTheirs, kOurs, kOfTheSystem };
Link link_at(long folder, const char* name) {
  struct stat found;
  if (call::lstat_at(folder, name, &found) != 0 || !S_ISLNK(found.st_mode)) return Link::kTheirs;
  if (found.st_uid != 0 && found.st_uid != static_cast<uid_t>(call::geteuid())) return Link::kTheirs;
  const dev_t lies_on = found.st_dev;
  return call::lstat_at(AT_FDCWD, "/proc/self", &found) == 0 && found.st_dev == lies_on ? Link::kOfTheSystem
                                                                                        : Link::kOurs;
}

void close_folder(long folder) {
  if (folder >= 0) call::close(folder);
}
// Reads the link that `text` names into the same array, right before `end`. Returns its first letter, or null
// if the link is too long.
const char* read_link(long folder, char* text, const char* end) {
  const auto room = static_cast<std::size_t>(end - text);
  // The kernel has read the name before it writes.
  const long length = call::readlink_at(folder, text, text, room);
  if (length <= 0 || static_cast<std::size_t>(length) >= room) return nullptr;
  const std::size_t begin = room - static_cast<std::size_t>(length);
  for (std::size_t i = room; i != begin; --i) text[i - 1] = text[i - 1 - begin];
  return text + begin;
}

// Opens a file and follows the links on its path. Errors: fails at a link that another user made.
HZ_SLOW long open_through_links(const char* path, int flags) {
  char text[kLongestTarget];  // at its end what links led to and is left to walk, at its front the next name
  const char* led = text + sizeof text - 1;
  text[sizeof text - 1] = 0;
  long folder = is_absolute(path) ? call::open("/", kFolder) : AT_FDCWD;
  for (unsigned links = 0;;) {
    while (*led == '/') ++led;
    const char*& way = *led != 0 ? led : path;
    while (*way == '/') ++way;
    std::size_t length = 0;
    for (; way[length] != 0 && way[length] != '/' && length < kLongestTarget - 1; ++length)
      text[length] = way[length];
    text[length] = 0;
    way += length;
    const bool is_last = *led == 0 && *path == 0;
    const int how = is_last ? flags : kFolder;
    long next = call::open_at(folder, text, how | O_NOFOLLOW, kMode);
    if (next == -ELOOP || (next == -ENOTDIR && !is_last)) {
      const Link link = link_at(folder, text);
      if (link == Link::kOfTheSystem) {
        next = call::open_at(folder, text, how, kMode);
      } else if (link == Link::kOurs && links++ != kMostLinks &&
                 (led = read_link(folder, text, led)) != nullptr) {
        if (!is_absolute(led)) continue;
        close_folder(folder);
        folder = call::open("/", kFolder);
        continue;
      }
    }
    close_folder(folder);
    if (is_last || next < 0) return next;
    folder = next;
  }
}

// Opens a file that the user named, which is none that waits: no folder, no block device. -1: it cannot be
// had.
long open_named(const char* path, int flags) {
  const long file = open_through_links(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat found;
  if (file < 0) return -1;
  if (call::fstat(file, &found) == 0 &&
      (S_ISREG(found.st_mode) || S_ISCHR(found.st_mode) || S_ISFIFO(found.st_mode)))
    return file;
  call::close(file);
  return -1;
}

}  // namespace

bool is_absolute(const char* path) { return path[0] == '/'; }

bool current_folder(char* out, std::size_t room) {
  return call::getcwd(out, room) > 0 && is_absolute(out);  // else it lies outside of our root
}

std::intptr_t open_to_write(const char* path, Write how) {
  const int flags = how == Write::kAppend ? O_APPEND : how == Write::kReplace ? 0 : O_EXCL;
  const long file = open_named(path, O_WRONLY | O_CREAT | flags);
  if (file < 0 || how != Write::kReplace) return file;
  // What has no length to cut, such as a terminal, refuses, and is written to all the same.
  const long cut = call::ftruncate(file, 0);
  return cut == 0 || cut == -EINVAL ? file : (call::close(file), -1);
}

bool write(std::intptr_t file, const char* text, std::size_t length) {
  while (length != 0) {
    const long n = call::write(file, text, length);
    if (n == -EINTR) continue;
    if (n <= 0) return false;
    text += n;
    length -= static_cast<std::size_t>(n);
  }
  return true;
}

void close_written(std::intptr_t file) { call::close(file); }

bool rename(const char* from, const char* to) { return call::rename(from, to) == 0; }

void remove(const char* path) { call::unlink(path); }

std::intptr_t open_fresh(const char* fresh, const char* path) {
  struct stat old, now;
  const long found = call::lstat(path, &old);
  if (found != 0 && found != -ENOENT) return kInPlace;
  if (found == 0 && (!S_ISREG(old.st_mode) || (old.st_mode & S_IWUSR) == 0 || old.st_nlink != 1))
    return kInPlace;
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const long file = open_through_links(fresh, flags);
  if (file == -EACCES || file == -EPERM || file == -EROFS) return kInPlace;
  if (file < 0 || found != 0) return file < 0 ? kInPlace - 1 : file;
  const bool same = call::fstat(file, &now) == 0 && now.st_uid == old.st_uid && now.st_gid == old.st_gid &&
                    call::fchmod(file, old.st_mode & kMode) == 0;
  if (same) return file;
  call::close(file);
  remove(fresh);
  return kInPlace;
}

namespace {

bool copy(long from, std::intptr_t to) {
  char part[512];
  for (;;) {
    const long n = call::read(from, part, sizeof part);
    if (n == -EINTR) continue;
    if (n <= 0) return n == 0;
    if (!write(to, part, static_cast<std::size_t>(n))) return false;
  }
}

}  // namespace

HZ_SLOW bool replace(const char* fresh, const char* path) {
  if (rename(fresh, path)) return true;
  const long from = open_named(fresh, O_RDONLY);
  const std::intptr_t to = from < 0 ? -1 : open_to_write(path, Write::kReplace);
  const bool whole = to >= 0 && copy(from, to);
  if (to >= 0) close_written(to);
  if (from >= 0) call::close(from);
  remove(fresh);
  return whole;
}

std::ptrdiff_t read(const char* path, char* out, std::size_t room) {
  const long file = open_named(path, O_RDONLY);
  if (file < 0) return -1;
  std::size_t bytes = 0;
  for (long n = 1; n != 0 && bytes < room;) {
    n = call::read(file, out + bytes, room - bytes);
    if (n == -EINTR) continue;
    if (n < 0) return call::close(file), -1;
    bytes += static_cast<std::size_t>(n);
  }
  call::close(file);
  return static_cast<std::ptrdiff_t>(bytes);
}

}  // namespace files

namespace {

using LastWords = void (*)();
constinit LastWords last_words = nullptr;
constinit struct sigaction chosen = {};
constinit std::atomic<bool> is_chosen{false};

// The first process of a namespace is not ended by a signal whose handler is the default: it says nothing,
// and stays ready for its children's sake.
void end(int signal) {
  if (process_id() == 1) {
    const KeepErrno keep;
    sigaction(SIGTERM, &chosen, nullptr);
    return;
  }
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
  chosen.sa_handler = &end;
  chosen.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK | SA_RESTART);
  is_chosen.store(true, std::memory_order_release);  // pairs with termination_action()
  sigaction(SIGTERM, &chosen, nullptr);
}

const struct sigaction* termination_action() {
  return is_chosen.load(std::memory_order_acquire) ? &chosen : nullptr;  // acquire: as above
}

}  // namespace hz::os
