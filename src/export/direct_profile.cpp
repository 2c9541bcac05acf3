// SPDX-License-Identifier: Apache-2.0
//
// The heap profile of the direct API. In a file of its own: an archive gives it to those alone who call it.
// Part of every library.
#include "export/line.hpp"

HZ_EXPORT int hz_write_heap_profile(const char* path) {
  return hz::ThisLibrary::write_heap_profile(path) ? 1 : 0;
}
