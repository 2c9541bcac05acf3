// SPDX-License-Identifier: Apache-2.0
//
// The environment of the process, for the first caller of the heap. Before the C library is initialised
// `environ` is still null, and the dynamic loader already allocates. See os.hpp for the contract; called
// once, when the heap opens.
#include <sys/auxv.h>
#include <unistd.h>

#include "os/calls.hpp"
#include "os/linux_file.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

namespace hz::os {

Environment::Environment() : variables_(auxiliary_value(AT_SECURE) == 0 ? environ : nullptr) {
  if (variables_ != nullptr || auxiliary_value(AT_SECURE) != 0) return;
  FileText file;
  if (!file.read_all("/proc/self/environ")) return;
  // A program may have cut off the last one's final 0 (setproctitle): that one is not whole.
  while (file.bytes != 0 && file.text[file.bytes - 1] != 0) --file.bytes;
  text_ = file.text;
  bytes_ = file.bytes;
  mapped_ = file.room;
}

Environment::~Environment() {
  if (text_ != nullptr) call::munmap(text_, mapped_);
}

bool parent_was_given(const char* entry) {
  BasicMessage<48> path;
  path.text("/proc/")
      .decimal(static_cast<std::uint64_t>(call::make(SYS_getppid)))
      .text("/environ")
      .part("", 1);
  char buffer[512];
  FileBytes bytes(path.data(), buffer);
  const char* expected = entry;  // nullptr: this entry is another
  for (int byte; (byte = bytes.next()) >= 0;) {
    if (expected != nullptr && static_cast<unsigned char>(*expected) != byte) expected = nullptr;
    if (byte != 0) {
      if (expected != nullptr) ++expected;
    } else if (expected != nullptr) {
      return true;
    } else {
      expected = entry;
    }
  }
  return false;
}

}  // namespace hz::os
