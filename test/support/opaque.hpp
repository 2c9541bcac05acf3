// SPDX-License-Identifier: Apache-2.0
//
// Hides a value from the optimiser and from the compiler's allocation warnings: tests ask for impossible
// sizes and use pointers in ways that a compiler would rightly complain about, or fold away. Called by every
// test that misuses malloc.
#pragma once

namespace hz_test {

template <class T>
inline T Opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

}  // namespace hz_test
