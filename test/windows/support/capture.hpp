// SPDX-License-Identifier: Apache-2.0
//
// Catches what our library writes to the error stream while the object lives, on Windows: the stream is a
// file that goes when it is closed.
#pragma once

#include <windows.h>

#include <string>

namespace hz_test {

class Capture {
 public:
  Capture() : saved_(GetStdHandle(STD_ERROR_HANDLE)) {
    char folder[MAX_PATH + 1], name[MAX_PATH + 1];
    GetTempPathA(MAX_PATH, folder);
    GetTempFileNameA(folder, "hz", 0, name);
    file_ = CreateFileA(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_DELETE, nullptr, CREATE_ALWAYS,
                        FILE_FLAG_DELETE_ON_CLOSE, nullptr);
    SetStdHandle(STD_ERROR_HANDLE, file_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    SetStdHandle(STD_ERROR_HANDLE, saved_);
    CloseHandle(file_);
  }

  // Ends the capture and returns what was written.
  std::string Text() {
    SetStdHandle(STD_ERROR_HANDLE, saved_);
    SetFilePointer(file_, 0, nullptr, FILE_BEGIN);
    std::string text;
    char buffer[4096];
    for (DWORD got = 1; ReadFile(file_, buffer, sizeof buffer, &got, nullptr) != 0 && got != 0;)
      text.append(buffer, got);
    return text;
  }

 private:
  HANDLE saved_, file_;
};

}  // namespace hz_test
