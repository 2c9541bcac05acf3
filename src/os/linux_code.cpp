// SPDX-License-Identifier: Apache-2.0
//
// Linux: where code lies, ours and everybody's, and that ours stays. See os.hpp for the contract; called at
// the start, and when a heap profile is kept.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include "base/bytes.hpp"
#include "base/units.hpp"
#include "os/calls.hpp"
#include "os/linux_symbols.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

// By the linker, in every library and program: its first byte, and the end of its code.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char etext[];
// In every library, and in programs with a dynamic linker.
extern "C" __attribute__((weak)) const ElfW(Dyn) own_dynamic_entries[] __asm__("_DYNAMIC");

namespace hz::os {

// Our own libraries are linked so (-z nodelete). One that has our archive inside tells the loader.
void stay_loaded() {
  if (own_code().begin == 0 || own_dynamic_entries == nullptr) return;
  for (const ElfW(Dyn)* entry = own_dynamic_entries; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0) return;
  keep_loaded(own_dynamic_entries);
}

Code own_code() {
  const std::uintptr_t entry = auxiliary_value(AT_ENTRY);
  const Code code = {address(__ehdr_start), address(etext)};
  return entry >= code.begin && entry < code.end ? Code{} : code;
}

namespace {

// START-END PERMS ...
bool is_code(const char* line, std::size_t length) {
  std::size_t i = 0;
  while (i < length && line[i] != ' ') ++i;
  return i + 3 < length && line[i + 3] == 'x';
}

}  // namespace

CodeMappings::CodeMappings(char* room) : text_(room) {
  file_ = call::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}
CodeMappings::~CodeMappings() {
  if (file_ >= 0) call::close(file_);
}

const char* CodeMappings::next(std::size_t& length) {
  for (;;) {
    std::size_t end = at_;
    while (end < filled_ && text_[end] != '\n') ++end;
    if (end < filled_) {
      const char* const line = text_ + at_;
      length = end - at_;
      at_ = end + 1;
      if (is_code(line, length)) return line;
      continue;
    }
    // The rest of a line that is not whole comes to the front; one without an end is none.
    filled_ -= at_;
    copy_bytes(text_, text_ + at_, filled_);
    at_ = 0;
    const long n = file_ < 0 || filled_ == kRoom ? 0 : call::read(file_, text_ + filled_, kRoom - filled_);
    if (n == -EINTR) continue;
    if (n <= 0) return nullptr;
    filled_ += static_cast<std::size_t>(n);
  }
}

}  // namespace hz::os
