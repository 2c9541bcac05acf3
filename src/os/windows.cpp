// SPDX-License-Identifier: Apache-2.0
//
// The operating system is Windows (10 and newer): memory, the machine and the process. See os.hpp for the
// contract; called on cold paths only.
//
// The heap reserves its addresses as one range and commits it as it grows, for Windows deals out addresses by
// 64 KiB, and counts what is committed against all processes whether it is touched or not. Pages go back by
// being decommitted and committed again, because no call of Windows promises zeros (MEM_RESET and
// DiscardVirtualMemory promise nothing): the process has fewer pages then, and its commitment stays.
#define WIN32_LEAN_AND_MEAN
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <atomic>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/python.hpp"
#include "os/windows.hpp"

namespace hz::os {
namespace {

// Of every processor that Windows runs on today.
constexpr std::size_t kPageBytes = 4096, kAllocationBytes = 64 * kKiB;

bool is_of_pages(const void* at, std::size_t bytes) {
  return ((address(at) | bytes) & (kPageBytes - 1)) == 0;
}

// Where a range of such an alignment was free a moment ago another thread may be faster.
void* allocate(std::size_t bytes, std::size_t alignment, DWORD how) {
  constexpr int kPatience = 100;
  if (alignment <= kAllocationBytes) return VirtualAlloc(nullptr, bytes, how, PAGE_READWRITE);
  if (bytes + alignment < bytes) return nullptr;
  for (int i = 0; i < kPatience; ++i) {
    void* wide = VirtualAlloc(nullptr, bytes + alignment, MEM_RESERVE, PAGE_READWRITE);
    if (wide == nullptr) return nullptr;
    VirtualFree(wide, 0, MEM_RELEASE);
    void* at = pointer(align_up(address(wide), alignment));
    if (void* got = VirtualAlloc(at, bytes, how, PAGE_READWRITE)) return got;
  }
  return nullptr;
}

// The pages of an allocation, or of its part before `end`, that are alike. False: nothing of it is there.
bool pages_at(const void* at, MEMORY_BASIC_INFORMATION& pages) {
  return VirtualQuery(at, &pages, sizeof pages) == sizeof pages;
}

bool is_empty(void* allocation) {
  MEMORY_BASIC_INFORMATION pages;
  for (void* at = allocation; pages_at(at, pages) && pages.AllocationBase == allocation;
       at = pointer(address(pages.BaseAddress) + pages.RegionSize))
    if (pages.State != MEM_RESERVE) return false;
  return true;
}

// Serialises the check whether an allocation is empty with the release of its last part, or two threads would
// release it.
SRWLOCK releasing = SRWLOCK_INIT;

}  // namespace

void* reserve(std::size_t bytes, std::size_t alignment) {
  const KeepLastError keep;
  return allocate(bytes, alignment, MEM_RESERVE);
}

bool commit(void* at, std::size_t bytes) {
  const KeepLastError keep;
  return is_of_pages(at, bytes) && VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

bool forbid(void* at, std::size_t bytes) {
  const KeepLastError keep;
  return is_of_pages(at, bytes) && VirtualFree(at, bytes, MEM_DECOMMIT) != 0;
}

// What is reserved and not committed cannot be touched anyway.
void forbid_uncommitted() {}
bool forbids_uncommitted() { return true; }

// No: see above.
bool may_have(void*) { return false; }

Placed extend(void* at, std::size_t bytes, Use use) {
  const KeepLastError keep;
  const DWORD protection = use == Use::kReading ? PAGE_READONLY : PAGE_READWRITE;
  if (address(at) % kAllocationBytes != 0) return Placed::kRefused;
  if (VirtualAlloc(at, bytes, MEM_RESERVE | MEM_COMMIT, protection) != nullptr) return Placed::kHere;
  return GetLastError() == ERROR_INVALID_ADDRESS ? Placed::kTaken : Placed::kRefused;
}

void* map(std::size_t bytes, std::size_t alignment, Use) {
  const KeepLastError keep;
  return allocate(bytes, alignment, MEM_RESERVE | MEM_COMMIT);
}

// An allocation is released with the last of its pages.
bool unmap(void* at, std::size_t bytes) {
  const KeepLastError keep;
  if (!is_of_pages(at, bytes)) return false;
  AcquireSRWLockExclusive(&releasing);
  bool done = true;
  MEMORY_BASIC_INFORMATION pages;
  const std::uintptr_t end = address(at) + bytes;
  for (std::uintptr_t next = address(at); next < end && pages_at(pointer(next), pages);) {
    const std::uintptr_t here = next;
    next = address(pages.BaseAddress) + pages.RegionSize;
    if (pages.State == MEM_FREE) continue;
    const std::size_t part = (next < end ? next : end) - here;
    if (pages.State == MEM_COMMIT) done &= VirtualFree(pointer(here), part, MEM_DECOMMIT) != 0;
    if (is_empty(pages.AllocationBase)) done &= VirtualFree(pages.AllocationBase, 0, MEM_RELEASE) != 0;
  }
  ReleaseSRWLockExclusive(&releasing);
  return done;
}

// Another process may commit first the memory that was just decommitted. The heap cannot go on without these
// pages, and may get them a moment later. Tables keep theirs: a thread that reads there meanwhile would find
// none.
bool purge(void* at, std::size_t bytes, Use use) {
  const KeepLastError keep;
  constexpr int kPatience = 1000;
  if (!is_of_pages(at, bytes)) return false;
  if (use != Use::kBlocks) return memset(at, 0, bytes), true;
  if (VirtualFree(at, bytes, MEM_DECOMMIT) == 0) return false;
  for (int i = 0; i < kPatience; ++i) {
    if (VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE) != nullptr) return true;
    Sleep(1);
  }
  constexpr char kText[] = "hz: fatal: Windows does not commit pages again that were decommitted\n";
  write_error(kText, sizeof kText - 1);
  abort_process();
}

bool is_mapped(void* at, std::size_t bytes) {
  const KeepLastError keep;
  const std::uintptr_t end = address(at) + bytes;
  MEMORY_BASIC_INFORMATION pages;
  for (std::uintptr_t next = address(at); next < end; next = address(pages.BaseAddress) + pages.RegionSize)
    if (!pages_at(pointer(next), pages) || pages.State != MEM_COMMIT) return false;
  return true;
}

bool remap_fresh(void* at, std::size_t bytes) { return purge(at, bytes); }

// What Windows has not: large pages without a privilege, names of mappings, pages that move, forks.
void prefer_huge_pages(HugePages) {}
void name_mappings(bool) {}
bool forbid_huge_pages(void*, std::size_t) { return true; }
void purged_within(std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t) {}
bool move_pages(void*, void*, std::size_t) { return false; }
bool move_mapping(void*, std::size_t, void* to, std::size_t to_bytes) { return unmap(to, to_bytes), false; }
void* map_wiped_on_fork() { return nullptr; }
void set_fork_hooks(void (*)(), void (*)(), void (*)()) {}
bool lock_streams() { return false; }
void unlock_streams() {}
void renew_streams() {}

std::size_t page_bytes() { return kPageBytes; }

bool promises(std::size_t) { return true; }  // it promises nothing that it has not

std::size_t memory_bytes() {
  const KeepLastError keep;
  MEMORYSTATUSEX status;
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) == 0 ? 0 : status.ullTotalPhys;
}

// A job's limit is one of commitment, which the system enforces when pages are committed.
std::size_t address_space_limit() { return SIZE_MAX; }
Container container(const char*) { return {}; }

unsigned current_cpu() {
  constexpr unsigned kGroup = 64;
  PROCESSOR_NUMBER here;
  GetCurrentProcessorNumberEx(&here);
  return here.Group * kGroup + here.Number;
}

// Of a process that runs in one group of processors, as most do: those of its mask.
unsigned usable_cpus() {
  const KeepLastError keep;
  DWORD_PTR ours = 0, all = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) != 0 && ours != 0 && ours != all)
    return static_cast<unsigned>(__builtin_popcountll(ours));
  return GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

// From where Windows put this thread's stack, which is random, and the clock: a library for more may not be
// loaded yet.
void system_random(void* out, std::size_t bytes) {
  LARGE_INTEGER now;
  std::uint64_t word = address(&now) ^ process_id() << 32;
  for (auto* to = static_cast<unsigned char*>(out); bytes != 0; --bytes) {
    QueryPerformanceCounter(&now);
    word = (word ^ static_cast<std::uint64_t>(now.QuadPart)) * 0xD6E8FEB86659FD93U;
    word ^= word >> 32;
    *to++ = static_cast<unsigned char>(word);
  }
}

std::uint64_t milliseconds() { return GetTickCount64(); }

std::uint64_t microseconds() {
  static const std::uint64_t frequency = [] {
    LARGE_INTEGER ticks;
    QueryPerformanceFrequency(&ticks);
    return static_cast<std::uint64_t>(ticks.QuadPart);
  }();
  LARGE_INTEGER now;
  QueryPerformanceCounter(&now);
  const auto ticks = static_cast<std::uint64_t>(now.QuadPart);
  return ticks / frequency * 1000000 + ticks % frequency * 1000000 / frequency;
}

std::uint64_t thread_id() { return GetCurrentThreadId(); }
std::uint64_t process_id() { return GetCurrentProcessId(); }

const char* program_name() {
  static const char* const name = [] {
    const KeepLastError keep;
    static char path[MAX_PATH + 1];
    GetModuleFileNameA(nullptr, path, MAX_PATH);
    const char* last = strrchr(path, '\\');
    return last == nullptr ? path : last + 1;
  }();
  return name;
}

std::size_t program_path(char* out, std::size_t room) {
  const KeepLastError keep;
  const DWORD bytes = GetModuleFileNameA(nullptr, out, static_cast<DWORD>(room));
  return bytes < room ? bytes : 0;
}

std::uint64_t unix_seconds() {
  constexpr std::uint64_t kPerSecond = 10'000'000, kFrom1601 = 11'644'473'600;
  FILETIME now = {};
  GetSystemTimeAsFileTime(&now);
  const std::uint64_t ticks = std::uint64_t{now.dwHighDateTime} << 32 | now.dwLowDateTime;
  return ticks / kPerSecond - kFrom1601;
}

namespace {
using Told = bool (*)(std::uintptr_t at, std::uintptr_t code);
constinit Told is_told = nullptr;

LONG CALLBACK handle(EXCEPTION_POINTERS* what) {
  const EXCEPTION_RECORD& record = *what->ExceptionRecord;
  const bool ours = record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION && record.NumberParameters >= 2 &&
                    is_told(record.ExceptionInformation[1], address(record.ExceptionAddress));
  return ours ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}
}  // namespace

bool on_access_fault(bool (*told)(std::uintptr_t at, std::uintptr_t code)) {
  is_told = told;
  return AddVectoredExceptionHandler(1, &handle) != nullptr;
}

unsigned walk_stack(void** out, unsigned room, const StackEnd&) {
  return CaptureStackBackTrace(0, room, out, nullptr);
}
bool prepare_to_walk() { return true; }
bool PythonStack::find_interpreter() { return false; }
bool PythonStack::has_interpreter() { return false; }
bool PythonStack::program_ends() { return false; }
PythonStack::PythonStack() = default;
bool PythonStack::next(PythonFunction&) { return false; }

// This would need a call of the loader for each image; no caller needs it yet.
Code own_code() { return {}; }
Report::Report(bool in_turn) : in_turn_(in_turn) {}
Report::~Report() = default;
void Report::tell_calls(const char*) {}
bool Report::is_in_copy() { return false; }
CodeMappings::CodeMappings(char* room) : text_(room) {}
CodeMappings::~CodeMappings() = default;
const char* CodeMappings::next(std::size_t&) { return nullptr; }

namespace {
std::atomic<HANDLE> error_stream{nullptr};
}

void keep_error_stream() {
  const KeepLastError keep;
  const HANDLE self = GetCurrentProcess();
  HANDLE copy = nullptr;
  if (DuplicateHandle(self, GetStdHandle(STD_ERROR_HANDLE), self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS) !=
      0)
    error_stream.store(copy, std::memory_order_relaxed);
}

void write_error(const char* text, std::size_t length) {
  const KeepLastError keep;
  HANDLE stream = error_stream.load(std::memory_order_relaxed);
  if (stream == nullptr) stream = GetStdHandle(STD_ERROR_HANDLE);
  DWORD written = 0;
  while (length != 0 && WriteFile(stream, text, static_cast<DWORD>(length), &written, nullptr) != 0 &&
         written != 0) {
    text += written;
    length -= written;
  }
}

void abort_process() { abort(); }

void stay_loaded() {
  const KeepLastError keep;
  constexpr DWORD kByAddress = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
  HMODULE self = nullptr;
  GetModuleHandleExA(kByAddress, reinterpret_cast<const char*>(&stay_loaded), &self);
}

Environment::Environment() : variables_(nullptr) {
  const KeepLastError keep;
  text_ = GetEnvironmentStringsA();
  while (text_ != nullptr && text_[bytes_] != 0) bytes_ += strlen(text_ + bytes_) + 1;
}

Environment::~Environment() {
  const KeepLastError keep;
  if (text_ != nullptr) FreeEnvironmentStringsA(text_);
}

bool parent_was_given(const char* /*entry*/) { return false; }

}  // namespace hz::os
