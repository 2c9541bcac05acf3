// SPDX-License-Identifier: Apache-2.0
//
// Linux: how the kernel is asked, and what it tells at the start of a process. See linux_calls.hpp; called on
// slow paths only.
#include "os/linux_calls.hpp"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>

#include "base/compiler.hpp"
#include "base/units.hpp"
#include "os/linux_symbols.hpp"
#include "os/posix.hpp"

namespace {

// ThreadSanitizer forgets what it knows of memory when it comes and goes by these names.
[[maybe_unused]] long through_c_library(long number, long a, long b, long c, long d, long e, long f) {
  const hz::os::KeepErrno keep;
  const long answer = syscall(number, a, b, c, d, e, f);
  return answer == -1 ? -errno : answer;
}
[[maybe_unused]] long watched(long number, long a, long b, long c, long d, long e, long f) {
  const hz::os::KeepErrno keep;
  void* const at = hz::pointer(static_cast<std::uintptr_t>(a));
  const auto bytes = static_cast<std::size_t>(b);
  long answer = 0;
  switch (number) {
    case SYS_mmap:
      answer = reinterpret_cast<long>(
          ::mmap(at, bytes, static_cast<int>(c), static_cast<int>(d), static_cast<int>(e), f));
      break;
    case SYS_munmap: answer = ::munmap(at, bytes); break;
    case SYS_madvise: answer = ::madvise(at, bytes, static_cast<int>(c)); break;
    default: return through_c_library(number, a, b, c, d, e, f);
  }
  return answer == -1 ? -errno : answer;
}

}  // namespace

extern "C" long hz_system_call(long number, long a, long b, long c, long d, long e, long f) {
  if constexpr (hz::kThreadSanitizer) return watched(number, a, b, c, d, e, f);
#if defined(__x86_64__)
  long answer;
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(answer)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return answer;
#elif defined(__aarch64__)
  register long which __asm__("x8") = number;
  register long first __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  register long fifth __asm__("x4") = e;
  register long sixth __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(first)
                   : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "memory");
  return first;
#else
  return through_c_library(number, a, b, c, d, e, f);
#endif
}

namespace hz::os {
namespace {

constexpr unsigned kMostValues = 64;
constinit ElfW(auxv_t) values[kMostValues] = {};
constinit std::atomic<bool> values_read{false};

// Threads that come here at the same time read the same.
bool read_values() {
  // Acquire: pairs with the store below.
  if (values_read.load(std::memory_order_acquire)) return true;
  const long file = call::open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const long bytes = call::read(file, values, sizeof values - sizeof values[0]);
  call::close(file);
  if (bytes <= 0) return false;
  values_read.store(true, std::memory_order_release);  // the values are there
  return true;
}

}  // namespace

// Of the file, or of the C library where there is none: in a setuid program, and without /proc.
std::uintptr_t auxiliary_value(std::uint64_t type) {
  if (!read_values()) {
    const KeepErrno keep;
    return getauxval(type);
  }
  for (const auto& value : values) {
    if (value.a_type == AT_NULL) break;
    if (value.a_type == type) return value.a_un.a_val;
  }
  return 0;
}

namespace call {
namespace {

#if defined(__aarch64__)
constexpr const char *kClock = "__kernel_clock_gettime", *kCpu = "__kernel_getcpu";
#else
constexpr const char *kClock = "__vdso_clock_gettime", *kCpu = "__vdso_getcpu";
#endif

// A function of the vDSO's, or one that makes the system call.
template <class Function>
struct Quick {
  const char* const name;
  const Function slow;
  std::atomic<Function> known{nullptr};

  Function get() {
    const Function function = known.load(std::memory_order_relaxed);
    return HZ_LIKELY(function != nullptr) ? function : find();
  }
  HZ_COLD Function find() {
    void* const found = vdso_function(auxiliary_value(AT_SYSINFO_EHDR), name);
    const Function function = found != nullptr ? reinterpret_cast<Function>(found) : slow;
    known.store(function, std::memory_order_relaxed);
    return function;
  }
};

int ask_clock(clockid_t clock, timespec* out) {
  return static_cast<int>(make(SYS_clock_gettime, clock, out));
}
int ask_cpu(unsigned* cpu, unsigned*, void*) { return static_cast<int>(make(SYS_getcpu, cpu, 0, 0)); }

constinit Quick<int (*)(clockid_t, timespec*)> quick_clock = {kClock, &ask_clock};
constinit Quick<int (*)(unsigned*, unsigned*, void*)> quick_cpu = {kCpu, &ask_cpu};

}  // namespace

void clock_gettime(clockid_t clock, timespec* out) { quick_clock.get()(clock, out); }

unsigned getcpu() {
  unsigned cpu = 0;
  return quick_cpu.get()(&cpu, nullptr, nullptr) == 0 ? cpu : 0;
}

}  // namespace call
}  // namespace hz::os
