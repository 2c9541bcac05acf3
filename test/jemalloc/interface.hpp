// SPDX-License-Identifier: Apache-2.0
//
// jemalloc's functions as its manual declares them, and short words for what the tests ask. The program is
// linked with libhakozuna-je.so; some of the tests run on jemalloc, too, which must say the same.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/line.hpp"
#include "support/opaque.hpp"

extern "C" {
void* mallocx(std::size_t size, int flags);
void* rallocx(void* ptr, std::size_t size, int flags);
std::size_t xallocx(void* ptr, std::size_t size, std::size_t extra, int flags);
std::size_t sallocx(const void* ptr, int flags);
// Redis adds it to its jemalloc; others have none.
int je_get_defrag_hint(void* ptr) __attribute__((weak));
void dallocx(void* ptr, int flags);
void sdallocx(void* ptr, std::size_t size, int flags);
std::size_t nallocx(std::size_t size, int flags);
int mallctl(const char* name, void* oldp, std::size_t* oldlenp, void* newp, std::size_t newlen);
int mallctlnametomib(const char* name, std::size_t* mibp, std::size_t* miblenp);
int mallctlbymib(const std::size_t* mib, std::size_t miblen, void* oldp, std::size_t* oldlenp, void* newp,
                 std::size_t newlen);
void malloc_stats_print(void (*write_cb)(void*, const char*), void* cbopaque, const char* opts);
extern void (*malloc_message)(void* cbopaque, const char* s);
}

namespace hz_test::jemalloc {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr unsigned kAllArenas = 4096;

// Flags.
inline constexpr int kZero = 0x40;
inline int LgAlign(unsigned log) { return static_cast<int>(log); }
inline int Align(std::size_t alignment) { return static_cast<int>(__builtin_ctzll(alignment)); }
inline int Tcache(int number) { return (number + 2) << 8; }
inline int Arena(int number) { return (number + 1) << 20; }

// jemalloc itself serves this process.
inline bool OnJemalloc() { return ExpectedLine() == "jemalloc"; }

inline int Do(const std::string& name) { return mallctl(name.c_str(), nullptr, nullptr, nullptr, 0); }

template <class T>
inline int Read(const std::string& name, T& value) {
  std::size_t length = sizeof value;
  const int error = mallctl(name.c_str(), &value, &length, nullptr, 0);
  return error != 0 ? error : length == sizeof value ? 0 : -1;
}
template <class T>
inline int Write(const std::string& name, T value) {
  return mallctl(name.c_str(), nullptr, nullptr, &value, sizeof value);
}
// What must be there.
template <class T>
inline T Value(const std::string& name) {
  T value{};
  EXPECT_EQ(0, Read(name, value)) << name;
  return value;
}
inline void BeginEpoch() { EXPECT_EQ(0, Write("epoch", std::uint64_t{1})); }

}  // namespace hz_test::jemalloc
