// SPDX-License-Identifier: Apache-2.0
//
// A library with every fault that check_library.py looks for; built by CTest's package tests to see them
// found.
#include <string>

thread_local char faulty_thread_state[4096];

extern "C" std::string* faulty_function() { return new std::string(faulty_thread_state); }
