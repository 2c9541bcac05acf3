// SPDX-License-Identifier: Apache-2.0
//
// What the control groups of Linux allow this process, version 1 and 2 and both at once. Called once in the
// life of a process, when its heap opens: three system calls a file, one or two files a level of nesting.
// /proc/self/mountinfo is long, and slow to read: only where a group is not where every distribution has it.
//
//   /proc/self/cgroup     ID:CONTROLLERS:GROUP        where this process is; version 2 has id 0 and no
//   controllers /proc/self/mountinfo  … ROOT MOUNTPOINT … - TYPE SOURCE OPTIONS      where that can be seen
//
// The limits of GROUP stand in MOUNTPOINT + (GROUP without ROOT), and those of what encloses it above, up to
// MOUNTPOINT. In a cgroup namespace both paths are relative to the namespace's root, so the rule stays the
// same; a group that does not lie under ROOT cannot be seen there. What is longer than our buffers is
// skipped.
#include <unistd.h>

#include <new>

#include "base/text.hpp"
#include "os/calls.hpp"
#include "os/linux_file.hpp"
#include "os/os.hpp"

namespace hz::os {
namespace {

constexpr std::size_t kLongestLine = 1024;
constexpr std::size_t kLongestPath = 512;
constexpr std::size_t kLongestNumbers = 128;
constexpr unsigned kMostLevels = 32;

// Text of bounded length. One that did not fit is not `whole` and is used for nothing.
struct Path {
  char text[kLongestPath];
  std::size_t length = 0;
  bool whole = true;

  Path() { text[0] = 0; }
  Path& put(char c) {
    whole = whole && length + 1 < sizeof text;
    if (whole) text[length++] = c;
    text[length] = 0;
    return *this;
  }
  Path& add(const char* s) {
    while (*s != 0) put(*s++);
    return *this;
  }
  void cut(std::size_t to) { text[length = to] = 0; }
};

bool is(const char* a, TextView b) { return b == a; }

// Returns true if `word` is one of a list with commas.
bool lists(TextView list, TextView word) {
  while (!list.empty())
    if (cut(list, ',') == word) return true;
  return false;
}

// The next line that fits; false at the end.
bool next_line(FileBytes& file, char* line, std::size_t capacity) {
  std::size_t length = 0;
  for (int c = file.next(); c >= 0; c = file.next()) {
    if (c != '\n') {
      if (length < capacity) line[length] = static_cast<char>(c);
      ++length;
    } else if (length < capacity) {
      line[length] = 0;
      return true;
    } else {
      length = 0;
    }
  }
  return false;
}

// Cuts the text at the next `end` and steps over it; what was before.
char* field(char*& text, char end) {
  char* const start = text;
  while (*text != 0 && *text != end) ++text;
  if (*text != 0) *text++ = 0;
  return start;
}

// The kernel writes blanks and backslashes in the paths of mountinfo as three octal digits.
void unescape(char* text) {
  char* out = text;
  for (const char* in = text; *in != 0; ++out) {
    if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] != 0 && in[3] != 0) {
      *out = static_cast<char>((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
      in += 4;
    } else {
      *out = *in++;
    }
  }
  *out = 0;
}

// The numbers at the start of a file, up to two; how many. "max" and negative ones are none.
unsigned read_numbers(Path& directory, const char* name, std::size_t (&out)[2]) {
  const std::size_t before = directory.length;
  directory.add("/").add(name);
  unsigned count = 0;
  if (directory.whole) {
    char buffer[kLongestNumbers];
    FileBytes file(directory.text, buffer);
    for (int c = ' '; count < 2 && c == ' ';) {
      bool any = false;
      std::size_t n = 0;
      for (c = file.next(); c >= '0' && c <= '9'; c = file.next(), any = true) {
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, c - '0', &n)) n = SIZE_MAX / 16;
      }
      if (!any) break;
      out[count++] = n;
    }
  }
  directory.whole = true;
  directory.cut(before);
  return count;
}

void lower(std::size_t& limit, std::size_t value) {
  if (value != 0 && (limit == 0 || value < limit)) limit = value;
}

// Contains its buffers, and is mapped: the thread that opens the heap may have a small stack.
class Reader {
 public:
  explicit Reader(const char* root) : root_(root) {}

  Container read() {
    read_groups();
    if (read_usual_places()) return found_;
    found_ = {};
    read_mounts();
    drop_what_is_no_limit();
    return found_;
  }

 private:
  enum Hierarchy : unsigned { kUnified, kMemory, kCpu, kHierarchies };
  static constexpr unsigned kOfMemory = 1, kOfCpus = 2, kAll = kOfMemory | kOfCpus;

  void read_groups() {
    FileBytes file(start(root_).add("/proc/self/cgroup").text, buffer_);
    while (next_line(file, line_, sizeof line_)) {
      char* rest = line_;
      const char* id = field(rest, ':');
      const char* controllers = field(rest, ':');
      if (is(id, "0") && *controllers == 0) groups_[kUnified].add(rest);
      if (lists(controllers, "memory")) groups_[kMemory].add(rest);
      if (lists(controllers, "cpu")) groups_[kCpu].add(rest);
    }
  }

  // One or two places for a hierarchy; null: no other.
  static constexpr const char* kUsual[kHierarchies][2] = {
      {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, {"/sys/fs/cgroup/memory"}, {"/sys/fs/cgroup/cpu"}};

  // A controller belongs to one hierarchy. The number of processors matters only to a process that shares a
  // limit of memory. Returns false if the group is not visible, as a part of the whole, in its usual place.
  bool read_usual_places() {
    if (!climb_usual(groups_[kMemory].length != 0 ? kMemory : kUnified, kOfMemory)) return false;
    drop_what_is_no_limit();
    return found_.memory == 0 || climb_usual(groups_[kCpu].length != 0 ? kCpu : kUnified, kOfCpus);
  }
  bool climb_usual(Hierarchy hierarchy, unsigned part) {
    for (const char* place : kUsual[hierarchy]) {
      if (place == nullptr || !is_there(groups_[hierarchy], place)) continue;
      climb(hierarchy, "/", place, part);
      return true;
    }
    return false;
  }
  bool is_there(const Path& group, const char* place) {
    const char* below = under(group, "/");
    if (below == nullptr) return false;
    const Path& file = start(root_).add(place).add(is(below, "/") ? "" : below).add("/cgroup.procs");
    return file.whole && call::access(file.text, F_OK) == 0;
  }
  // More than there is limits nothing; this is also how version 1 says "no limit".
  void drop_what_is_no_limit() {
    const std::size_t physical = memory_bytes();
    if (found_.memory >= physical) found_.memory = 0;
    if (found_.memory_high >= physical) found_.memory_high = 0;
  }

  void read_mounts() {
    FileBytes file(start(root_).add("/proc/self/mountinfo").text, buffer_);
    while (next_line(file, line_, sizeof line_)) {
      char* rest = line_;
      for (int skipped = 0; skipped < 3; ++skipped) field(rest, ' ');
      char* mount_root = field(rest, ' ');
      char* mount_point = field(rest, ' ');
      while (*rest != 0 && !is(field(rest, ' '), "-")) continue;
      const char* type = field(rest, ' ');
      field(rest, ' ');
      unescape(mount_root);
      unescape(mount_point);
      if (is(type, "cgroup2")) climb(kUnified, mount_root, mount_point, kAll);
      if (!is(type, "cgroup")) continue;
      if (lists(rest, "memory")) climb(kMemory, mount_root, mount_point, kAll);
      if (lists(rest, "cpu")) climb(kCpu, mount_root, mount_point, kAll);
    }
  }

  // From the process's own group to the outermost one that can be seen.
  void climb(Hierarchy hierarchy, const char* mount_root, const char* mount_point, unsigned parts) {
    const char* below = under(groups_[hierarchy], mount_root);
    if (below == nullptr) return;
    Path& directory = start(root_).add(is(mount_point, "/") ? "" : mount_point);
    const std::size_t top = directory.length;
    directory.add(below);
    if (!directory.whole) return;
    for (unsigned level = 0; level < kMostLevels; ++level) {
      while (directory.length > top && directory.text[directory.length - 1] == '/')
        directory.cut(directory.length - 1);
      look(hierarchy, directory, parts);
      if (directory.length <= top) return;
      std::size_t length = directory.length;
      while (length > top && directory.text[length - 1] != '/') --length;
      directory.cut(length);
    }
  }

  // The part of the group's path below the root of the mount; null if it does not lie there.
  static const char* under(const Path& group, const char* mount_root) {
    if (!group.whole || group.length == 0) return nullptr;
    const TextView root = is(mount_root, "/") ? "" : mount_root;
    if (!begins_with(group.text, root)) return nullptr;
    const char* below = group.text + root.size();
    if (*below != 0 && *below != '/') return nullptr;
    const bool outside = begins_with(below, "/..") && (below[3] == 0 || below[3] == '/');
    return outside ? nullptr : below;
  }

  void look(Hierarchy hierarchy, Path& directory, unsigned parts) {
    if ((parts & kOfMemory) != 0) look_for_memory(hierarchy, directory);
    if ((parts & kOfCpus) != 0) look_for_cpus(hierarchy, directory);
  }
  void look_for_memory(Hierarchy hierarchy, Path& directory) {
    std::size_t n[2] = {};
    if (hierarchy == kUnified) {
      if (read_numbers(directory, "memory.max", n) != 0) lower(found_.memory, n[0]);
      if (read_numbers(directory, "memory.high", n) != 0) lower(found_.memory_high, n[0]);
    } else if (hierarchy == kMemory) {
      if (read_numbers(directory, "memory.limit_in_bytes", n) != 0) lower(found_.memory, n[0]);
    }
  }
  void look_for_cpus(Hierarchy hierarchy, Path& directory) {
    std::size_t n[2] = {};
    if (hierarchy == kUnified) {
      if (read_numbers(directory, "cpu.max", n) == 2) grant_cpus(n[0], n[1]);
    } else if (hierarchy == kCpu && read_numbers(directory, "cpu.cfs_quota_us", n) != 0) {
      const std::size_t quota = n[0];
      if (read_numbers(directory, "cpu.cfs_period_us", n) != 0) grant_cpus(quota, n[0]);
    }
  }

  void grant_cpus(std::size_t quota, std::size_t period) {
    if (quota == 0 || period == 0) return;
    const std::size_t cpus = (quota - 1) / period + 1;
    if (cpus <= 65536 && (found_.cpus == 0 || cpus < found_.cpus)) found_.cpus = static_cast<unsigned>(cpus);
  }

  // The one path that is being made.
  Path& start(const char* text) {
    path_.cut(0);
    path_.whole = true;
    return path_.add(text);
  }

  const char* root_;
  Path groups_[kHierarchies];
  Path path_;
  char line_[kLongestLine];
  char buffer_[512];
  Container found_;
};

}  // namespace

Container container(const char* root) {
  const std::size_t bytes = align_up(sizeof(Reader), page_bytes());
  void* const room = map(bytes, page_bytes());
  if (room == nullptr) return {};
  const Container found = (::new (room) Reader(root))->read();
  unmap(room, bytes);
  return found;
}

}  // namespace hz::os
