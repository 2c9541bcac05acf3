// SPDX-License-Identifier: Apache-2.0
//
// The places of blocks on guarded pages, and what is told of them: see guarded.hpp.
#include "heap/samples/guarded.hpp"

#include "base/bytes.hpp"
#include "base/compiler.hpp"
#include "base/plain_word.hpp"
#include "base/units.hpp"
#include "box/guard/report.hpp"
#include "heap/samples/sampling.hpp"
#include "heap/samples/stacks.hpp"
#include "os/lock.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

namespace hz {
namespace {

using Stack = GuardedPool::Stack;
using Hold = os::Guarded;

enum class Use : std::uint8_t { kUnused, kLive, kFreed };

struct Place {
  std::atomic<Use> use{Use::kUnused};
  // Whose place it is writes them, and who frees what it had before may read them.
  OwnerWord<std::uint32_t> bin;
  OwnerWord<std::uintptr_t> block;
  OwnerWord<std::size_t> size;
  Stack allocated, freed;
};

constexpr unsigned kPlaces = GuardedPool::kPlaces;

constexpr std::uintptr_t align_down(std::uintptr_t n, std::size_t alignment) { return n & ~(alignment - 1); }

constinit os::LockOf<os::Rank::kSamples> lock;
constinit Place* places = nullptr;
constinit std::uint16_t* ring = nullptr;  // of kPlaces; the first `idle` from `head` on
constinit char* mapping_text = nullptr;   // of CodeMappings::kRoom
constinit unsigned head = 0, idle = 0;

std::size_t page() { return GuardedPool::state.page; }
std::uintptr_t page_of(const Place& place) {
  return GuardedPool::state.base + (2 * static_cast<std::size_t>(&place - places) + 1) * page();
}
// Whose page it is, or of the two neighbours of a guard page the nearer one that was ever used.
Place& nearest(std::uintptr_t at) {
  const std::size_t number = (at - GuardedPool::state.base) / page();
  if (number % 2 == 1) return places[number / 2];
  const std::size_t after = number / 2;  // the place behind the guard page
  if (after == 0) return places[0];
  if (after == kPlaces) return places[kPlaces - 1];
  const bool is_behind = at % page() < page() / 2;
  Place &near = places[is_behind ? after - 1 : after], &far = places[is_behind ? after : after - 1];
  return near.use.load(std::memory_order_relaxed) != Use::kUnused ? near : far;
}

// --- what of a page is no block's. So much of it is looked at.

constexpr std::size_t kLooked = 128;

unsigned char filler(std::uintptr_t at) { return static_cast<unsigned char>(0xA7 ^ at); }

template <class Each>
void each_beside(const Place& place, Each each) {
  const std::uintptr_t from = page_of(place), to = from + page();
  const std::uintptr_t block = place.block.peek(), end = block + place.size.peek();
  for (std::uintptr_t at = block - from < kLooked ? from : block - kLooked; at < block; ++at) each(at);
  for (std::uintptr_t at = end; at < to && at < end + kLooked; ++at) each(at);
}
void fill(const Place& place) {
  each_beside(place, [](std::uintptr_t at) { *static_cast<unsigned char*>(pointer(at)) = filler(at); });
}
// The first byte that somebody wrote to; 0: nobody did.
std::uintptr_t overwritten(const Place& place) {
  std::uintptr_t first = 0;
  each_beside(place, [&](std::uintptr_t at) {
    if (first == 0 && *static_cast<const unsigned char*>(pointer(at)) != filler(at)) first = at;
  });
  return first;
}

// --- what is told

HZ_COLD void tell_block(const Place& place, std::uintptr_t at, bool live, std::uintptr_t code) {
  const std::uintptr_t block = place.block.peek(), end = block + place.size.peek();
  os::Message message;
  message.text("hz: guarded block=0x").hex(block).text(" size=").decimal(end - block);
  message.text(live ? " state=live" : " state=freed");
  if (at < block) {
    message.text(" ptr=before:").decimal(block - at);
  } else if (at >= end) {
    message.text(" ptr=behind:").decimal(at - end);
  } else {
    message.text(" ptr=inside:").decimal(at - block);
  }
  if (code != 0) message.text(" code=0x").hex(code);
  message.text("\n").send();
}
HZ_COLD void tell_stack(const char* what, const Stack& stack) {
  os::Message message;
  message.text("hz: guarded ").text(what).text(" thread=").decimal(stack.thread).text(" stack=");
  for (unsigned i = 0; i < stack.depth; ++i)
    message.text(i == 0 ? "0x" : ",0x").hex(address(stack.frames[i]));
  message.text("\n").send();
}
// Of the mappings of code those that somebody has to know who looks the addresses up.
bool is_of(const char* mapping, std::size_t length, const Stack& stack) {
  std::uintptr_t ends[2] = {};
  std::size_t at = 0;
  for (std::uintptr_t& end : ends) {
    for (; at < length && mapping[at] != '-' && mapping[at] != ' '; ++at) {
      const char c = mapping[at];
      end = end * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    ++at;
  }
  for (unsigned i = 0; i < stack.depth; ++i)
    if (address(stack.frames[i]) - ends[0] < ends[1] - ends[0]) return true;
  return false;
}
HZ_COLD void tell_mapping(const char* mapping, std::size_t length) {
  constexpr std::size_t kShown = 600;
  os::Message message;
  message.text("hz: guarded map ").part(mapping, length < kShown ? length : kShown).text("\n").send();
}

// In a signal handler, too. What it reads may change meanwhile, where the program goes on.
HZ_COLD void explain(std::uintptr_t at, std::uintptr_t code) {
  if (!GuardedPool::has(pointer(at))) return;
  static constinit os::Turn turn;
  const Place& place = nearest(at);
  const Use use = place.use.load(std::memory_order_relaxed);
  if (use == Use::kUnused) return;
  tell_block(place, at, use == Use::kLive, code);
  tell_stack("allocated", place.allocated);
  const bool was_freed = use == Use::kFreed;
  if (was_freed) tell_stack("freed", place.freed);
  const os::Turn::Mine mine(turn);
  if (!mine.is()) return;
  os::CodeMappings mappings(mapping_text);
  std::size_t length = 0;
  while (const char* const mapping = mappings.next(length)) {
    if (is_of(mapping, length, place.allocated) || (was_freed && is_of(mapping, length, place.freed)))
      tell_mapping(mapping, length);
  }
}

// Where the program goes on after a report, it may touch the page from now on.
HZ_COLD bool touched(std::uintptr_t at, std::uintptr_t code) {
  if (!GuardedPool::has(pointer(at))) return false;
  const Place& place = nearest(at);
  const bool on_its_page = at - page_of(place) < page();
  const Use use = place.use.load(std::memory_order_relaxed);
  // Nobody's, or what another thread is just making usable.
  if (use == Use::kUnused || (use == Use::kLive && on_its_page)) return false;
  const Fault fault = on_its_page ? Fault::kUseAfterFree : Fault::kOutOfBounds;
  const bool fatal = FaultReport::is_fatal(fault);
  FaultReport::tell(fault, pointer(at), place.bin.peek(), GuardedPool::state.line, code, fatal);
  return !fatal && os::commit(pointer(align_down(at, page())), page());
}

HZ_COLD void warn(const char* what) {
  os::Message().text("hz: warning: HZ_GUARD_SAMPLE: ").text(what).text("\n").send();
}

// False if there is no memory for them. Where a process has several heaps, they share the places.
HZ_COLD bool make_places(const char* line) {
  GuardedPool::State& state = GuardedPool::state;
  const Hold hold(lock);
  if (GuardedPool::is_on()) return true;
  const std::size_t page = os::page_bytes(), bytes = (2 * std::size_t{kPlaces} + 1) * page;
  constexpr std::size_t kOfRing = kPlaces * sizeof(Place), kOfText = kOfRing + kPlaces * sizeof *ring;
  const std::size_t of_places = align_up(kOfText + os::CodeMappings::kRoom, page);
  void* const table = os::map(of_places, page);
  void* const at = table == nullptr ? nullptr : os::reserve(bytes, page);
  if (at == nullptr) {
    if (table != nullptr) os::unmap(table, of_places);
    return false;
  }
  os::forbid_huge_pages(table, of_places);
  places = static_cast<Place*>(table);
  ring = static_cast<std::uint16_t*>(pointer(address(table) + kOfRing));
  mapping_text = static_cast<char*>(pointer(address(table) + kOfText));
  for (unsigned i = 0; i < kPlaces; ++i) ::new (static_cast<void*>(&places[i])) Place;
  for (unsigned i = 0; i < kPlaces; ++i) ring[i] = static_cast<std::uint16_t>(i);
  idle = kPlaces;
  state.line = line;
  state.page = page;
  state.base = address(at);
  FaultReport::explain.store(&explain, std::memory_order_release);  // pairs with tell()
  Sampling::metadata().fetch_add(of_places, std::memory_order_relaxed);
  state.bytes.store(bytes, std::memory_order_release);  // pairs with is_on()
  return true;
}

}  // namespace

HZ_COLD void GuardedPool::open(const Rates& rates, const char* line) {
  if (rates.every == 0 || is_on()) return;
  if (!make_places(line)) return warn("there is no memory for guarded pages");
  state.every.store(rates.every, std::memory_order_release);  // pairs with every()
}

// Ours is a handler of accesses once: a second time it would stand before one that hands on to it.
HZ_COLD void GuardedPool::at_load(bool& walking) {
  static constinit std::atomic<bool> hears{false};
  if (!is_on()) return;
  if (!hears.exchange(true, std::memory_order_relaxed) && !os::on_access_fault(&touched))
    warn("accesses to guarded pages end the program without a report");
  Stacks::prepare(walking);
}

// Stacks are whole before there are samples.
HZ_COLD bool GuardedPool::change(const Rates& before, const Rates& now, const char* line, bool& walking) {
  if (now.every == before.every) return true;
  if (now.every != 0) {
    if (!make_places(line)) return false;
    at_load(walking);
  }
  state.every.store(now.every, std::memory_order_release);  // pairs with every()
  return true;
}

void GuardedPool::in_child() { lock.reset(); }

void* GuardedPool::take(Bin bin, std::size_t size, std::size_t alignment) {
  if (size == 0) size = 1;
  if (alignment < kMinAlign) alignment = kMinAlign;
  if (size > state.page || alignment > state.page) return nullptr;
  Place* place = nullptr;
  bool at_the_end = false;
  {
    const Hold hold(lock);
    if (idle == 0) return nullptr;
    place = &places[ring[head]];
    head = (head + 1) % kPlaces;
    --idle;
    at_the_end = os::random_word() % 2 != 0;
  }
  const std::uintptr_t from = page_of(*place);
  if (!os::commit(pointer(from), state.page)) {
    const Hold hold(lock);
    ring[(head + idle++) % kPlaces] = static_cast<std::uint16_t>(place - places);
    return nullptr;
  }
  const std::uintptr_t block = at_the_end ? align_down(from + state.page - size, alignment) : from;
  place->block.set(block);
  place->size.set(size);
  place->bin.set(static_cast<std::uint32_t>(bin));
  place->allocated.depth = place->freed.depth = 0;
  // Where a report is not fatal, the program may have written to the page after the last free.
  clear_bytes(pointer(block), size);
  fill(*place);
  // Release: pairs with those who look without a lock.
  place->use.store(Use::kLive, std::memory_order_release);
  return pointer(block);
}

void GuardedPool::shrink(const void* block, std::size_t size) {
  Place& place = nearest(address(block));
  place.size.set(size);
  fill(place);
}

void GuardedPool::Stack::walk(const void* caller, bool& walking) {
  thread = os::thread_id();
  depth = Stacks::walk(frames, kMostFrames, caller, walking);
}

void GuardedPool::note(const void* block, const void* caller, bool& walking) {
  nearest(address(block)).allocated.walk(caller, walking);
}

GuardedPool::Found GuardedPool::look(const void* at) {
  const Place& place = nearest(address(at));
  if (address(at) - page_of(place) >= state.page) return {{.fault = Fault::kNotAllocated}};
  // Acquire: pairs with take() and release().
  const Use use = place.use.load(std::memory_order_acquire);
  if (use == Use::kUnused) return {{.fault = Fault::kNotAllocated}};
  const Bin bin = place.bin.peek();
  if (place.block.peek() != address(at))
    return {{use == Use::kLive ? Fault::kInterior : Fault::kNotAllocated, bin}};
  return use == Use::kLive ? Found{{Fault::kNone, bin}, place.size.peek()} : Found{{Fault::kDoubleFree, bin}};
}

int GuardedPool::walk(Visit visit, void* argument) {
  for (unsigned i = 0; is_on() && i < kPlaces; ++i) {
    // Acquire: pairs with take().
    if (places[i].use.load(std::memory_order_acquire) != Use::kLive) continue;
    const int answer = visit(pointer(places[i].block.peek()), places[i].size.peek(), argument);
    if (answer != 0) return answer;
  }
  return 0;
}

GuardedPool::Found GuardedPool::release(const void* block, const Stack& by) {
  Place& place = nearest(address(block));
  Found found;
  {
    // Of two who free it at once one is told, even if it has become another's block in between.
    const Hold hold(lock);
    found = look(block);
    if (found.fault != Fault::kNone) return found;
    copy_bytes(&place.freed, &by, sizeof by);  // no assignment: clang makes a call of memcpy of it
    place.use.store(Use::kFreed, std::memory_order_release);  // pairs with look()
  }
  found.at = pointer(overwritten(place));
  if (found.at != nullptr) found.fault = Fault::kOutOfBounds;
  // Else what comes late is not seen; the next block there has nothing of this one all the same.
  if (!os::forbid(pointer(page_of(place)), state.page)) clear_bytes(pointer(page_of(place)), state.page);
  const Hold hold(lock);
  ring[(head + idle++) % kPlaces] = static_cast<std::uint16_t>(&place - places);
  return found;
}

}  // namespace hz
