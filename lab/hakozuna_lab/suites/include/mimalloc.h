/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of mimalloc's header, for those of its tests that call malloc: what they call besides does nothing. Included
 * by the programs of `hz suites mimalloc`. */
#pragma once
#include <stdlib.h>

static inline int mi_version(void) { return 0; }
static inline void mi_stats_reset(void) {}
