// SPDX-License-Identifier: Apache-2.0
//
// What we need from an operating system, and nothing more; one implementation file per system. Called by boxes and the
// heap on cold paths. No function here allocates or is a point of cancellation, and every one leaves errno as it
// found it. Sizes are bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hz::os {

enum class HugePages : std::uint8_t { kAsTheSystemSays, kNever, kAlways };

// --- memory; addresses and sizes are multiples of the granule, results zeroed
void* reserve(std::size_t bytes, std::size_t alignment);  // address space only; nullptr when refused
bool commit(void* at, std::size_t bytes);                 // make reserved space usable
bool extend(void* at, std::size_t bytes);                 // map usable space exactly there; false if taken or refused
void prefer_huge_pages(HugePages choice);                 // of what is reserved, extended, remapped from now on
void* map(std::size_t bytes, std::size_t alignment);      // usable at once
bool forbid_huge_pages(void* at, std::size_t bytes);      // for metadata; true also where there are none
void unmap(void* at, std::size_t bytes);
bool purge(void* at, std::size_t bytes);  // pages go back; reads as zero afterwards
// Moves pages onto others; `from` reads as zero afterwards. False: some may have moved, from the start of a mapping to
// its end, and `to` may have holes.
bool move_pages(void* from, void* to, std::size_t bytes);
bool is_mapped(void* at, std::size_t bytes);    // all of it
bool remap_fresh(void* at, std::size_t bytes);  // purge, and merge the mapping with its neighbours again

// --- the machine and its limits
std::size_t page_bytes();
std::size_t memory_bytes();           // physical memory, 0 if unknown
std::size_t address_space_limit();    // RLIMIT_AS, SIZE_MAX if there is none
unsigned current_cpu();               // the calling thread is or was just now on it; 0 if unknown
unsigned usable_cpus();               // that the process (its first thread) may run on, 0 if unknown
std::uint64_t random_word();          // differs from process to process
std::uint64_t milliseconds();         // since some moment; coarse and cheap
std::uint64_t thread_microseconds();  // of a processor that the calling thread had; a system call

// What the control groups of this process allow it, wherever they are mounted; 0: no limit, or none that can be read.
struct Container {
  std::size_t memory = 0;       // bytes; beyond them processes are killed
  std::size_t memory_high = 0;  // bytes; beyond them they are slowed down
  unsigned cpus = 0;            // CPU time per time, rounded up
};
// `root` goes before every path that is read; "" but in tests. Tens of system calls, and more the deeper groups nest.
Container container(const char* root);

// --- the process
std::uint64_t thread_id();
void write_error(const char* text, std::size_t length);
void keep_error_stream();  // of the program that closes its stderr before it ends
[[noreturn]] void abort_process();
// Copies the value of an environment variable; false if unset, longer than `capacity` - 1, or the process is setuid.
bool environment(const char* name, char* value, std::size_t capacity);

// `at_thread_exit` is called with the state that the thread has armed when the thread ends; it may arm again to be
// called after the destructors of others. False (no more keys): threads end unnoticed.
bool create_exit_hook(void (*at_thread_exit)(void*), unsigned* key);
void arm_exit_hook(unsigned key, void* state);
void set_fork_hooks(void (*prepare)(), void (*parent)(), void (*child)());

// --- waiting
void wait_on(const std::uint32_t* word, std::uint32_t while_value);
void wake_one(const std::uint32_t* word);
void wait_at_most(const std::uint32_t* word, std::uint32_t while_value, unsigned milliseconds);
void give_way();  // others may run first

// --- threads
// A detached thread that no signal is delivered to. Not to be called where the C library may hold its locks: of a
// process that has threads, it frees under the lock that a new thread needs, but does not allocate. Nor by two threads
// at once. False if there can be none, or not yet.
bool start_thread(void (*run)(), const char* name);
bool never_had_threads();  // false also where the C library does not tell
// Every other running thread passes a full memory barrier between this call and its return. False where there is none.
bool barrier_on_all_threads();

}  // namespace hz::os
