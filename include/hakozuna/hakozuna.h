/* SPDX-License-Identifier: Apache-2.0
 *
 * Hakozuna's direct API: the same heap that answers malloc, under names of its own. It works beside any other
 * malloc in the same process; blocks of one must not be freed with the other (they are reported, never passed
 * on).
 *
 * Every function may be called from every thread at any time, also before constructors and after exit
 * handlers. None is async-signal-safe.
 */
#ifndef HAKOZUNA_HAKOZUNA_H
#define HAKOZUNA_HAKOZUNA_H

#include <stddef.h>
#include <stdint.h>

#define HZ_VERSION "0.1.0"

#if defined(__GNUC__)
#define HZ_API __attribute__((visibility("default")))
#else
#define HZ_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Allocate at least `size` bytes, aligned to 16. malloc(0) gives a unique pointer.
 * NULL and errno = ENOMEM when memory cannot be had or size exceeds PTRDIFF_MAX. */
HZ_API void* hz_malloc(size_t size);

/* Allocate count * size zeroed bytes; NULL and ENOMEM when the product overflows. */
HZ_API void* hz_calloc(size_t count, size_t size);

/* Resize. The content is kept up to the smaller size; on failure the old block is intact.
 * realloc(NULL, n) is malloc(n); realloc(p, 0) frees p and returns NULL, as glibc does. */
HZ_API void* hz_realloc(void* ptr, size_t size);

/* Allocate `size` bytes at a power-of-two `alignment`; NULL and EINVAL for any other alignment, NULL and
 * ENOMEM if there is no room. */
HZ_API void* hz_aligned_alloc(size_t alignment, size_t size);

/* The same, zeroed: count * size bytes; NULL and ENOMEM also when the product overflows. */
HZ_API void* hz_aligned_calloc(size_t alignment, size_t count, size_t size);

/* hz_realloc whose block lies at `alignment` afterwards, wherever it lay before. NULL and EINVAL for what is
 * no power of two; then, and when memory cannot be had, the old block is intact. */
HZ_API void* hz_aligned_realloc(void* ptr, size_t alignment, size_t size);

/* Room for `size` bytes in the block where it lies: ptr, if it has that now, for it had or because it could
 * grow, as only blocks above 4 MiB can, or above 128 KiB if hz_realloc has grown them, and in line secure
 * what has less than its slot; it never shrinks.
 * NULL if not, and for NULL: then the block is as it was. */
HZ_API void* hz_expand(void* ptr, size_t size);

/* Free a block; NULL is ignored; errno is kept. Any pointer that is not a live block of this heap is reported
 * (see HZ_ON_INVALID) and left alone. */
HZ_API void hz_free(void* ptr);

/* Free, with the size (and alignment) that was asked for; a size that cannot be true is reported. */
HZ_API void hz_free_sized(void* ptr, size_t size);
HZ_API void hz_free_aligned_sized(void* ptr, size_t alignment, size_t size);

/* Bytes usable in the block, constant for its life; 0 for NULL. */
HZ_API size_t hz_usable_size(const void* ptr);

/* Bytes that would be usable in a block that hz_malloc(size) gave now; `size` itself if it is more than any
 * block can have, or while blocks may lie on guarded pages (HZ_GUARD_SAMPLE). Allocates nothing. */
HZ_API size_t hz_good_size(size_t size);

/* 1 if ptr is the address of a slot of this heap (live or free), 0 if it is not. Never reports. */
HZ_API int hz_owns(const void* ptr);

/* For programs that can move their blocks. Returns 1 if moving this block helps to give memory back, else 0.
 * Requires: the block is live. To move it, the same thread allocates a block of the same size next, copies,
 * and frees the old one: the new block lies in a fuller span of 64 KiB, and the old span is nearer to being
 * empty. Repeat it for all blocks until few answer 1. A thread that changes its processor in between may get
 * 1 for a block again. Always 0 for NULL, for blocks above 32 KiB and of first-class heaps, and in line
 * hz7; in the child of a fork, for blocks of its parent as long as no span is the child's own. A pointer that
 * is no block is reported. Any thread may call it. It takes up to a few microseconds. */
HZ_API int hz_defrag_hint(const void* ptr);

/* First-class heaps: what is allocated in one ends with it, in time that grows with the heap's bytes, not
 * with its blocks. For memory of a request, a level, a plugin. Any thread may allocate from any heap at any
 * time; calls for one heap wait for each other.
 *
 * Blocks of a heap are blocks like others. hz_free, and in a program whose malloc this is free, as well as
 * every other function of theirs, takes them, finds out whose they are, and reports what is wrong with a
 * pointer (E02 to E04 at once, in every line). What is freed the heap uses again, for blocks of about that
 * size; the system has it back when the heap ends, or, blocks above 28 KiB, at once. A block that is resized
 * stays in its heap.
 *
 * A heap that has ended, or a handle that never was one, is reported as E07 (see HZ_ON_INVALID); then NULL,
 * EINVAL. Line hz7 has no such heaps: NULL and ENOSYS from hz_heap_new. */
typedef struct hz_heap_t hz_heap_t; /* a handle: there is nothing that it points to */

/* An empty heap; NULL and ENOMEM when it cannot be had. It costs 64 KiB, of which few are touched, with its
 * first block. */
HZ_API hz_heap_t* hz_heap_new(void);

/* As hz_malloc, hz_calloc and hz_aligned_alloc, from that heap. */
HZ_API void* hz_heap_malloc(hz_heap_t* heap, size_t size);
HZ_API void* hz_heap_calloc(hz_heap_t* heap, size_t count, size_t size);
HZ_API void* hz_heap_aligned_alloc(hz_heap_t* heap, size_t alignment, size_t size);

/* As hz_realloc, of a block of that heap; any other pointer is reported (E01 if it is a block of another heap
 * or of none), left alone, and the answer is NULL. */
HZ_API void* hz_heap_realloc(hz_heap_t* heap, void* ptr, size_t size);

/* End the heap and every block in it. NULL is ignored. Requires: no thread uses the heap, or a block of it,
 * meanwhile or later. A free of such a block is reported like that of any wild pointer. */
HZ_API void hz_heap_destroy(hz_heap_t* heap);

/* End the heap, but not its blocks: they are the process's from here on, and live until they are freed. Of
 * small ones 64 KiB go back when the last one in there is freed. NULL is ignored. */
HZ_API void hz_heap_delete(hz_heap_t* heap);

/* A visitor: gets a block and the bytes of its slot or pages, which are no fewer than were asked for. An
 * answer other than 0 ends the walk. It may allocate and free; see hz_walk for what the walk visits then. */
typedef int (*hz_visit_t)(void* block, size_t bytes, void* argument);

/* Call `visit` for each live block of the process, those of first-class heaps included. Returns the first
 * answer of `visit` that is not 0, or 0. The order is that of addresses, but for guarded blocks, which come
 * last. The walk is exact if no thread allocates or frees meanwhile. Otherwise it may miss or visit a block
 * that comes or goes, and may visit a free slot that a thread has cached since. It flushes thread caches
 * first, as hz_trim does; with HZ_BACKGROUND=0 it cannot flush those of other threads, and visits their free
 * slots, too. Holds no lock while `visit` runs. Takes 4 KiB of stack. Line hz7: -1, ENOSYS. */
HZ_API int hz_walk(hz_visit_t visit, void* argument);

/* Call `visit` for each live block of one heap, as hz_walk does. Requires: no thread ends the heap meanwhile.
 * Returns -1 if there is no such heap, which is reported (E07). */
HZ_API int hz_heap_walk(hz_heap_t* heap, hz_visit_t visit, void* argument);

/* What a heap holds: its live blocks, the bytes of their slots and pages, and the bytes of chunks and pages
 * that it has for them. */
typedef struct hz_heap_stats_t {
  uint64_t blocks, bytes_live, bytes_held;
} hz_heap_stats_t;

/* Fill *out, as hz_stats does. Returns 0; -1 if there is no such heap. Takes as long as hz_heap_walk. */
HZ_API int hz_heap_stats(hz_heap_t* heap, hz_heap_stats_t* out, size_t size);

/* What hz_free would say of ptr, without freeing or reporting it. 0: it is a live block. 1 (E01): no address
 * of this heap, or NULL. Else it is one, and wrong: 2 (E02): nothing is allocated there, 3 (E03): it is free,
 * 4 (E04): not the start of a block. Lines that see a second free late (doc/errors.md, E03) answer 0 of a
 * free block as well; the others are exact about a pointer that no other thread frees meanwhile. Reads
 * nothing that ptr points to but in lines hz3 and hz3-fast. */
HZ_API int hz_check(const void* ptr);

/* Give every free page that can be found back to the operating system, keeping at least `pad` bytes of it.
 * 1 if pages were given back, 0 if there were none. */
HZ_API int hz_trim(size_t pad);

/* What the heap did and holds. Bytes count slots, that is, sizes rounded up to their class.
 *   held      = live + cached          (slots out of their spans)
 *   cached    = slots in thread bins, remote outboxes, stashes and central lists
 *   remote_sent = remote_collected + remote_waiting   (frees still in a thread's outbox are not sent yet)
 * Blocks on guarded pages (HZ_GUARD_SAMPLE; a mebibyte at most) are in none of the bytes.
 * The alloc_ and free_ counts stand still at 0 unless `counting` is 1 (HZ_STATS=1 or =json at start): the
 * fast path carries no counters. */
typedef struct hz_stats_t {
  uint64_t counting;
  uint64_t alloc_small, alloc_medium, alloc_large; /* up to 2 KiB, up to 64 KiB, above */
  uint64_t free_small, free_medium, free_large;
  uint64_t refills, flushes;
  uint64_t remote_sent, remote_collected, remote_waiting;
  uint64_t spans_acquired, spans_retired, purges;
  uint64_t bytes_held, bytes_live, bytes_cached;
  uint64_t bytes_dirty;    /* free in the arena, still backed by memory */
  uint64_t bytes_purged;   /* given back to the operating system so far */
  uint64_t bytes_metadata; /* the heap's own, touched */
  uint64_t bytes_peak;     /* highest bytes in spans so far */
  uint64_t threads;        /* thread heaps alive */
  uint64_t revocations;    /* times that an idle thread's cache was taken back */
  uint64_t remote_refused; /* remote frees without room to wait: the sender returned them to their spans */
  uint64_t classes_dealt;  /* size classes given to sizes that wasted much: HZ_POLICY, HZ_PROFILE */
  uint64_t policy_tight;   /* 1: the process is held tight, for it would gain little by more memory */
  uint64_t policy_turns;   /* times that it came to be, or no longer */
  uint64_t preset_moves;   /* times that HZ_POLICY=learn went over to another preset */
} hz_stats_t;

/* Fill *out; `size` is sizeof(hz_stats_t) as the caller knows it (older callers get their prefix). */
HZ_API void hz_stats(hz_stats_t* out, size_t size);

/* Write the profile of the program so far to the file that HZ_PROFILE names, as is done when the process
 * exits; for those that never do (HZ_POLICY=observe; doc/profile.md). 1 if it was written; 0 if the heap does
 * not observe, no file is named, or it cannot be written, of which a warning tells. */
HZ_API int hz_write_profile(void);

/* Read or set a knob while the process runs, or take an action. The keys of knobs are those of doc/knobs.md.
 * The actions are trim, purge, write_stats, write_profile and write_heap_profile; set one to "" to take it.
 * set: NULL to read; else the new value, in the form of HZ_OPTIONS ("64M", "report").
 * get: receives the knob's value after the call, as a text that `set` would take: sizes are bytes without a
 * unit, "none" is no path. For an action it is "1" or "0": whether it gave pages back or wrote. After an
 * error it is one sentence that says why. It receives at most get_bytes with the final 0, and a longer text
 * is cut off: 2100 bytes do for every key. get may be NULL, with 0.
 * The key "list" has a line for each key, with tabs between the key, the time at which it can be set ("live",
 * "start", "action", or "none" if the line does not have it), the accepted values, and the present one;
 * 16 KiB do.
 * Returns 0 or an error number, and leaves errno unchanged. ENOENT: there is no such key. EPERM: the knob is
 * read at the start alone, or an action was read. EINVAL: the value is not understood. ENOTSUP: the line or
 * its settings do not have the key. ENOMEM: there is no memory for it. EBUSY: another thread sets it. EIO:
 * the file could not be written. After an error nothing has changed.
 * A value holds from some moment of the call on; of two threads that set one key, one is the last. From
 * outside: hz ctl, if HZ_CONTROL=1 permits it. Takes up to 8 KiB of stack. */
HZ_API int hz_ctl(const char* key, const char* set, char* get, size_t get_bytes);
/* Write the heap profile so far to the file `path`, or, where that is NULL, to the one that
 * HZ_PROFILE_HEAP_FILE names, as is done when the process exits: which stacks the live and the past blocks
 * came from, by samples. 1 if it was written; 0 if none is kept (neither HZ_PROFILE_HEAP nor hz_ctl began
 * one, or the line keeps none), if another thread is at it, or if it cannot be. */
HZ_API int hz_write_heap_profile(const char* path);

HZ_API const char* hz_version(void); /* HZ_VERSION of the library */
HZ_API const char* hz_line(void);    /* "hz3" */

#ifdef __cplusplus
}
#endif
#endif
