// SPDX-License-Identifier: Apache-2.0
//
// The Python functions that samples of the heap profile were taken in, each with a line once. A code object
// may be gone when the profile is read, so its names are copied. A number stands for it on a stack, in place
// of an address. Called by the heap profile for samples, in processes that have an interpreter.
// Cost: 512 bytes for each function and line, up to 4 MiB; a hash of some 100 bytes and a lock for each
// frame.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "os/python.hpp"

namespace hz {

struct PythonFunctions {
  static constexpr std::uint32_t kMost = 1U << 13;
  // On a stack such a number has this bit, which no address has. Number 0: there was no room for it.
  static constexpr std::uintptr_t kMark = std::uintptr_t{1} << 63;

  // Finds the interpreter, and makes room for its functions. Takes the loader's lock. By one thread at a
  // time. Returns false if there is no interpreter, or no memory.
  static bool open();
  static void in_child();

  // Writes the functions on the calling thread's stack, the innermost first, and returns how many.
  // Requires: open() returned true.
  static unsigned walk(os::PythonStack& stack, void** out, unsigned room);

  // Words for tools that look from outside. Entries follow each other without a gap, and never change.
  struct Entry {
    std::uint32_t state = 0;  // 0: empty, and so are all that follow
    std::uint32_t hash = 0;
    os::PythonFunction function;
  };
  static inline constinit Entry* entries = nullptr;
  static std::uint32_t used() { return used_.load(std::memory_order_acquire); }

  static constexpr auto words_of_entry() {
    using Word = layout::Word;
    using Function = os::PythonFunction;
    constexpr std::size_t kAt = offsetof(Entry, function);
    return layout::Words<6>{Word("function.bytes", sizeof(Entry)),
                            {"function.most", kMost},
                            {"function.state", offsetof(Entry, state), sizeof(std::uint32_t)},
                            {"function.line", kAt + offsetof(Function, line), sizeof(std::uint32_t)},
                            {"function.name", kAt + offsetof(Function, name), 1, Function::kName},
                            {"function.file", kAt + offsetof(Function, file), 1, Function::kFile}};
  }

 private:
  static std::uintptr_t number_of(const os::PythonFunction& function);
  static inline constinit std::atomic<std::uint32_t> used_{0};
};

}  // namespace hz
