// SPDX-License-Identifier: Apache-2.0
//
// Windows: files by their names, in the code page of the process, and what is done before a console closes.
// See named_files.hpp and os.hpp for the contracts; called when the heap opens and at exit.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "os/named_files.hpp"
#include "os/os.hpp"
#include "os/windows.hpp"

namespace hz::os {
namespace files {
namespace {

class Open {
 public:
  explicit Open(const char* path)
      : handle_(CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                            FILE_ATTRIBUTE_NORMAL, nullptr)) {}
  ~Open() {
    if (good()) CloseHandle(handle_);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  bool good() const { return handle_ != INVALID_HANDLE_VALUE; }
  HANDLE handle() const { return handle_; }

 private:
  const HANDLE handle_;
};

bool is_separator(char c) { return c == '\\' || c == '/'; }

}  // namespace

bool is_absolute(const char* path) { return is_separator(path[0]) || (path[0] != 0 && path[1] == ':'); }

bool current_folder(char* out, std::size_t room) {
  const KeepLastError keep;
  const DWORD length = GetCurrentDirectoryA(static_cast<DWORD>(room), out);
  return length != 0 && length < room;
}

std::intptr_t open_to_write(const char* path, Write how) {
  const KeepLastError keep;
  const bool append = how == Write::kAppend;
  HANDLE const file = CreateFileA(path, append ? FILE_APPEND_DATA : GENERIC_WRITE,
                                  FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr,
                                  append                   ? OPEN_ALWAYS
                                  : how == Write::kReplace ? CREATE_ALWAYS
                                                           : CREATE_NEW,
                                  FILE_ATTRIBUTE_NORMAL, nullptr);
  return reinterpret_cast<std::intptr_t>(file);  // INVALID_HANDLE_VALUE is -1
}

bool write(std::intptr_t file, const char* text, std::size_t length) {
  const KeepLastError keep;
  DWORD written = 0;
  return WriteFile(reinterpret_cast<HANDLE>(file), text, static_cast<DWORD>(length), &written, nullptr) !=
             0 &&
         written == length;
}

void close_written(std::intptr_t file) {
  const KeepLastError keep;
  CloseHandle(reinterpret_cast<HANDLE>(file));
}

bool rename(const char* from, const char* to) {
  const KeepLastError keep;
  return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) != 0;
}

void remove(const char* path) {
  const KeepLastError keep;
  DeleteFileA(path);
}

std::intptr_t open_fresh(const char* fresh, const char* path) {
  const KeepLastError keep;
  constexpr DWORD kOther = FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE | FILE_ATTRIBUTE_REPARSE_POINT |
                           FILE_ATTRIBUTE_READONLY;
  const DWORD old = GetFileAttributesA(path);
  if (old == INVALID_FILE_ATTRIBUTES ? GetLastError() != ERROR_FILE_NOT_FOUND : (old & kOther) != 0)
    return kInPlace;
  return open_to_write(fresh, Write::kNew);
}

bool replace(const char* fresh, const char* path) {
  const KeepLastError keep;
  const bool replaced = rename(fresh, path) || CopyFileA(fresh, path, FALSE) != 0;
  remove(fresh);
  return replaced;
}

std::ptrdiff_t read(const char* path, char* out, std::size_t room) {
  const KeepLastError keep;
  const Open file(path);
  if (!file.good() || GetFileType(file.handle()) != FILE_TYPE_DISK) return -1;
  std::size_t bytes = 0;
  for (DWORD n = 1; n != 0 && bytes < room; bytes += n)
    if (ReadFile(file.handle(), out + bytes, static_cast<DWORD>(room - bytes), &n, nullptr) == 0) return -1;
  return static_cast<std::ptrdiff_t>(bytes);
}

}  // namespace files

namespace {

void (*last_words)() = nullptr;

// In a thread of the system's; what follows is another's handler, or the end.
BOOL WINAPI on_event(DWORD event) {
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) last_words();
  return FALSE;
}

}  // namespace

void before_termination(void (*last)()) {
  const KeepLastError keep;
  last_words = last;
  SetConsoleCtrlHandler(&on_event, TRUE);
}

}  // namespace hz::os
