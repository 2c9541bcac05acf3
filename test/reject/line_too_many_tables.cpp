// SPDX-License-Identifier: Apache-2.0
//
// More tables than the source keeps.
// says: the source cannot keep so many tables
#include "line/hz8.hpp"

struct Line : hz::Hz8 {
#ifndef HZ_COMPLETE
  struct Guard : hz::Hz8::Guard {
    static constexpr std::size_t kPart = kWideBytes / 8;
    static constexpr std::size_t kTableBytesPerGranule = kDenseBytes + kWideBytes;
    static constexpr std::size_t kTables[] = {kDenseBytes, kPart, kPart, kPart, kPart,
                                              kPart,       kPart, kPart, kPart};
  };
#endif
};

template struct hz::Composition<Line>;
