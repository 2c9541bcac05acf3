// SPDX-License-Identifier: Apache-2.0
//
// The number that the system gives the calling thread.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace hz_test {

inline unsigned long ThreadNumber() { return static_cast<unsigned long>(syscall(SYS_gettid)); }

}  // namespace hz_test
