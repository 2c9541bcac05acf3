// SPDX-License-Identifier: Apache-2.0
//
// Extension: what serves an allocation, owns an address, or follows the process beside the heap itself. An
// extension defines the calls that it needs; `NoExtension` has defaults for all others, which do nothing. The
// shared heap calls a list of extensions (sampling.hpp), and knows none of them. Called from slow paths.
#pragma once

#include <concepts>

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
  static void in_child() {}                                // a process begins
  // While the process runs; the samples that there are stay. Returns false if there is no memory. By one
  // thread at a time, without a lock of the heap's.
  static bool change(const Rates&, const Rates& /*now*/, const char* /*line*/, bool& /*walking*/) {
    return true;
  }

  // --- blocks of its own, outside of the arena

  struct Found : Finding {
    std::size_t bytes = 0;     // that a live block was asked for with
    const void* at = nullptr;  // what a free found wrong, if not the pointer
  };
  using Visit = int (*)(void* block, std::size_t bytes, void* argument);

  static bool has(const void* /*at*/) { return false; }
  static bool may_take(std::size_t /*size*/) { return false; }
  // Returns a block of exactly `size` bytes that read as zero, or nullptr. Lock: the thread's.
  static void* take(Bin, std::size_t /*size*/, std::size_t /*alignment*/) { return nullptr; }
  static void note(const void* /*block*/, const void* /*caller*/, bool& /*walking*/) {
  }                                                     // taken, without a lock
  static Found look(const void* /*at*/) { return {}; }  // what a free would find
  // Frees a block unless it finds that there is none. It finds kOutOfBounds of a block that it frees. `Lock`
  // takes the thread's.
  template <class Lock>
  static Found free(const void* /*block*/, bool& /*walking*/) {
    return {};
  }
  static void shrink(const void* /*block*/, std::size_t /*size*/) {}  // a live one, to at least a byte
  // Visits live blocks, and maybe one that another thread frees meanwhile, until an answer is not 0.
  static int walk(Visit, void* /*argument*/) { return 0; }
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
