// SPDX-License-Identifier: Apache-2.0
//
// The operating system is macOS 11 or newer: the machine and waiting; what it shares with others begins with
// posix. See os.hpp for the contract; called on cold paths only. Compiled and linked for both processors by
// CI, and never run: doc/platforms.md says how to.
#include <crt_externs.h>
#include <dlfcn.h>
#include <errno.h>
#include <mach-o/dyld.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"
#include "os/python.hpp"

// What libc++ waits by; there is no public call before macOS 14.4.
extern "C" int __ulock_wait(std::uint32_t operation, void* address, std::uint64_t value,
                            std::uint32_t microseconds);
extern "C" int __ulock_wake(std::uint32_t operation, void* address, std::uint64_t value);

namespace hz::os {
namespace {

template <class Number>
Number asked(const char* name) {
  const KeepErrno keep;
  Number answer = 0;
  std::size_t bytes = sizeof answer;
  return sysctlbyname(name, &answer, &bytes, nullptr, 0) == 0 ? answer : 0;
}

constexpr std::uint32_t kCompareAndWait = 1, kNoErrno = 0x01000000;

void wait(const std::uint32_t* word, std::uint32_t while_value, std::uint32_t microseconds) {
  __ulock_wait(kCompareAndWait | kNoErrno, const_cast<std::uint32_t*>(word), while_value, microseconds);
}

}  // namespace

// No advice of macOS promises zeros: a new mapping in place of the old one does.
bool purge(void* at, std::size_t bytes, Use) { return remap_fresh(at, bytes); }
void purged_within(std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t) {}

// Writes nothing, but looks for holes.
bool is_mapped(void* at, std::size_t bytes) {
  const KeepErrno keep;
  return msync(at, bytes, MS_ASYNC) == 0;
}

// What macOS has not: a say about huge pages, names of mappings, pages that move, pages that are wiped in a
// child, a barrier on all threads.
void prefer_huge_pages(HugePages) {}
void name_mappings(bool) {}
void* advised(void* at, std::size_t, Use) { return at; }
bool forbid_huge_pages(void*, std::size_t) { return true; }
bool move_pages(void*, void*, std::size_t) { return false; }
bool move_mapping(void*, std::size_t, void* to, std::size_t to_bytes) { return unmap(to, to_bytes), false; }
void* map_wiped_on_fork() { return nullptr; }
bool lock_streams() { return false; }
void unlock_streams() {}
void renew_streams() {}
void prepare_barrier() {}
bool barrier_on_all_threads() { return false; }
Container container(const char*) { return {}; }
// Nor open files that are one thread's, or sockets without a place among the files.
int leave_files() { return 0; }
int open_control() { return ENOTSUP; }
void serve_control(unsigned, std::size_t (*)(const Request&, char*, std::size_t)) {}
bool are_last_threads(unsigned) { return false; }
long reopened(long) { return -1; }

std::size_t page_bytes() { return static_cast<std::size_t>(getpagesize()); }
std::size_t memory_bytes() { return static_cast<std::size_t>(asked<std::uint64_t>("hw.memsize")); }
unsigned usable_cpus() { return asked<unsigned>("hw.logicalcpu"); }

unsigned current_cpu() {
  std::size_t cpu = 0;
  return pthread_cpu_number_np(&cpu) == 0 ? static_cast<unsigned>(cpu) : 0;
}

void system_random(void* out, std::size_t bytes) {
  const KeepErrno keep;
  if (getentropy(out, bytes) == 0) return;
  std::uint64_t word = microseconds() ^ address(&word);
  for (auto* to = static_cast<unsigned char*>(out); bytes != 0; --bytes) {
    word = (word ^ microseconds()) * 0x9E3779B97F4A7C15U;
    word ^= word >> 32;
    *to++ = static_cast<unsigned char>(word);
  }
}

std::uint64_t milliseconds() { return clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX) / 1000000; }

std::uint64_t thread_id() {
  std::uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return number;
}
const char* program_name() { return getprogname(); }
std::size_t program_path(char* out, std::size_t room) {
  auto bytes = static_cast<std::uint32_t>(room);
  return _NSGetExecutablePath(out, &bytes) == 0 ? strlen(out) : 0;
}

// This would need a call of the loader for each image; no caller needs it yet.
Code own_code() { return {}; }
void* loaded_function(const char*) { return nullptr; }
Code thread_stack(void* const*, unsigned) { return {}; }
void prepare_thread_stack() {}
bool PythonStack::find_interpreter() { return false; }
bool PythonStack::has_interpreter() { return false; }
bool PythonStack::program_ends() { return false; }
PythonStack::PythonStack() = default;
bool PythonStack::next(PythonFunction&) { return false; }
Report::Report(bool in_turn) : in_turn_(in_turn) {}
Report::~Report() = default;
void Report::tell_calls(const char*) {}
bool Report::is_in_copy() { return false; }
void stay_loaded() {
  const KeepErrno keep;
  static const char here = 0;
  Dl_info self;
  if (dladdr(&here, &self) != 0) dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
CodeMappings::CodeMappings(char* room) : text_(room) {}
CodeMappings::~CodeMappings() = default;
const char* CodeMappings::next(std::size_t&) { return nullptr; }

void settle_this_thread(const char* name) { pthread_setname_np(name); }
bool has_one_thread() { return pthread_is_threaded_np() == 0; }
bool may_have_threads() { return pthread_is_threaded_np() != 0; }

void wait_on(const std::uint32_t* word, std::uint32_t while_value) { wait(word, while_value, 0); }
void wait_at_most(const std::uint32_t* word, std::uint32_t while_value, unsigned milliseconds) {
  wait(word, while_value, milliseconds == 0 ? 1 : 1000 * milliseconds);  // 0: without a limit
}
void wake_one(const std::uint32_t* word) {
  __ulock_wake(kCompareAndWait | kNoErrno, const_cast<std::uint32_t*>(word), 0);
}

Environment::Environment() : variables_(issetugid() == 0 ? *_NSGetEnviron() : nullptr) {}
Environment::~Environment() = default;
bool parent_was_given(const char* /*entry*/) { return false; }

}  // namespace hz::os
