// SPDX-License-Identifier: Apache-2.0
//
// For g++'s headers, on musl: Debian's configuration, without what glibc has and musl has not.
#pragma once

#include_next <bits/c++config.h>

#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
