// SPDX-License-Identifier: Apache-2.0
//
// The table of Python functions: see python_functions.hpp. An entry is found from the moment that its row is
// written, so a child of a fork that was cut off in the middle loses no more than that entry.
#include "heap/samples/python_functions.hpp"

#include "base/bytes.hpp"
#include "base/units.hpp"
#include "heap/samples/sampling.hpp"
#include "os/lock.hpp"

namespace hz {
namespace {

using Function = os::PythonFunction;

constexpr std::uint32_t kRows = 2 * PythonFunctions::kMost;
constinit os::LockOf<os::Rank::kFunctions> lock;
constinit std::uint32_t* rows = nullptr;  // 1 + the number of an entry, by its hash; 0: none

std::uint32_t hash_of(const Function& one) {
  std::uint64_t hash = one.line;
  const auto add = [&](const char* text) {
    for (; *text != 0; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001B3U;
    hash ^= hash >> 29;
  };
  add(one.name);
  add(one.file);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}
bool is_same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}
bool is_same(const Function& a, const Function& b) {
  return a.line == b.line && is_same(a.name, b.name) && is_same(a.file, b.file);
}

}  // namespace

HZ_COLD bool PythonFunctions::open() {
  if (entries == nullptr) {
    if (!os::PythonStack::find_interpreter()) return false;
    const std::size_t page = os::page_bytes(), of_entries = align_up(kMost * sizeof(Entry), page);
    const std::size_t of_rows = align_up(kRows * sizeof *rows, page);
    void* const at = os::map(of_entries + of_rows, page);
    if (at == nullptr) return false;
    os::forbid_huge_pages(at, of_entries + of_rows);
    rows = static_cast<std::uint32_t*>(pointer(address(at) + of_entries));
    Sampling::metadata().fetch_add(of_rows, std::memory_order_relaxed);
    // Release: a thread that sees it finds the rows.
    __atomic_store_n(&entries, static_cast<Entry*>(at), __ATOMIC_RELEASE);
  }
  return true;
}

void PythonFunctions::in_child() { lock.reset(); }

std::uintptr_t PythonFunctions::number_of(const Function& function) {
  const std::uint32_t hash = hash_of(function);
  const os::Guarded hold(lock);
  std::uint32_t row = hash & (kRows - 1);
  for (; rows[row] != 0; row = (row + 1) & (kRows - 1)) {
    const Entry& entry = entries[rows[row] - 1];
    if (entry.hash == hash && is_same(entry.function, function)) return kMark | rows[row];
  }
  const std::uint32_t number = used_.load(std::memory_order_relaxed);
  if (number == kMost) return kMark;
  Entry& entry = entries[number];
  entry.hash = hash;
  copy_bytes(&entry.function, &function, sizeof function);
  // Release: a tool outside that sees it in use sees its text, too.
  __atomic_store_n(&entry.state, 1, __ATOMIC_RELEASE);
  rows[row] = number + 1;
  used_.store(number + 1, std::memory_order_release);  // pairs with used()
  Sampling::metadata().fetch_add(sizeof(Entry), std::memory_order_relaxed);
  return kMark | (number + 1);
}

unsigned PythonFunctions::walk(os::PythonStack& stack, void** out, unsigned room) {
  unsigned count = 0;
  Function function;
  for (; count < room && stack.next(function); ++count) out[count] = pointer(number_of(function));
  return count;
}

}  // namespace hz
