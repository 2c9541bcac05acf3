// SPDX-License-Identifier: Apache-2.0
//
// What the environment says, variable by variable; where it is got from is the system's part. See os.hpp for
// the contract; called once, when the heap opens.
#include "base/text.hpp"
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
  at_ += TextView(entry).size() + 1;
  return entry;
}

const char* Environment::value_of(const char* name) {
  rewind();
  const TextView wanted = name;
  while (const char* entry = next())
    if (begins_with(entry, wanted) && entry[wanted.size()] == '=') return entry + wanted.size() + 1;
  return nullptr;
}

}  // namespace hz::os
