// SPDX-License-Identifier: Apache-2.0
//
// The bytes that a fuzz target is given, taken one after the other; zeros when there are no more. And how a
// target says what is wrong: one line, and the process ends, so that libFuzzer keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hz_test::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  bool empty() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  const char* text() const { return reinterpret_cast<const char*>(at_); }
  std::uint8_t byte() { return empty() ? 0 : *at_++; }
  std::uint64_t number(unsigned bytes) {
    std::uint64_t n = 0;
    for (unsigned i = 0; i < bytes; ++i) n |= std::uint64_t{byte()} << (8 * i);
    return n;
  }
  // So many of the bytes, as an input of their own.
  Input part(std::size_t bytes) {
    const Input some(at_, bytes < left() ? bytes : left());
    at_ = some.end_;
    return some;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

inline void expect(bool holds, const char* claim) {
  if (holds) return;
  std::printf("FAILED: %s\n", claim);
  std::fflush(stdout);
  std::abort();
}

}  // namespace hz_test::fuzz
