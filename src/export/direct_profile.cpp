// SPDX-License-Identifier: Apache-2.0
//
// The heap profile of the direct API. In a separate file, so that an archive links it into programs that call
// it, and no others. Part of every library.
#include "export/line.hpp"

HZ_EXPORT int hz_write_heap_profile(const char* path) {
  return hz::ThisLibrary::write_heap_profile(path) ? 1 : 0;
}
