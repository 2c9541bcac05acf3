// SPDX-License-Identifier: Apache-2.0
//
// Calling the program's new_handler, for operator new when memory is short. In a file of its own, because it
// is the only one that is compiled with exceptions.
#pragma once

namespace hz {

// Both return false if there is no handler (or no C++ runtime).
bool call_new_handler();          // what the handler throws passes through
bool try_new_handler() noexcept;  // false also if the handler throws

}  // namespace hz
