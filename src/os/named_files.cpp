// SPDX-License-Identifier: Apache-2.0
//
// Files that the user named: where the statistics line goes, and the profile. See os.hpp for the contract;
// what differs between systems is named_files.hpp. Called when the heap opens, at exit and in a signal
// handler.
#include "os/named_files.hpp"

#include <string.h>

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
const char* expanded(File file, Path& into) {
  char* out = into.text;
  char* const end = out + sizeof into.text - 1;
  for (const char* in = path_of(file).text; *in != 0 && out != end;) {
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
  return into.text;
}

// No stack of 2 KiB: the program may ask for a profile anywhere, and reading one may be its first malloc.
constinit Path profile_path;

}  // namespace

bool keep_path(File file, const char* path, std::size_t length) {
  if (length == 0 || length > kLongestPath) return false;
  char* const text = path_of(file).text;
  std::size_t folder = 0;
  if (!files::is_absolute(path)) {
    if (!files::current_folder(text, kLongestFolder)) return text[0] = 0, false;
    folder = strlen(text);
    text[folder++] = '/';
  }
  memcpy(text + folder, path, length);
  text[folder + length] = 0;
  return true;
}

const char* kept_path(File file) { return path_of(file).text; }

void write_statistics(const char* text, std::size_t length) {
  Path path;
  const bool written = kept_path(File::kStatistics)[0] != 0 &&
                       files::write(expanded(File::kStatistics, path), files::Write::kAppend, text, length);
  if (!written) write_error(text, length);
}

bool write_profile(const char* text, std::size_t length) {
  return kept_path(File::kProfile)[0] != 0 &&
         files::write(expanded(File::kProfile, profile_path), files::Write::kReplace, text, length);
}

std::ptrdiff_t read_profile(char* out, std::size_t room) {
  return files::read(expanded(File::kProfile, profile_path), out, room);
}

}  // namespace hz::os
