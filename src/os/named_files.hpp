// SPDX-License-Identifier: Apache-2.0
//
// What named_files.cpp asks of a system: to open, write and read files by their names. Called when the heap
// opens, at exit and in a signal handler: async-signal-safe, and nothing allocates. Each leaves errno as
// it found it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hz::os::files {

bool is_absolute(const char* path);
// Writes the name of the folder that relative names are meant from, and a final 0; false: none that fits.
bool current_folder(char* out, std::size_t room);

enum class Write : unsigned char { kAppend, kReplace, kNew };  // kNew: nothing may be there
// Opens a file to write to; a number below 0 if it cannot. Never waits, neither here nor in a write: a pipe
// without a reader cannot be opened, and one that is full fails the write. Follows a link only if this user
// or root made it.
std::intptr_t open_to_write(const char* path, Write how);
bool write(std::intptr_t file, const char* text, std::size_t length);  // whether all of it was written
void close_written(std::intptr_t file);
bool rename(const char* from, const char* to);  // in place of what is there
// Opens a new file that replace() puts in the place of `path`. Returns kInPlace if `path` itself is to be
// written to: the folder takes no file, or what is there is no plain file of this user and group with one
// name that may be written to. Another number below 0: there is no room.
inline constexpr std::intptr_t kInPlace = -1;
std::intptr_t open_fresh(const char* fresh, const char* path);
// Renames `fresh`, or copies and removes it where that is refused: a mount point keeps its file. Returns
// false, and `path` keeps what it has, if `fresh` is gone.
bool replace(const char* fresh, const char* path);
void remove(const char* path);
// Bytes that were read, at most `room`; -1: it cannot be read. Never waits, and follows links, as above.
std::ptrdiff_t read(const char* path, char* out, std::size_t room);

}  // namespace hz::os::files
