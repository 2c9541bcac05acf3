// SPDX-License-Identifier: Apache-2.0
//
// A small library that abi.py compares with variants of itself: each differs in one macro. Built by
// CMakeLists.txt.
#include "variant.h"

int variant_trim(HZ_ARGUMENT pad) { return pad != 0; }
void variant_stats(variant_stats_t* out) { out->last = out->first; }
void HZ_NAME(void) {}
HZ_MORE
