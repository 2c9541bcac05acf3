// SPDX-License-Identifier: Apache-2.0
//
// See windows_redirect.hpp. Redirects a function at its beginning, in machine code: a jump replaces its first
// five bytes and leads to a slot near its module, which jumps on to ours. The old bytes are not kept, because
// no code calls them any more. Costs a system call for each function, once.
#define WIN32_LEAN_AND_MEAN
#include "os/windows_redirect.hpp"

#include <string.h>
#include <windows.h>

#include <atomic>

#include "base/units.hpp"
#include "os/windows.hpp"

namespace hz::os {
namespace {

constexpr std::size_t kJump = 5;                      // e9 and a distance
constexpr std::size_t kReach = std::size_t{1} << 31;  // of a distance
constexpr std::size_t kSlot = 16;                     // ff 25 00000000, an address
constexpr std::size_t kAlignment = 16;                // of functions, by most compilers
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr unsigned kMost = 64;

using Byte = unsigned char;

std::int32_t distance(const Byte* at) {
  std::int32_t n;
  memcpy(&n, at, sizeof n);
  return n;
}

// What is as long as a jump, wherever it lies: a function that is nothing but a jump to another one; and what
// Wine has in the place of a function that it does not have, which tells so and ends the program.
bool is_plain(const Byte* at) {
  constexpr Byte kJumpNear[] = {0xE9}, kJumpThrough[] = {0xFF, 0x25}, kJumpThroughWide[] = {0x48, 0xFF, 0x25},
                 kNotInWine[] = {0x48, 0x83, 0xEC, 0x28, 0x48, 0x8D, 0x0D};
  const auto begins_with = [at](const auto& code) { return memcmp(at, code, sizeof code) == 0; };
  return begins_with(kJumpNear) || begins_with(kJumpThrough) || begins_with(kJumpThroughWide) ||
         begins_with(kNotInWine);
}

// Returns true if a possible jump among the bytes from `at` up to `end` leads to one from `first` up to
// `last`. It may be the middle of another instruction: then the answer is wrong, on the safe side.
bool jumps_between(const Byte* at, const Byte* end, const Byte* first, const Byte* last) {
  const auto leads_there = [&](std::ptrdiff_t to) { return at + to >= first && at + to < last; };
  for (; at + 2 <= end; ++at) {
    const Byte code = at[0], next = at[1];
    const bool is_short = (code & 0xF0) == 0x70 || code == 0xEB || (code & 0xFC) == 0xE0;
    if (is_short && leads_there(2 + static_cast<signed char>(next))) return true;
    if (code == 0xE9 && at + 5 <= end && leads_there(5 + distance(at + 1))) return true;
    const bool is_long = code == 0x0F && (next & 0xF0) == 0x80;
    if (is_long && at + 6 <= end && leads_there(6 + distance(at + 2))) return true;
  }
  return false;
}

// The unwind table of the function that this byte is of, and its module. None: the function has no frame, as
// one that ends by a jump to another.
const RUNTIME_FUNCTION* table_of(const Byte* at, const Byte*& module) {
  DWORD64 base = 0;
  const RUNTIME_FUNCTION* table = RtlLookupFunctionEntry(address(at), &base, nullptr);
  module = static_cast<const Byte*>(pointer(base));
  return table;
}

// Why the first bytes of a function cannot be overwritten; nullptr: they can. Its table says where it ends,
// and where its prologue does, into which nothing jumps, for Windows could not unwind from there. A function
// without a table is one of those that compilers begin at multiples of 16, or its end is not known.
const char* obstacle(const Byte* entry) {
  if (address(entry) % kWord > kWord - kJump) return "its beginning cannot be written at once";
  const Byte *module = nullptr, *end = entry + kAlignment, *first = entry + 1;
  if (const RUNTIME_FUNCTION* table = table_of(entry, module)) {
    if (module + table->BeginAddress != entry) return "it does not begin where it is exported";
    end = module + table->EndAddress;
    if (entry + kJump > end) return "it is too short";
    if (const Byte prologue = module[table->UnwindData + 1]) first = entry + prologue;
  } else if (is_plain(entry)) {
    return nullptr;
  } else if (address(entry) % kAlignment != 0 || table_of(entry + kJump - 1, module) != nullptr) {
    return "its end is not known";
  }
  return jumps_between(entry + kJump, end, first, entry + kJump) ? "it jumps back to its first bytes"
                                                                 : nullptr;
}

// Pages that a jump reaches from all of [first, last]. Where a place looks free and is not, the next one is
// far.
Byte* map_near(const Byte* first, const Byte* last, std::size_t bytes) {
  constexpr std::size_t kAllocationBytes = 64 * kKiB, kStep = 16 * kMiB;
  std::uintptr_t at = address(last) > kReach ? address(last) - kReach : 0;
  const std::uintptr_t end = address(first) + kReach - 2 * kAllocationBytes;
  MEMORY_BASIC_INFORMATION pages;
  while (VirtualQuery(pointer(at += kAllocationBytes), &pages, sizeof pages) != 0) {
    const std::uintptr_t next = address(pages.BaseAddress) + pages.RegionSize;
    at = align_up(at, kAllocationBytes);
    if (at >= end) return nullptr;
    void* got = nullptr;
    if (pages.State == MEM_FREE && at + bytes <= next)
      got = VirtualAlloc(pointer(at), bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (got != nullptr) return static_cast<Byte*>(got);
    at = (next < at + kStep ? next : at + kStep) - kAllocationBytes;
  }
  return nullptr;
}

void write_slot(Byte* slot, const void* to) {
  constexpr Byte kJumpThroughNext[] = {0xFF, 0x25, 0, 0, 0, 0};
  memcpy(slot, kJumpThroughNext, sizeof kJumpThroughNext);
  memcpy(slot + sizeof kJumpThroughNext, &to, sizeof to);
}

// At once: another thread begins the old function or the new one.
void write_jump(Byte* entry, const Byte* slot) {
  auto* const word = static_cast<std::atomic<std::uint64_t>*>(pointer(address(entry) & ~(kWord - 1)));
  std::uint64_t bytes = word->load(std::memory_order_relaxed);
  Byte* const there = reinterpret_cast<Byte*>(&bytes) + address(entry) % kWord;
  const auto offset = static_cast<std::int32_t>(slot - (entry + kJump));
  there[0] = 0xE9;
  memcpy(there + 1, &offset, sizeof offset);
  word->store(bytes, std::memory_order_release);  // the slot is whole
}

// The same function under the name by which Windows' own libraries call it, if they do.
void* twin_of(void* module, const char* name) {
  constexpr char kBeginning[] = "_o_";
  char text[64];
  if (strlen(name) + sizeof kBeginning > sizeof text) return nullptr;
  strcpy(strcpy(text, kBeginning) + sizeof kBeginning - 1, name);
  return exported(module, text);
}

struct Entry {
  Byte* at;
  const Redirection* redirection;
};

// The functions that are there, each address once.
class Entries {
 public:
  const char* find(void* module, const Redirection* list, std::size_t count, const char*& which) {
    for (const Redirection* r = list; r < list + count; ++r) {
      which = r->name;
      auto* const at = static_cast<Byte*>(exported(module, r->name));
      auto* const twin = static_cast<Byte*>(twin_of(module, r->name));
      if (at == nullptr && r->needed) return "it is not there";
      if (const char* why = at == nullptr ? nullptr : add({at, r})) return why;
      if (const char* why = twin == nullptr ? nullptr : add({twin, r})) return why;
    }
    return nullptr;
  }
  const Entry* begin() const { return entries_; }
  const Entry* end() const { return entries_ + count_; }
  std::size_t count() const { return count_; }
  Byte* first() const { return first_; }
  Byte* last() const { return last_; }

 private:
  const char* add(Entry entry) {
    for (const Entry& other : *this) {
      if (other.at == entry.at && other.redirection->to == entry.redirection->to) return nullptr;
      if (other.at < entry.at + kJump && entry.at < other.at + kJump) return "it is another function as well";
    }
    if (count_ == kMost) return "there are too many";
    if (const char* why = obstacle(entry.at)) return why;
    if (first_ == nullptr || entry.at < first_) first_ = entry.at;
    if (entry.at > last_) last_ = entry.at;
    entries_[count_++] = entry;
    return nullptr;
  }

  Entry entries_[kMost];
  std::size_t count_ = 0;
  Byte *first_ = nullptr, *last_ = nullptr;
};

}  // namespace

void* loaded_module(const char* file) {
  const KeepLastError keep;
  HMODULE module = nullptr;
  GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN, file, &module);
  return module;
}

void* exported(void* module, const char* name) {
  const KeepLastError keep;
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(module), name));
}

const char* redirect(void* module, const Redirection* list, std::size_t count, const char*& which) {
  const KeepLastError keep;
  Entries entries;
  if (const char* why = entries.find(module, list, count, which)) return why;
  which = list[0].name;
  if (entries.count() == 0) return "none is there";
  Byte *const first = entries.first(), *const end = entries.last() + kWord;
  MEMORY_BASIC_INFORMATION pages;
  if (VirtualQuery(first, &pages, sizeof pages) == 0 ||
      address(pages.BaseAddress) + pages.RegionSize < address(end))
    return "the family does not lie together";
  const std::size_t bytes = entries.count() * kSlot;
  Byte* const slots = map_near(first, end, bytes);
  if (slots == nullptr) return "there is no room near it";
  Byte* slot = slots;
  for (const Entry& entry : entries) {
    write_slot(slot, entry.redirection->to);
    slot += kSlot;
  }
  DWORD before = 0;
  const auto span = static_cast<std::size_t>(end - first);
  if (VirtualProtect(slots, bytes, PAGE_EXECUTE_READ, &before) == 0 ||
      VirtualProtect(first, span, PAGE_EXECUTE_READWRITE, &before) == 0) {
    VirtualFree(slots, 0, MEM_RELEASE);
    return "Windows does not let code be written";
  }
  slot = slots;
  for (const Entry& entry : entries) {
    write_jump(entry.at, slot);
    slot += kSlot;
  }
  VirtualProtect(first, span, before, &before);
  FlushInstructionCache(GetCurrentProcess(), first, span);
  return nullptr;
}

bool is_heap_block(void* heap, const void* block) {
  const KeepLastError keep;
  return HeapValidate(heap, 0, block) != 0;
}
std::size_t heap_block_bytes(void* heap, const void* block) { return HeapSize(heap, 0, block); }
void free_heap_block(void* heap, void* block) {
  const KeepLastError keep;
  HeapFree(heap, 0, block);
}
void* allocate_heap_block(void* heap, std::size_t bytes, bool zeroed) {
  const KeepLastError keep;
  return HeapAlloc(heap, zeroed ? HEAP_ZERO_MEMORY : 0, bytes);
}

}  // namespace hz::os
