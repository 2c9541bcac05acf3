// SPDX-License-Identifier: Apache-2.0
//
// Memory of the harness itself, on Windows: straight from the system, so that it never mixes with what the
// measured allocator holds, and resident pages can be counted and given back exactly. Used by every program
// that reads its own RSS.
#pragma once

#include <windows.h>
// Behind windows.h, which it counts on.
#include <psapi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hz::bench {

class Mapping {
 public:
  // `touch` makes every page resident now, so that page faults of the harness never fall into the timed
  // region.
  Mapping(std::size_t bytes, bool touch) : bytes_((bytes + kPage - 1) / kPage * kPage) {
    data_ = static_cast<std::byte*>(VirtualAlloc(nullptr, bytes_, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
    if (data_ == nullptr) {
      std::fprintf(stderr, "harness memory: error %lu\n", GetLastError());
      std::exit(3);
    }
    if (touch) std::memset(data_, 0, bytes_);
  }
  ~Mapping() { release(); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  static std::size_t page_size() { return kPage; }

  // No memory of its own.
  std::size_t resident_kib() const {
    constexpr std::size_t kAtOnce = 256;
    PSAPI_WORKING_SET_EX_INFORMATION pages[kAtOnce];
    std::size_t resident = 0;
    for (std::size_t at = 0; at < bytes_;) {
      unsigned count = 0;
      for (; count < kAtOnce && at < bytes_; at += kPage) pages[count++].VirtualAddress = data_ + at;
      if (QueryWorkingSetEx(GetCurrentProcess(), pages, count * sizeof *pages) == 0) return 0;
      for (unsigned i = 0; i < count; ++i) resident += pages[i].VirtualAttributes.Valid;
    }
    return resident * kPage / 1024;
  }

  void release() {
    if (data_ != nullptr) VirtualFree(data_, 0, MEM_RELEASE);
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  static constexpr std::size_t kPage = 4096;  // of x86-64 and arm64 alike

  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hz::bench
