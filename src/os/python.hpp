// SPDX-License-Identifier: Apache-2.0
//
// The Python functions on the calling thread's stack, as CPython's own records have them: function, file and
// line. Called for samples of the heap profile, which are taken inside of malloc. So a walk reads and does
// nothing else: it allocates nothing, takes no lock and calls no function of the interpreter that does.
// CPython has no such records for others, so their layout is known by version, 3.8 to 3.13, and compared with
// the sizes that the interpreter states for its types. No function of other versions and builds is known.
// Cost: about 0.2 microseconds for each function on the stack.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/os.hpp"

namespace hz::os {

struct PythonFunction {
  static constexpr std::size_t kFile = 392, kName = 104;
  // UTF-8 without control characters, and a 0. A longer file keeps its end, a longer name its beginning.
  char file[kFile] = {}, name[kName] = {};
  std::uint32_t line = 0;
};

class PythonStack {
 public:
  // Finds the interpreter that the process has loaded, if none was found before. Returns true if it can be
  // walked. Takes the loader's lock, and keeps the interpreter's library loaded. By one thread at a time.
  static bool find_interpreter();
  static bool has_interpreter();
  // Returns true once an interpreter that is the program itself has begun to end: what is freed from then on
  // was live when the program's own code ended.
  static bool program_ends();

  // Reads the state of the calling thread. Cost: a few loads.
  PythonStack();
  // Returns true if the thread runs no Python function.
  bool is_empty() const { return frame_ == 0; }
  // Where on the native stack the innermost function is evaluated.
  const StackEnd& evaluation() const { return evaluation_; }

  // Returns the next function, the innermost first; false at the end.
  bool next(PythonFunction& out);

 private:
  std::uintptr_t frame_ = 0;
  StackEnd evaluation_;
  [[maybe_unused]] unsigned left_ = kMost;
  static constexpr unsigned kMost = 1000;  // records, also those that are no function's
};

}  // namespace hz::os
