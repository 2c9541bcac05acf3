// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: the places of blocks on guarded pages. The pool is heap/samples/guarded.cpp itself, with as few
// free places as the threads fight for; what tells users of it stands at the end of this file, and tells
// nobody.
#include "heap/samples/guarded.cpp"  // NOLINT(bugprone-suspicious-include): what is static in it begins anew

#include "explorer.hpp"

namespace hz_test::explorer {
namespace {

using Pool = hz::GuardedPool;
using hz::Fault;
constexpr hz::Bin kBin = 3;
constexpr std::size_t kBytes = 48;

// Where on its page a block of few bytes lies.
constexpr std::uint64_t kAtStart = 0, kAtEnd = 1;

// `free` places are left, besides those of blocks that are taken before the threads begin.
void begin(unsigned free) {
  ::new (&hz::lock) hz::os::Lock;
  hz::os::Lock::spins_.store(0, std::memory_order_relaxed);
  ::new (&Pool::state) Pool::State{};
  hz::places = nullptr;
  hz::head = hz::idle = 0;
  Pool::open({.every = 1}, "explorer");
  hz::idle = free;
}

// Its bytes are the program's: who has it writes there, and another who has it meanwhile does so, too.
void* take(std::size_t bytes = kBytes) {
  void* const block = Pool::take(kBin, bytes, 1);
  if (block == nullptr) return nullptr;
  for (std::size_t i = 0; i < bytes; ++i) static_cast<char*>(block)[i] = 1;
  others_may_run();
  ++static_cast<char*>(block)[bytes - 1];
  return block;
}
Fault release(const void* block) {
  const Pool::Stack by;
  return Pool::release(block, by).fault;
}

struct Frees {
  Fault found[3] = {};
  unsigned right() const {
    unsigned count = 0;
    for (const Fault fault : found) count += fault == Fault::kNone ? 1 : 0;
    return count;
  }
};

// Of two who free one block at once one is told.
const Scenario twice("guarded.twice", [](Execution& e) {
  begin(2);
  void* const block = take();
  auto& frees = e.make<Frees>();
  frees.found[2] = Fault::kForeign;
  for (unsigned i = 0; i < 2; ++i) e.thread([&frees, block, i] { frees.found[i] = release(block); });
  e.thread([] { expect(take() != nullptr, "there is a place"); });
  e.finally([&frees] {
    expect(frees.right() == 1, "two freed a block, or nobody did");
    expect(hz::idle == 1, "a place was lost, or is there twice");
  });
});

// The place of who freed it is another's at once: neither harms that one's block, and the late one is told.
const Scenario again("guarded.again", [](Execution& e) {
  begin(1);
  drawn = kAtStart;
  void* const block = take();
  auto& frees = e.make<Frees>();
  for (unsigned i = 0; i < 2; ++i) e.thread([&frees, block, i] { frees.found[i] = release(block); });
  e.thread([&frees, block] {
    drawn = kAtEnd;
    void* const mine = take(2 * kBytes);
    expect(mine != block, "two blocks have an address");
    if (mine != nullptr) expect(Pool::look(mine).bytes == 2 * kBytes, "half a block");
    frees.found[2] = mine != nullptr ? release(mine) : Fault::kNone;
  });
  e.finally([&frees] {
    expect(frees.right() == 2, "two freed a block, or nobody did");
    expect(frees.found[2] == Fault::kNone, "a block was ended by another's free");
    expect(hz::idle == 1, "a place was lost, or is there twice");
  });
});

// Two places, and three who want one.
const Scenario taken_once("guarded.take", [](Execution& e) {
  begin(2);
  auto& blocks = e.make<std::array<void*, 3>>();
  for (unsigned i = 0; i < 3; ++i) e.thread([&blocks, i] { blocks[i] = take(); });
  e.finally([&blocks] {
    unsigned got = 0;
    for (void* const block : blocks) {
      if (block == nullptr) continue;
      ++got;
      expect(release(block) == Fault::kNone, "a place is given to two");
    }
    expect(got == 2 && hz::idle == 2, "a place was lost, or is there twice");
  });
});

// Who asks about an address that it was not given sees a block as it is, or none.
const Scenario asked("guarded.asked", [](Execution& e) {
  begin(1);
  drawn = kAtStart;
  e.thread([] { expect(take() != nullptr, "there is a place"); });
  e.thread([] {
    const void* const at = hz::pointer(hz::page_of(hz::places[0]));
    const std::size_t size = Pool::look(at).bytes;
    expect(size == 0 || size == kBytes, "half a block");
    expect(size == 0 || Pool::look(at).bin == kBin, "half a block");
  });
});

// Two begin it while the process runs, and who sees that finds all places whole.
const Scenario begins("guarded.begins", [](Execution& e) {
  begin(0);
  ::new (&Pool::state) Pool::State{};
  hz::places = nullptr;
  for (unsigned i = 0; i < 2; ++i) {
    e.thread([i] {
      bool walking = false;
      expect(Pool::change({}, {.every = i + 1}, "explorer", walking), "there is memory");
    });
  }
  e.thread([] {
    if (Pool::every() == 0) return;
    expect(Pool::state.page == hz::os::page_bytes(), "pages of no length");
    void* const block = take();
    expect(block != nullptr && Pool::has(block), "there are places");
    expect(release(block) == Fault::kNone, "it is a block");
  });
  e.finally([] { expect(hz::idle == Pool::kPlaces, "places were made twice"); });
});

}  // namespace
}  // namespace hz_test::explorer

// --- what a report asks for: there is none

namespace hz {

void FaultReport::tell(Fault, const void*, Bin, const char*, std::uintptr_t, bool) {
  hz_test::explorer::expect(false, "nobody touches a page here");
}
bool Stacks::prepare(bool&) { return true; }
unsigned Stacks::walk(void** out, unsigned, const void* caller, bool&, const os::StackEnd&) {
  *out = const_cast<void*>(caller);
  return 1;
}

namespace os {
bool on_access_fault(bool (*)(std::uintptr_t, std::uintptr_t)) { return true; }
CodeMappings::CodeMappings(char* room) : text_(room) {}
CodeMappings::~CodeMappings() = default;
const char* CodeMappings::next(std::size_t&) { return nullptr; }
}  // namespace os

}  // namespace hz
