// SPDX-License-Identifier: Apache-2.0
//
// Files that the user named: where the statistics line goes, and the profiles; and a folder. See os.hpp for
// the contract; what differs between systems is named_files.hpp. Called when the heap opens, at exit, in a
// signal handler, and once a second by the thread of control.
#include "os/named_files.hpp"

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

namespace hz::os {
namespace {

constexpr std::size_t kLongestPath = 1000;
constexpr std::size_t kLongestFolder = 1000;
constexpr std::size_t kLongestName = 48;  // of a file of ours in a folder that the user named

struct Path {
  char text[kLongestFolder + 1 + kLongestPath + kLongestName + 1] = {};  // "": none
};
constinit Path paths[kFiles];
Path& path_of(File file) { return paths[static_cast<unsigned>(file)]; }

// Writes `pattern` with the process's number in place of each %p; answers the end.
char* expand(const char* pattern, char* out, const char* const end) {
  while (*pattern != 0 && out != end) {
    if (pattern[0] != '%' || pattern[1] != 'p') {
      *out++ = *pattern++;
      continue;
    }
    pattern += 2;
    char digits[20];
    unsigned count = 0;
    for (std::uint64_t n = process_id(); n != 0; n /= 10) digits[count++] = static_cast<char>('0' + n % 10);
    while (count != 0 && out != end) *out++ = digits[--count];
  }
  return out;
}
const char* expanded(File file, Path& into, const char* behind = "") {
  char* const end = into.text + sizeof into.text - 1;
  *expand(behind, expand(kept_path(file), into.text, end), end) = 0;
  return into.text;
}

constexpr const char* kStatsName = "/hakozuna.%p.stats";

// No stack of 2 KiB: the program may ask for a profile anywhere, and reading one may be its first malloc.
constinit Path profile_path, heap_profile_path, fresh_profile_path, fresh_heap_profile_path;

// Beside `path`, so that a rename can move it there; null: there is no such name.
const char* fresh_of(File file, const char* path) {
  Path& fresh = file == File::kProfile ? fresh_profile_path : fresh_heap_profile_path;
  const std::size_t length = TextView(path).size();
  if (length == 0 || length > kLongestFolder + kLongestPath) return nullptr;
  copy_bytes(fresh.text, path, length);
  // With the time: processes of two containers may have one number and one folder.
  BasicMessage<kLongestName> name;
  name.text(".").decimal(process_id()).text(".").decimal(microseconds()).text(".new");
  copy_bytes(fresh.text + length, name.data(), name.size());
  fresh.text[length + name.size()] = 0;
  return fresh.text;
}

bool write(const char* path, files::Write how, const char* text, std::size_t length) {
  const std::intptr_t file = files::open_to_write(path, how);
  if (file < 0) return false;
  const bool whole = files::write(file, text, length);
  files::close_written(file);
  return whole;
}

}  // namespace

bool keep_path(File file, const char* path, std::size_t length) {
  if (length == 0 || length > kLongestPath) return false;
  char* const text = path_of(file).text;
  std::size_t folder = 0;
  if (!files::is_absolute(path)) {
    if (!files::current_folder(text, kLongestFolder)) return text[0] = 0, false;
    folder = TextView(text).size();
    text[folder++] = '/';
  }
  copy_bytes(text + folder, path, length);
  text[folder + length] = 0;
  return true;
}

const char* kept_path(File file) { return path_of(file).text; }

void write_statistics(const char* text, std::size_t length) {
  Path path;
  const bool written = kept_path(File::kStatistics)[0] != 0 &&
                       write(expanded(File::kStatistics, path), files::Write::kAppend, text, length);
  if (!written) write_error(text, length);
}

bool write_stats_file(const char* text, std::size_t length) {
  if (kept_path(File::kStatsFolder)[0] == 0) return false;
  Path name, fresh;
  expanded(File::kStatsFolder, name, kStatsName);
  expanded(File::kStatsFolder, fresh, "/hakozuna.%p.stats.new");
  files::remove(fresh.text);  // of a process of that number that was killed
  return write(fresh.text, files::Write::kNew, text, length) && files::rename(fresh.text, name.text);
}

void remove_stats_file() {
  Path name;
  if (kept_path(File::kStatsFolder)[0] != 0) files::remove(expanded(File::kStatsFolder, name, kStatsName));
}

bool write_profile(const char* text, std::size_t length) {
  if (kept_path(File::kProfile)[0] == 0) return false;
  Output output(File::kProfile, expanded(File::kProfile, profile_path));
  output.write(text, length);
  return output.finish();
}

std::ptrdiff_t read_profile(char* out, std::size_t room) {
  return files::read(expanded(File::kProfile, profile_path), out, room);
}

const char* heap_profile_to_write() { return expanded(File::kHeapProfile, heap_profile_path); }

Output::Output(File file, const char* path)
    : path_(path),
      fresh_(fresh_of(file, path)),
      file_(fresh_ == nullptr ? files::kInPlace : files::open_fresh(fresh_, path)),
      is_fresh_(file_ >= 0) {
  if (file_ == files::kInPlace) file_ = files::open_to_write(path, files::Write::kReplace);
  whole_ = file_ >= 0;
}

void Output::write(const char* text, std::size_t length) {
  whole_ = whole_ && files::write(file_, text, length);
}

bool Output::finish() {
  if (file_ >= 0) files::close_written(file_);
  file_ = -1;
  if (!is_fresh_) return whole_;
  if (whole_) return files::replace(fresh_, path_);
  files::remove(fresh_);
  return false;
}

}  // namespace hz::os
