// SPDX-License-Identifier: Apache-2.0
//
// What the small library of variant.c shows. The macros are given by CMakeLists.txt.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct variant_stats {
  HZ_TYPE first;
  uint64_t last;
} variant_stats_t;

int variant_trim(HZ_ARGUMENT pad);
void variant_stats(variant_stats_t* out);
void HZ_NAME(void);
