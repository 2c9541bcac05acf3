/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of mimalloc's header of that name, which redefines malloc: here malloc stays what it is. Included by the
 * programs of `hz suites mimalloc`. */
#pragma once
#include "mimalloc.h"
