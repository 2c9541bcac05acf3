// SPDX-License-Identifier: Apache-2.0
//
// What the C++ runtime that tests on musl run with (cmake/musl.cmake) has not yet, and g++'s newer headers
// take for granted. Linked into tests that cmake/musl.cmake builds, and into no other.
#include <new>
#include <sstream>

template class std::basic_stringbuf<char>;
template class std::basic_istringstream<char>;
template class std::basic_ostringstream<char>;
template class std::basic_stringstream<char>;

namespace std {
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std
