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
#include "os/quiet_write.hpp"

namespace hz::os {
namespace files {
namespace {

constexpr mode_t kMode = 0666;
constexpr unsigned kMostLinks = 40;          // on the way to a file, as the kernel
constexpr std::size_t kLongestTarget = 384;  // on a stack that may have 16 KiB

// Flags for the folders on a path, which are only passed through. If the system can open a link itself, its
// owner is checked and its target read through one descriptor. So no process can replace the link in between.
#ifdef O_PATH
constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr bool kHoldsLinks = true;
long open_link(long folder, const char* name) {
  return call::open_at(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}
#else
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr bool kHoldsLinks = false;
long open_link(long folder, const char*) { return folder; }
#endif

// Walks a path to the folder of its last name, and opens each folder in the one before. Follows a link only
// if this user or root made it.
class Way {
 public:
  explicit Way(const char* path) : path_(path), from_root_(is_absolute(path)) { *end() = 0; }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way() { leave(); }

  // Goes to the folder of the last name. Returns 0, or what the system says below 0.
  long to_last() {
    for (;;) {
      take_name();
      if (is_last()) return 0;
      const long next = call::open_at(folder_, name_, kFolder | O_NOFOLLOW);
      const bool may_be_link = next == -ELOOP || next == -ENOTDIR;
      const long entered = may_be_link ? follow() : next;
      if (entered < 0) return may_be_link ? next : entered;
      if (!may_be_link) enter(next);
    }
  }
  // The last name, in folder(): it may be a link.
  const char* name() const { return name_; }
  long folder() const { return folder_; }

  // Goes where the link called name() leads, to take the next name from there. Returns less than 0 if it is
  // no link, or one that is not followed. A link of the system's cannot be read as a path: it is entered as a
  // folder, and kOfTheSystem returned if it is the last one.
  static constexpr long kOfTheSystem = 1;
  long follow() {
    const long link = open_link(folder_, name_);
    if (link < 0 && kHoldsLinks) return link;
    const long followed = follow_held(link);
    if (kHoldsLinks) call::close(link);
    return followed;
  }

 private:
  char* end() { return name_ + sizeof name_ - 1; }
  bool is_last() const { return *led_ == 0 && *path_ == 0; }
  void leave() const {
    if (folder_ >= 0) call::close(folder_);
  }
  void enter(long folder) {
    leave();
    folder_ = folder;
  }
  void take_name() {
    while (*led_ == '/') ++led_;
    const char*& way = *led_ != 0 ? led_ : path_;
    while (*way == '/') ++way;
    // The root is not opened by itself: QEMU shows its prefix in the root's place, but not in a name's.
    std::size_t length = 0;
    if (from_root_) name_[length++] = '/';
    from_root_ = false;
    for (; *way != 0 && *way != '/' && length < kLongestTarget - 1; ++way) name_[length++] = *way;
    name_[length] = 0;
  }
  long follow_held(long link) {
    struct stat found, system;
    const char* const name = kHoldsLinks ? "" : name_;
    if ((kHoldsLinks ? call::fstat(link, &found) : call::lstat_at(link, name, &found)) != 0) return -ENOENT;
    if (!S_ISLNK(found.st_mode) || links_++ == kMostLinks) return -ELOOP;
    // The system's own first: in a user namespace they may seem to be another user's.
    if (call::lstat_at(AT_FDCWD, "/proc/self", &system) == 0 && system.st_dev == found.st_dev) {
      if (is_last()) return kOfTheSystem;
      const long next = call::open_at(folder_, name_, kFolder);
      if (next >= 0) enter(next);
      return next < 0 ? next : 0;
    }
    if (found.st_uid != 0 && found.st_uid != static_cast<uid_t>(call::geteuid())) return -EACCES;
    return lead(link, name);
  }
  // Reads a link into the end of name_, right before what is left of the links that led to it.
  long lead(long link, const char* name) {
    const auto room = static_cast<std::size_t>(led_ - name_);
    const long length =
        call::readlink_at(link, name, name_, room);  // the kernel has read `name` before it writes
    if (length <= 0 || static_cast<std::size_t>(length) >= room) return -ENAMETOOLONG;
    const std::size_t begin = room - static_cast<std::size_t>(length);
    for (std::size_t i = room; i != begin; --i) name_[i - 1] = name_[i - 1 - begin];
    led_ = name_ + begin;
    if (is_absolute(led_)) {
      enter(AT_FDCWD);
      from_root_ = true;
    }
    return 0;
  }

  char name_[kLongestTarget];
  const char* led_ = end();  // what links led to and is left to walk, at the end of name_
  const char* path_;         // what is left after that
  long folder_ = AT_FDCWD;
  bool from_root_;  // the next name begins with a slash
  unsigned links_ = 0;
};

// Opens a file and follows the links on its path. Errors: fails at a link that another user made.
HZ_SLOW long open_through_links(const char* path, int flags) {
  Way way(path);
  for (;;) {
    if (const long lost = way.to_last(); lost < 0) return lost;
    const long file = call::open_at(way.folder(), way.name(), flags | O_NOFOLLOW, kMode);
    if (file != -ELOOP) return file;
    const long followed = way.follow();
    if (followed < 0) return file;
    if (followed == Way::kOfTheSystem) return call::open_at(way.folder(), way.name(), flags, kMode);
  }
}

// Returns true for a file that neither waits nor is a folder or a block device. It stands alone, so that its
// room on the stack is not there while a path is followed.
HZ_SLOW bool is_readily_used(long file) {
  struct stat found;
  return call::fstat(file, &found) == 0 &&
         (S_ISREG(found.st_mode) || S_ISCHR(found.st_mode) || S_ISFIFO(found.st_mode));
}

// Opens a file that the user named. Errors: -1 if it cannot be opened or is not readily used.
long open_named(const char* path, int flags) {
  const long file = open_through_links(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return -1;
  if (is_readily_used(file)) return file;
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
  const QuietWrite quiet;
  while (length != 0) {
    const long n = quiet.some(file, text, length);
    if (n == -EINTR) continue;
    if (n <= 0) return false;
    text += n;
    length -= static_cast<std::size_t>(n);
  }
  return true;
}

void close_written(std::intptr_t file) { call::close(file); }

HZ_SLOW bool rename(const char* from, const char* to) {
  Way one(from), other(to);
  return one.to_last() == 0 && other.to_last() == 0 &&
         call::rename_at(one.folder(), one.name(), other.folder(), other.name()) == 0;
}

HZ_SLOW void remove(const char* path) {
  Way way(path);
  if (way.to_last() == 0) call::unlink_at(way.folder(), way.name());
}

namespace {
// Tells what `path` itself is, which may be a link.
HZ_SLOW long look_at(const char* path, struct stat* found) {
  Way way(path);
  const long lost = way.to_last();
  return lost != 0 ? lost : call::lstat_at(way.folder(), way.name(), found);
}
}  // namespace

std::intptr_t open_fresh(const char* fresh, const char* path) {
  struct stat old, now;
  const long found = look_at(path, &old);
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
