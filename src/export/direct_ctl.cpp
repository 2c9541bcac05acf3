// SPDX-License-Identifier: Apache-2.0
//
// hz_ctl: knobs and actions while the process runs. Also the library's work at its load for clients from
// outside. In a separate file for hz7, whose other functions should be small. Part of every library.
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
