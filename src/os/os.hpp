// SPDX-License-Identifier: Apache-2.0
//
// What we need from an operating system, and nothing more. Files that begin with a system's name (or with
// posix) implement it there. Called by boxes and the heap on cold paths. No function here allocates or is a
// point of cancellation, and every one leaves errno as it found it. Sizes are bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hz::os {

enum class HugePages : std::uint8_t { kAsTheSystemSays, kNever, kAlways };

// --- memory; addresses and sizes are multiples of the system's page, alignments of the granule; results
// zeroed
void* reserve(std::size_t bytes, std::size_t alignment);  // address space only; nullptr when refused
bool commit(void* at, std::size_t bytes);                 // make reserved, or only readable, space usable
bool forbid(void* at, std::size_t bytes);  // the reverse: makes it inaccessible and drops its contents
enum class Use : std::uint8_t { kBlocks, kTables, kReading };
enum class Placed : std::uint8_t { kHere, kTaken, kRefused };
// Returns true if this process may have a page there that it asks for politely. Sanitizers end one that
// insists on a place which is none in their plan; a page may be had there before they start.
bool may_have(void* at);
// Returns true if the system would promise a block of so many bytes, as it is asked to by the C library. Our
// own mappings are not counted by it, and it grants any size of them.
bool promises(std::size_t bytes);
Placed extend(void* at, std::size_t bytes, Use use = Use::kBlocks);  // map space exactly there, or not at all
void prefer_huge_pages(HugePages choice);  // for blocks: of what is reserved, extended, remapped from now on
// Blocks: what is extended from now on is not to be touched before it is committed, where the system can say
// so.
void forbid_uncommitted();
bool forbids_uncommitted();
// Whether what is mapped from now on is to have a name where the system shows one: "hakozuna", or
// "hakozuna tables". A system call each; a kernel that refuses is asked once.
void name_mappings(bool named);
void* map(std::size_t bytes, std::size_t alignment, Use use = Use::kTables);  // usable at once
bool forbid_huge_pages(void* at, std::size_t bytes);  // for metadata; true also where there are none
bool unmap(void* at, std::size_t bytes);
// A page of zeroes that reads as zeroes again in a child process, however that was made; nullptr if there is
// none (Linux before 4.14).
void* map_wiped_on_fork();
// What is one process's alone. The heap moves it to such a page when it opens: then all of it is zero in a
// child, which writes to no other page for it.
struct OfProcess {
  std::atomic<std::uint32_t> heap{0};    // heap/process/fork.hpp
  std::atomic<bool> is_child{false};     // of a fork, with the heap of its parent
  std::atomic<std::uint32_t> random{0};  // random.cpp
  std::atomic<std::uint64_t> noted{0};   // its number: note_process()
};
inline constinit OfProcess before_the_heap;
inline constinit std::atomic<OfProcess*> of_process{&before_the_heap};
// Returns true in a process that has the heap of another one, which forked. Acquire: pairs with the heap's
// start.
inline bool is_forked() {
  return of_process.load(std::memory_order_acquire)->is_child.load(std::memory_order_relaxed);
}
// Returns 0 in the first process, and in a child a number below `end` that hardly any parent of it has.
inline unsigned process_number_below(unsigned end) {
  const OfProcess& own = *of_process.load(std::memory_order_acquire);
  return is_forked() ? static_cast<unsigned>(own.noted.load(std::memory_order_relaxed) % (end - 1)) + 1 : 0;
}
// Pages go back; reads as zero afterwards. Of tables others may read meanwhile, and find zero or what was
// there.
bool purge(void* at, std::size_t bytes, Use use = Use::kBlocks);
// Memory for blocks from `from` to `to` was purged, and the range from `begin` to `end` around it has none
// now. Lets the kernel make huge pages there again, where a purge before had taken them out of khugepaged's
// reach.
void purged_within(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t from, std::uintptr_t to);
// Moves pages onto others; `from` reads as zero afterwards. False: some may have moved, from the start of a
// mapping to its end, and `to` may have holes. A kernel that cannot is asked once.
bool move_pages(void* from, void* to, std::size_t bytes);
// Moves a mapping onto a longer one, all of which is one mapping then. False: it stays where it is, and `to`
// is not ours any more.
bool move_mapping(void* from, std::size_t bytes, void* to, std::size_t to_bytes);
bool is_mapped(void* at, std::size_t bytes);    // all of it
bool remap_fresh(void* at, std::size_t bytes);  // purge, and merge the mapping with its neighbours again

// --- the machine and its limits
std::size_t page_bytes();
std::size_t memory_bytes();         // physical memory, 0 if unknown; the system is asked once
std::size_t address_space_limit();  // RLIMIT_AS, SIZE_MAX if there is none
unsigned current_cpu();             // the calling thread is or was just now on it; 0 if unknown
unsigned usable_cpus();  // that the process (its first thread) may run on, 0 if unknown; a system call
// Random bytes of the process's own generator, which cannot be foreseen from any that were seen (random.cpp).
void random_bytes(void* out, std::size_t bytes);
std::uint64_t random_word();
// In the child of a fork: the next bytes are not those of its parent, or of another child.
void renew_random();
// Fills the place from the system's generator; from the clock and what else differs between processes where
// that has none yet.
void system_random(void* out, std::size_t bytes);
std::uint64_t milliseconds();  // since some moment; coarse and cheap: no system call
std::uint64_t microseconds();  // the same, fine: no system call where the machine's clock can be read without

// What the control groups of this process allow it, wherever they are mounted; 0: no limit, or none that can
// be read.
struct Container {
  std::size_t memory = 0;       // bytes; beyond them processes are killed
  std::size_t memory_high = 0;  // bytes; beyond them they are slowed down
  unsigned cpus = 0;            // CPU time per time, rounded up; perhaps 0 where memory has no limit
};
// `root` goes before every path that is read; "" but in tests. Some tens of system calls, more the deeper
// groups nest.
Container container(const char* root);

// --- the process
std::uint64_t thread_id();
std::uint64_t process_id();
const char* program_name();                             // without its folder
std::size_t program_path(char* out, std::size_t room);  // bytes of it, without a final 0; 0: unknown
std::uint64_t unix_seconds();
void write_error(const char* text, std::size_t length);
void keep_error_stream();  // of the program that closes its stderr before it ends
[[noreturn]] void abort_process();
// It ends by Windows, which has ended all threads but this one, wherever they were: a lock may be held for
// ever.
bool is_process_ending();
void stay_loaded();  // this library, also if the program unloads it: its blocks and its threads do

// Files that the user named, and a folder; "%p" is the number of the process that opens them, and what does
// not begin at the root is meant from here.
enum class File : std::uint8_t { kStatistics, kProfile, kStatsFolder, kHeapProfile };
inline constexpr unsigned kFiles = 4;
bool keep_path(File file, const char* path, std::size_t length);  // false, and nothing changes: too long
const char* kept_path(File file);                                 // "": none
// Appended; on the error stream where no file is named or it cannot be opened.
void write_statistics(const char* text, std::size_t length);
// As Output does, by one thread at a time; returns true if all of it was written.
bool write_profile(const char* text, std::size_t length);
// Replaces the process's file in the folder: a reader finds the old one or the new one, whole. Returns true
// if it could. Requires: one thread at a time. Takes 8 KiB of stack.
bool write_stats_file(const char* text, std::size_t length);
void remove_stats_file();
// Bytes that were read, at most `room`; -1 if the file cannot be read.
std::ptrdiff_t read_profile(char* out, std::size_t room);
const char* heap_profile_to_write();  // the path as it is in this process; for one thread at a time
// A file that is written piece by piece, in place of what it was. A reader finds the old file or the new one,
// whole, if it is a plain file of this user or there was none. Requires: one thread at a time for each
// `file`.
class Output {
 public:
  Output(File file, const char* path);  // `path` stays until finish()
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const char* text, std::size_t length);
  bool finish();  // closes it; returns true if all of it was written

 private:
  const char* const path_;
  const char* const fresh_;  // a file beside it, renamed at last; null: it has no name
  std::intptr_t file_;
  const bool is_fresh_;
  bool whole_ = false;
};
// A process that SIGTERM would end calls `last` in the handler first, and is ended then. Does nothing if the
// program, or its parent, handles or ignores the signal.
void before_termination(void (*last)());

// Installs a handler of access faults: it calls `told` with the address, and the place of the code if that is
// known. If `told` returns true, the thread tries the access again. Otherwise a handler that the program
// installed before is called, or the system ends the process. A handler that the program installs later is
// called instead of ours. Returns false on systems without such faults.
bool on_access_fault(bool (*told)(std::uintptr_t at, std::uintptr_t code));

// --- code and stacks
struct Code {
  std::uintptr_t begin = 0, end = 0;
};
// Where a walk ends: before the first frame that runs in `code`, or that holds the address `at`.
struct StackEnd {
  Code code;
  std::uintptr_t at = 0;
};
// Writes the return addresses on the calling thread's stack, the innermost first, at most `room`, and returns
// how many. Cost: 0.3 to 1 microsecond for each.
unsigned walk_stack(void** out, unsigned room, const StackEnd& end = {});
// Whether it can be walked. May load a library, which allocates: not before the loader has come to
// constructors, and not with a lock.
bool prepare_to_walk();
// Keeps the lines of one report together, while it lives. In a copy of the process that walks for a report,
// a second report ends the copy.
class Report {
 public:
  // `in_turn`: waits until no other thread reports, 6 seconds at most, and blocks all signals of the thread.
  // Requires: with `in_turn`, no lock is held.
  explicit Report(bool in_turn);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  // Writes a line to stderr for each call that led here, the innermost first, without what of them is ours:
  // where each is, and the name of its function if a symbol table has it. Nothing where stacks cannot be
  // walked, for all but the first few reports of a process, and without a turn. Takes 3 seconds at most.
  void tell_calls(const char* what);

  // Returns true in a copy of the process that walks for a report. It has one thread, and the memory as it
  // was at the fork: no hook was called, and another thread may have held a lock.
  static bool is_in_copy();

 private:
  [[maybe_unused]] const bool in_turn_;
  [[maybe_unused]] bool has_turn_ = false;
  [[maybe_unused]] std::uint64_t signals_ = 0;  // that were blocked before
};
// Where our own code lies, if it is in a library beside the program; else nothing.
Code own_code();
// What the system tells of the mappings that hold code, a line each as in /proc/self/maps; nothing where it
// tells nothing.
class CodeMappings {
 public:
  static constexpr std::size_t kRoom = 8192;  // for a line: of a path, and too long for a stack
  explicit CodeMappings(char* room);
  ~CodeMappings();
  CodeMappings(const CodeMappings&) = delete;
  CodeMappings& operator=(const CodeMappings&) = delete;

  const char* next(std::size_t& length);  // without its end; nullptr: no more

 private:
  [[maybe_unused]] char* const text_;
  [[maybe_unused]] std::size_t filled_ = 0, at_ = 0;
  [[maybe_unused]] std::intptr_t file_ = -1;
};

// The environment that the process was given, as it stands now; nothing in a setuid program. What it answers
// stays as long as the object. Costs no system call, but where the C library has no environment yet: then one
// file is read.
class Environment {
 public:
  Environment();
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void rewind();
  const char* next();                      // "NAME=value", one after the other; nullptr at the end
  const char* value_of(const char* name);  // of the first of that name; nullptr if there is none

 private:
  char** const variables_;  // of the C library
  char* text_ = nullptr;    // else: all of them, each with its final 0
  std::size_t bytes_ = 0, mapped_ = 0;
  std::size_t at_ = 0;
};
// The variable that names libraries which a program loads first; and whether the parent process was started
// with that entry, "NAME=value", in its environment: false where the system does not say.
inline constexpr const char* kPreload = "LD_PRELOAD";
bool parent_was_given(const char* entry);

// `at_thread_exit` is called with the state that the thread has armed when the thread ends; it may arm again
// to be called after the destructors of others. False (no more keys, no memory): the thread's end goes
// unnoticed.
bool create_exit_hook(void (*at_thread_exit)(void*), unsigned* key);
bool arm_exit_hook(unsigned key, void* state);
void set_fork_hooks(void (*prepare)(), void (*parent)(), void (*child)());
// Where the C library locks heaps around a fork itself, what it calls for that keeps the hooks in place of
// the system, and calls them. Null, but in a library that has such a part (export/darwin_zone.cpp).
struct ForkHooks {
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
extern ForkHooks* fork_hooks_kept;
// The C library's list of open streams, which glibc's fork locks behind the hooks. The holder of that lock
// may wait for a stream, whose owner may wait for the heap: getline allocates. So hooks that take the heap's
// locks take this one first. False where there is nothing to take: a process of one thread forks without it,
// and other C libraries keep it to themselves. Waits for those locks only briefly: the holder of one may be
// in a signal handler that forks, and wait for this one.
bool lock_streams();
void unlock_streams();
inline constexpr unsigned kStreamsPatience = 100;  // milliseconds
void renew_streams();                              // in the child of its holder: releases it

// --- waiting
void wait_on(const std::uint32_t* word, std::uint32_t while_value);
void wake_one(const std::uint32_t* word);
void wait_at_most(const std::uint32_t* word, std::uint32_t while_value, unsigned milliseconds);
void give_way();  // others may run first
// And may be woken for that: it takes a millisecond.
inline void let_others_wake() {
  static constexpr std::uint32_t kWord = 0;
  wait_at_most(&kWord, kWord, 1);
}

// --- threads
// A detached thread that no signal is delivered to. Not to be called where the C library may hold its locks:
// of a process that has threads, it frees under the lock that a new thread needs, but does not allocate.
// False if there can be none, or not yet: there can from the library's first constructor on, in the process
// that was noted last. A child of vfork(2), or of clone(2) with CLONE_VM, shares our memory with that
// process, and what the C library knows of its threads: a thread of the child would be the child's.
struct OwnThread {
  void (*run)();
  const char* name;  // up to 15 letters
};
bool start_thread(const OwnThread& thread);  // which stays
void note_process();      // The calling process owns the memory: at the heap's start, and after a fork.
bool is_noted_process();  // False in a child that shares the memory of the noted process. A system call.
bool may_have_threads();  // the process had one beside its first; false also where the C library does not
                          // tell
bool has_one_thread();    // the calling one; false also where the C library does not tell
// Every other running thread passes a full memory barrier between this call and its return. Returns false if
// the system has none, or if prepare_barrier() was not called: then there is no system call.
void prepare_barrier();  // a system call; children of a fork need it no more
bool barrier_on_all_threads();

// --- control from outside. By one thread of ours, which does nothing else. On other systems there is none.
#if defined(__linux__)
inline constexpr bool kHasControl = true;
#else
inline constexpr bool kHasControl = false;
#endif
// Gives this thread an empty table of open files. Files that it opens disturb no other code, no child
// inherits them, and files that the program closes are closed. Returns 0, or an error of the system. Messages
// of the thread still go to the process's error stream.
int leave_files();
// Opens a socket whose name has the process's number in it, and a random one. 0; else an error of the
// system's.
int open_control();
// A client: it sends a line (without its end), is of another user, sends no whole line in kPatience
// milliseconds, or more than kMostLine bytes.
enum class Client : std::uint8_t { kAsks, kStranger, kSilent, kTooLong };
struct Request {
  static constexpr unsigned kPatience = 1000;
  static constexpr std::size_t kMostLine = 2048;

  Client client = Client::kAsks;
  const char* line = nullptr;
  std::size_t length = 0;
};
// Waits so long for one client and sends it what `answer` writes, how many bytes is answered. Takes 2 KiB of
// stack and the room for an answer.
constexpr std::size_t kMostAnswer = 16384;
void serve_control(unsigned milliseconds, std::size_t (*answer)(const Request&, char* out, std::size_t room));
// Whether the process's first thread has ended, and no thread is left but so many of ours. False where that
// cannot be known.
bool are_last_threads(unsigned ours);

}  // namespace hz::os
