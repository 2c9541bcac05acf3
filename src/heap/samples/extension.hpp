// SPDX-License-Identifier: Apache-2.0
//
// Extension: what serves an allocation, owns an address, or follows the process beside the heap itself. An
// extension defines the calls that it needs; `NoExtension` has defaults for all others, which do nothing. The
// shared heap calls a list of extensions (sampling.hpp), and knows none of them. Called from slow paths.
#pragma once

#include <concepts>

#include "base/layout.hpp"
#include "base/size_classes.hpp"
#include "box/guard/contract.hpp"

namespace hz {

// Rates at which samples are drawn; 0: none of that kind.
struct Rates {
  std::uint64_t interval = 0;  // bytes between two of the heap profile
  std::uint64_t every = 0;     // one allocation in so many lies on a guarded page

  bool operator==(const Rates&) const = default;
};

// What is wrong with an address, and its class.
struct Finding {
  Fault fault = Fault::kNone;
  Bin bin = 0;  // of the block that the address lies in; 0 if there is none
};

// `line`: for reports. `walking`, `caller`: see heap/samples/stacks.hpp.
struct NoExtension {
  // --- the process

  static void open(const Rates&, const char* /*line*/) {}  // with the heap
  static void at_load(bool& /*walking*/) {}                // when the loader comes to constructors
  static void before_load() {}                             // the program is about to load a library
  static void in_child() {}                                // a process begins
  // While the process runs; the samples that there are stay. Returns false if there is no memory. By one
  // thread at a time, without a lock of the heap's.
  static bool change(const Rates&, const Rates& /*now*/, const char*, bool& /*walking*/) { return true; }
  static constexpr const void* begin_of_words() { return nullptr; }  // see base/layout.hpp
  static constexpr auto words(layout::Part, layout::Part /*pattern*/) { return layout::Words<0>{}; }

  // --- its blocks, which lie outside of the arena

  struct Found : Finding {
    std::size_t bytes = 0;     // that a live block was asked for with
    const void* at = nullptr;  // what a free found wrong, if not the pointer

    bool is_start() const { return fault == Fault::kNone || fault == Fault::kDoubleFree; }
  };
  using Visit = int (*)(void* block, std::size_t bytes, void* argument);

  static bool has(const void* /*at*/) { return false; }         // the address is in its memory
  static bool may_take(std::size_t /*size*/) { return false; }  // such blocks are served at the time
  // Returns a block of exactly `size` bytes that read as zero, or nullptr. Lock: the thread's.
  static void* take(Bin, std::size_t /*size*/, std::size_t /*alignment*/) { return nullptr; }
  static void note(const void* /*block*/, const void* /*caller*/, bool& /*walking*/) {}  // Lock: none
  static Found look(const void* /*at*/) { return {}; }  // what a free would find
  // Frees a block, unless there is none; one with kOutOfBounds, too. `enter` takes the thread's lock.
  static Found free(auto /*enter*/, const void* /*block*/, bool& /*walking*/) { return {}; }
  static void shrink(const void* /*block*/, std::size_t /*size*/) {}  // a live one, to at least a byte
  // Visits live blocks, and maybe one that another thread frees meanwhile, until an answer is not 0.
  static int walk(Visit, void* /*argument*/) { return 0; }

  // --- a record of blocks in runs. The bin of a huge block, or of one that is not recorded: kHugeBin

  static bool records() { return false; }  // there is or was a record
  static void add(const void*, Bin, std::size_t /*bytes*/, const void* /*caller*/, bool& /*walking*/) {}
  static void give_up() {}  // there was no memory for a block that would have been recorded
  static Bin bin_of(const void* /*block*/) { return kHugeBin; }
  static Bin end(const void* /*block*/) { return kHugeBin; }  // before another thread can have its address
  static std::size_t samples() { return 0; }                  // live ones with a class
  static std::size_t sample_bytes() { return 0; }
  // Returns false if there is none, another thread is at it, or it cannot be written. nullptr: where the user
  // said. `patience`: milliseconds for a lock that the interrupted thread may hold; 0: endless.
  static bool write(const char* /*path*/, const char* /*line*/, unsigned /*patience*/) { return false; }
};

// A call goes to the extension that defines it: there it hides the default, which is a virtual base. A call
// that several define does not compile, unless it is passed on to each of them here.
template <std::derived_from<NoExtension>... Each>
struct ExtensionList : virtual NoExtension, Each... {
  static void open(const Rates& rates, const char* line) { (Each::open(rates, line), ...); }
  static void at_load(bool& walking) { (Each::at_load(walking), ...); }
  static void in_child() { (Each::in_child(), ...); }
  static bool change(const Rates& before, const Rates& now, const char* line, bool& walking) {
    return (Each::change(before, now, line, walking) && ...);
  }
};

}  // namespace hz
