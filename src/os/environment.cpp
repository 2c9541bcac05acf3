// SPDX-License-Identifier: Apache-2.0
//
// What the environment says, variable by variable; where it is got from is the system's part. See os.hpp for
// the contract; called once, when the heap opens.
#include <string.h>

#include "os/os.hpp"

namespace hz::os {

void Environment::rewind() { at_ = 0; }

const char* Environment::next() {
  if (variables_ != nullptr) {
    const char* entry = variables_[at_];
    if (entry != nullptr) ++at_;
    return entry;
  }
  if (at_ >= bytes_) return nullptr;
  const char* entry = text_ + at_;
  at_ += strlen(entry) + 1;
  return entry;
}

const char* Environment::value_of(const char* name) {
  const std::size_t n = strlen(name);
  rewind();
  while (const char* entry = next())
    if (strncmp(entry, name, n) == 0 && entry[n] == '=') return entry + n + 1;
  return nullptr;
}

}  // namespace hz::os
