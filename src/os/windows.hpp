// SPDX-License-Identifier: Apache-2.0
//
// What the implementation on Windows is careful of: the error of the thread's last call is the program's.
// Costs two loads and two stores.
#pragma once

#include <windows.h>

namespace hz::os {

class KeepLastError {
 public:
  KeepLastError() : saved_(GetLastError()) {}
  ~KeepLastError() { SetLastError(saved_); }
  KeepLastError(const KeepLastError&) = delete;
  KeepLastError& operator=(const KeepLastError&) = delete;

 private:
  DWORD saved_;
};

}  // namespace hz::os
