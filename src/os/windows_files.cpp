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
  Open(const char* path, DWORD access, DWORD disposition)
      : handle_(CreateFileA(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, disposition,
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

bool write(const char* path, Write how, const char* text, std::size_t length) {
  const KeepLastError keep;
  const bool append = how == Write::kAppend;
  const Open file(path, append ? FILE_APPEND_DATA : GENERIC_WRITE, append ? OPEN_ALWAYS : CREATE_ALWAYS);
  DWORD written = 0;
  return file.good() && WriteFile(file.handle(), text, static_cast<DWORD>(length), &written, nullptr) != 0 &&
         written == length;
}

std::ptrdiff_t read(const char* path, char* out, std::size_t room) {
  const KeepLastError keep;
  const Open file(path, GENERIC_READ, OPEN_EXISTING);
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
