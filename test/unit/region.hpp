// SPDX-License-Identifier: Apache-2.0
//
// A piece of mapped memory, aligned to granules, that goes away with the object. Called by tests of boxes
// that keep tables or look at addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz_test {

class Region {
 public:
  explicit Region(std::size_t bytes)
      : bytes_(hz::align_up(bytes, hz::kGranule)), at_(hz::os::map(bytes_, hz::kGranule)) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { hz::os::unmap(at_, bytes_); }

  char* bytes() const { return static_cast<char*>(at_); }
  std::uintptr_t address() const { return hz::address(at_); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* at_;
};

}  // namespace hz_test
