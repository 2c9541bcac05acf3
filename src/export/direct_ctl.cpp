// SPDX-License-Identifier: Apache-2.0
//
// hz_ctl: knobs while the process runs, and what is to be done now; and what the library does at its load for
// who asks from outside. In a file of its own, for hz7's sake, whose other functions are to be small. Part of
// every library.
#include "export/line.hpp"

using hz::ThisLibrary;

namespace hz {
void begin_control() { Control::at_load(kControlled<ThisLibrary>); }
}  // namespace hz

HZ_EXPORT int hz_ctl(const char* key, const char* set, char* get, size_t get_bytes) {
  hz::os::TextInto text(get, get_bytes);
  const hz::TextView value = set == nullptr ? "" : set;
  return hz::Control::ask(hz::kControlled<ThisLibrary>, key == nullptr ? "" : key,
                          set == nullptr ? nullptr : &value, text);
}
