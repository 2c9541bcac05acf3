// SPDX-License-Identifier: Apache-2.0
//
// System calls, by the names that the C library has for them, in the namespace call. They answer what the
// kernel does: a number that is not negative, or an error as a negative one. errno stays as it is, no thread
// is cancelled in one, and none that is interrupted by a signal begins again. Called by this folder alone.
#pragma once

#if defined(__linux__)
#include "os/linux_calls.hpp"
#else
#include "os/darwin_calls.hpp"
#endif
