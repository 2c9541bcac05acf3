// SPDX-License-Identifier: Apache-2.0
//
// A library that takes 64 bytes of the static thread-local storage which the loader keeps for late comers:
// copies of it use that up. Loaded by late_test.cpp.
static __thread char eaten[64] __attribute__((tls_model("initial-exec"), aligned(16)));

char* eater_bytes(void) { return eaten; }
