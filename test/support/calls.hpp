// SPDX-License-Identifier: Apache-2.0
//
// The lines of a report that tell of calls, apart from the others: most tests are about what was found, and
// by which calls a test came to it is the compiler's choice.
#pragma once

#include <string>

namespace hz_test {

// Returns those of `text`, and leaves the others there.
inline std::string TakeCalls(std::string& text) {
  std::string calls, rest;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    const std::string line = text.substr(at, end - at);
    const bool tells = line.rfind("hz: called from ", 0) == 0 || line.rfind("hz: noticed in ", 0) == 0;
    (tells ? calls : rest) += line;
  }
  text = rest;
  return calls;
}

}  // namespace hz_test
