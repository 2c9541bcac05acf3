// SPDX-License-Identifier: Apache-2.0
//
// For g++'s headers, on musl: what they ask of the C library is there, under the names of POSIX. Debian's
// own file asks for the version of glibc.
#pragma once

#define __NO_CTYPE 1
#define _GLIBCXX_NATIVE_THREAD_ID pthread_self()
#define _GLIBCXX_GTHREAD_USE_WEAK 0
