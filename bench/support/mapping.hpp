// SPDX-License-Identifier: Apache-2.0
//
// Memory of the harness itself: straight from the system, so that it never mixes with what the measured
// allocator holds, and resident pages can be counted and given back exactly. Used by every program that reads
// its own RSS.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hz::bench {

class Mapping {
 public:
  // `touch` makes every page resident now, so that page faults of the harness never fall into the timed
  // region.
  Mapping(std::size_t bytes, bool touch) : bytes_(round_up(bytes)) {
    void* p =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      std::perror("harness memory");
      std::exit(3);
    }
    data_ = static_cast<std::byte*>(p);
    madvise(data_, bytes_, MADV_NOHUGEPAGE);  // a huge page would count 2 MiB for a few KiB of use
    if (touch) std::memset(data_, 0, bytes_);
  }
  ~Mapping() { release(); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  static std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

  // Not more than a handful of system calls and no memory of its own.
  std::size_t resident_kib() const {
    const std::size_t page = page_size();
    unsigned char present[256];
    std::size_t pages = 0;
    for (std::size_t at = 0; at < bytes_; at += sizeof(present) * page) {
      const std::size_t length = bytes_ - at < sizeof(present) * page ? bytes_ - at : sizeof(present) * page;
      if (mincore(data_ + at, length, present) != 0) return 0;
      for (std::size_t i = 0; i < length / page; ++i) pages += present[i] & 1U;
    }
    return pages * page / 1024;
  }

  void release() {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  static std::size_t round_up(std::size_t n) { return (n + page_size() - 1) / page_size() * page_size(); }

  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace hz::bench
