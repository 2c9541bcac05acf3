// SPDX-License-Identifier: Apache-2.0
//
// A child of fork starts its own background purger; without this ThreadSanitizer ends any child that starts a thread.
// Included once by each program that forks; nobody calls it where there is no ThreadSanitizer.
#pragma once

extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
