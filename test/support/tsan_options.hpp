// SPDX-License-Identifier: Apache-2.0
//
// What ThreadSanitizer would end a program for, or report, and what programs may do with our heap: a child of
// fork starts its own background purger, and a handler of SIGABRT allocates. Included once by each program
// that does either; nobody calls it where there is no ThreadSanitizer.
#pragma once

extern "C" const char* __tsan_default_options() { return "die_after_fork=0:report_signal_unsafe=0"; }
