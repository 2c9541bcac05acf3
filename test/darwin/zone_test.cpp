// SPDX-License-Identifier: Apache-2.0
//
// The zone of macOS on Linux: its source, and the heap with a key for what each thread has (HZ_KEYED), as
// they are, between an imitation of libmalloc and a program. What is shown is what our code does if libmalloc
// does what is published of it. Compiled once for a line; run by CTest, a process for each suite.
#include "libmalloc.hpp"

namespace {

// Before the zone's constructor, as the system does: its zones, and the key of a library whose variables a
// thread gets by malloc.
void storage_ends(void* storage);
pthread_key_t storage_key;
__attribute__((constructor(101))) void before_all() {
  libmalloc::begin({"nano", "scalable"});
  pthread_key_create(&storage_key, &storage_ends);
}

}  // namespace

#include "export/darwin_zone.cpp"
#include "export/direct.cpp"
#include "heap/one_lock/heap.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <utility>

#include "support/capture.hpp"
#include "support/ended.hpp"
#include "support/opaque.hpp"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
}

namespace {

// Calls of malloc by a thread that is in our zone: on macOS each would come back to it.
thread_local bool in_zone = false;
std::atomic<unsigned> mallocs_in_zone{0};

}  // namespace

extern "C" void* malloc(size_t n) {
  if (in_zone) ++mallocs_in_zone;
  return __libc_malloc(n);
}
extern "C" void* calloc(size_t count, size_t n) {
  if (in_zone) ++mallocs_in_zone;
  return __libc_calloc(count, n);
}

namespace {

using hz_test::Opaque;
using Names = std::vector<std::string_view>;

// Every thread of the test begins here, also the first, and ends as macOS ends it: by the destructors of
// keys.
template <class Work>
void in_threads(unsigned count, Work work) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& one : threads) one.join();
}

// What the heap has of threads: states, and places for what each thread has.
size_t states() { return ThisLibrary::stats().threads; }
template <class Line>
size_t places_of() {
  if constexpr (requires { typename Line::Route; })
    return os::PerThread<typename hz::State<Line>::Local>::in_use();
  else
    return os::PerThread<hz::one_lock::HeapLock::Thread>::in_use();
}
size_t places() { return places_of<hz::ThisLine>(); }

// --- taking over: a process that has no threads yet

TEST(TakeOver, IsDoneWhenTheLibraryIsLoaded) {
  EXPECT_EQ(libmalloc::names(), (Names{"hakozuna", "scalable", "purgeable", "nano"}));
}

TEST(TakeOver, WhateverZonesTheSystemHas) {
  const std::initializer_list<const char*> shapes[] = {{"scalable"},
                                                       {"xzone"},
                                                       {"nano", "scalable"},
                                                       {"guard", "nano", "scalable"},
                                                       {"nano", "scalable", "program's"}};
  for (const auto& shape : shapes) {
    for (const bool purgeable : {false, true}) {
      libmalloc::begin(shape);
      if (purgeable) malloc_default_purgeable_zone();
      take_over();
      Names names = libmalloc::names();
      EXPECT_EQ(names[0], "hakozuna");
      EXPECT_EQ(names.back(), *shape.begin());
      Names expected{"hakozuna", "purgeable"};
      expected.insert(expected.end(), shape.begin(), shape.end());
      std::sort(names.begin(), names.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(names, expected);
    }
  }
}

TEST(TakeOver, IsDoneOnce) {
  take_over();
  const Names names = libmalloc::names();
  take_over();
  EXPECT_EQ(libmalloc::names(), names);
}

TEST(TakeOver, LeavesBlocksToTheZoneThatGaveThem) {
  libmalloc::begin({"nano", "scalable"});
  libmalloc::SystemZone& nano = libmalloc::SystemZone::of(libmalloc::first());
  void* const kept = libmalloc::malloc(100);
  void* const grows = libmalloc::malloc(100);
  take_over();
  EXPECT_EQ(libmalloc::size(kept), 100u);
  void* const grown = libmalloc::realloc(grows, 5000);
  EXPECT_EQ(nano.bytes(grown), 5000u);
  libmalloc::free(kept);
  libmalloc::free(grown);
  EXPECT_TRUE(nano.blocks.empty());
  EXPECT_EQ(libmalloc::not_allocated, nullptr);
}

// Others could look at the list meanwhile.
TEST(TakeOverLate, IsRefusedWithAReasonWhereThereAreThreads) {
  const std::vector<malloc_zone_t*> zones = libmalloc::zones();
  libmalloc::begin({"nano", "scalable"});
  in_threads(1, [] {});
  hz_test::Capture capture;
  take_over();
  EXPECT_NE(capture.Text().find("hz: warning: loaded into a process that has threads"), std::string::npos);
  EXPECT_EQ(libmalloc::names(), (Names{"nano", "scalable"}));
  libmalloc::zones() = zones;
}

// --- blocks

TEST(Blocks, AreOurs) {
  for (const size_t n : {0, 1, 100, 5000, 70'000, 3'000'000, 9'000'000}) {
    void* const block = libmalloc::malloc(n);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(ThisHeap::owns(block));
    EXPECT_EQ(libmalloc::zone_of(block), &zone);
    EXPECT_GE(libmalloc::size(block), n);
    EXPECT_GE(libmalloc::good_size(n), n);
    memset(block, 0xA5, n);
    void* const more = libmalloc::realloc(block, 2 * n + 100);
    ASSERT_NE(more, nullptr);
    EXPECT_EQ(libmalloc::zone_of(more), &zone);
    for (size_t i = 0; i < n; i += 97) ASSERT_EQ(static_cast<unsigned char*>(more)[i], 0xA5);
    libmalloc::free(more);
  }
  EXPECT_EQ(libmalloc::not_allocated, nullptr);
}

TEST(Blocks, OfAGoodSizeHaveNoPadding) {
  for (size_t n = 1; n < 20'000; n += 7) {
    void* const block = libmalloc::malloc(libmalloc::good_size(n));
    EXPECT_EQ(libmalloc::size(block), libmalloc::good_size(n));
    libmalloc::free(block);
  }
  EXPECT_GE(libmalloc::good_size(SIZE_MAX), SIZE_MAX);
}

TEST(Blocks, OfReallocToNothingAreTheLeast) {
  void* block = zone.realloc(&zone, libmalloc::malloc(100), 0);
  EXPECT_GT(libmalloc::size(block), 0u);
  block = libmalloc::realloc(block, 0);
  EXPECT_GT(libmalloc::size(block), 0u);
  libmalloc::free(block);
}

TEST(Blocks, OfCallocAndVallocAreZero) {
  for (const size_t n : {100, 5000, 40'000, 5'000'000}) {
    for (int round = 0; round < 3; ++round) {
      auto* const zeros = static_cast<unsigned char*>(libmalloc::calloc(n, 1));
      auto* const pages = static_cast<unsigned char*>(libmalloc::valloc(n));
      EXPECT_EQ(hz::address(pages) % os::page_bytes(), 0u);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(zeros[i] | pages[i], 0) << i;
      memset(zeros, 0xFF, n);
      memset(pages, 0xFF, n);
      libmalloc::free(zeros);
      libmalloc::free(pages);
    }
  }
}

TEST(Blocks, KeepTheirAlignment) {
  for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 4) {
    void* block = nullptr;
    ASSERT_EQ(libmalloc::posix_memalign(&block, alignment, 300), 0);
    EXPECT_EQ(hz::address(block) % alignment, 0u);
    libmalloc::free(block);
  }
}

TEST(Blocks, ThatCannotBeHadSetErrno) {
  for (int which = 0; which < 4; ++which) {
    errno = 0;
    const size_t most = Opaque(size_t{PTRDIFF_MAX});
    void* block = nullptr;
    if (which == 0) block = libmalloc::malloc(most);
    if (which == 1) block = libmalloc::calloc(most, 4);
    if (which == 2) block = libmalloc::valloc(most);
    if (which == 3) block = libmalloc::realloc(nullptr, most);
    EXPECT_EQ(block, nullptr);
    EXPECT_EQ(errno, ENOMEM) << which;
  }
}

TEST(Blocks, ComeAndGoInBatches) {
  void* blocks[50] = {};
  ASSERT_EQ(zone.batch_malloc(&zone, 200, blocks, 50), 50u);
  for (void* block : blocks) EXPECT_GE(libmalloc::size(block), 200u);
  zone.batch_free(&zone, blocks, 50);
  EXPECT_EQ(zone.batch_malloc(&zone, Opaque(size_t{PTRDIFF_MAX}), blocks, 2), 0u);
}

// --- what is not a block of ours

TEST(Foreign, AddressesHaveNoSize) {
  int on_the_stack = 0;
  static int global = 0;
  auto* const block = static_cast<char*>(libmalloc::malloc(5000));
  auto* const huge = static_cast<char*>(libmalloc::malloc(9'000'000));
  libmalloc::SystemZone& nano = libmalloc::SystemZone::of(libmalloc::zones().back());
  void* const system = nano.malloc(&nano, 100);
  const void* const nowhere[] = {nullptr,
                                 &on_the_stack,
                                 &global,
                                 system,
                                 hz::pointer(8),
                                 hz::pointer(0x1000),
                                 hz::pointer(0x7FFFFFFFF000),
                                 hz::pointer(~std::uintptr_t{0}),
                                 hz::pointer(1ULL << 63)};
  for (const void* at : nowhere) {
    EXPECT_EQ(zone.size(&zone, at), 0u) << at;
    EXPECT_FALSE(zone.claimed_address(&zone, const_cast<void*>(at))) << at;
  }
  for (char* inside :
       {block + 1, block + 16, block + 4999, huge + 1, huge + 4096, huge + 70'000, huge + 8'999'999}) {
    EXPECT_EQ(zone.size(&zone, inside), 0u);
    EXPECT_TRUE(zone.claimed_address(&zone, inside));
  }
  EXPECT_TRUE(zone.claimed_address(&zone, block));
  libmalloc::free(&on_the_stack);
  EXPECT_EQ(std::exchange(libmalloc::not_allocated, nullptr), &on_the_stack);
  libmalloc::free(system);
  EXPECT_EQ(nano.bytes(system), 0u);
  libmalloc::free(block);
  libmalloc::free(huge);
}

using ForeignDeathTest = ::testing::Test;

TEST(ForeignDeathTest, AFreeThatComesToUsIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  char on_the_stack[32];
  auto* const block = static_cast<char*>(libmalloc::malloc(5000));
  EXPECT_EXIT(zone.free(&zone, Opaque(on_the_stack)), hz_test::EndedByAbort, "E01 foreign-pointer");
  EXPECT_EXIT(zone.free(&zone, Opaque(block + 16)), hz_test::EndedByAbort, "E04 interior-pointer");
  // libmalloc asks for the size first, and brings us what is free already.
  EXPECT_EXIT(
      {
        libmalloc::free(Opaque(block));
        libmalloc::free(Opaque(block));
      },
      hz_test::EndedByAbort, "E03 double-free");
}

// --- the zone as a whole

TEST(Zone, HasWhatTheSystemCallsWithoutAsking) {
  EXPECT_NE(zone.batch_malloc, nullptr);
  EXPECT_NE(zone.batch_free, nullptr);
  EXPECT_NE(zone.memalign, nullptr);
  EXPECT_NE(zone.pressure_relief, nullptr);
  EXPECT_NE(zone.destroy, nullptr);
  const malloc_introspection_t& it = *zone.introspect;
  EXPECT_EQ(it.enumerator(1, nullptr, 1, hz::address(&zone), nullptr, nullptr), KERN_FAILURE);
  EXPECT_TRUE(it.check(&zone));
  EXPECT_FALSE(it.zone_locked(&zone));
  it.log(&zone, nullptr);
  hz_test::Capture capture;
  it.print(&zone, 1);
  EXPECT_NE(capture.Text().find(std::string("line=") + hz::ThisLine::kName), std::string::npos);
}

TEST(Zone, CountsAndGivesBack) {
  std::vector<void*> blocks;
  malloc_statistics_t before = {}, full = {}, after = {};
  zone.introspect->statistics(&zone, &before);
  for (int i = 0; i < 4000; ++i) blocks.push_back(memset(libmalloc::malloc(8000), 1, 8000));
  zone.introspect->statistics(&zone, &full);
  EXPECT_GE(full.size_in_use, before.size_in_use + 4000 * 8000);
  EXPECT_GE(full.size_allocated, full.size_in_use);
  for (void* block : blocks) libmalloc::free(block);
  zone.introspect->statistics(&zone, &after);
  EXPECT_LT(after.size_in_use, before.size_in_use + 1000 * 8000);
  const uint64_t purged = ThisLibrary::stats().bytes_purged;
  const size_t relieved = zone.pressure_relief(&zone, 0);
  EXPECT_EQ(relieved, ThisLibrary::stats().bytes_purged - purged);
  EXPECT_GT(relieved, 0u);
}

// --- threads

TEST(Threads, ComeToTheHeapWithoutAMalloc) {
  mallocs_in_zone = 0;
  in_threads(100, [] {
    in_zone = true;
    void* block = zone.malloc(&zone, 100);
    zone.free(&zone, block);
    block = zone.calloc(&zone, 3, 3000);
    block = zone.realloc(&zone, block, 100'000);
    zone.size(&zone, block);
    zone.free(&zone, block);
    in_zone = false;
  });
  EXPECT_EQ(mallocs_in_zone, 0u);
}

TEST(Threads, LeaveNothingBehind) {
  in_threads(8, [] { libmalloc::free(libmalloc::malloc(100)); });
  const size_t states_before = states(), places_before = places();
  const uint64_t metadata = ThisLibrary::stats().bytes_metadata;
  for (int round = 0; round < 100; ++round) in_threads(8, [] { libmalloc::free(libmalloc::malloc(100)); });
  EXPECT_EQ(states(), states_before);
  EXPECT_EQ(places(), places_before);
  EXPECT_LT(ThisLibrary::stats().bytes_metadata,
            metadata + hz::kMiB);  // some states stay for threads to come
}

// More than fit into the first part of the table.
TEST(Threads, MayBeMany) {
  std::atomic<unsigned> there{0};
  std::atomic<bool> go{false};
  const size_t before = places();
  in_threads(150, [&] {
    void* const block = libmalloc::malloc(100);
    if (++there == 150) go = true;
    while (!go) sched_yield();
    EXPECT_GE(places(), before + 1);
    libmalloc::free(block);
  });
  EXPECT_EQ(places(), before);
}

// A library whose variables a thread gets by malloc at their first use. They are freed when the thread ends,
// by a key that is older than ours and whose destructor comes first; and they are used again by the
// destructors that come later, in each round.
int* storage() {
  auto* at = static_cast<int*>(pthread_getspecific(storage_key));
  if (at == nullptr) {
    at = static_cast<int*>(libmalloc::calloc(20, sizeof(int)));
    pthread_setspecific(storage_key, at);
  }
  return at;
}
void storage_ends(void* at) { libmalloc::free(at); }

pthread_key_t late_key;
std::atomic<unsigned> rounds_of_late{0};
// Sees to it that it is called as often as there are rounds.
void late(void* left) {
  ++rounds_of_late;
  ++storage()[3];
  void* const block = libmalloc::malloc(200);
  libmalloc::free(libmalloc::realloc(block, 4000));
  pthread_setspecific(late_key, static_cast<char*>(left) - 1);
}

TEST(ThreadsEnd, WithTheHeapInUseInEveryRoundOfDestructors) {
  ASSERT_EQ(pthread_key_create(&late_key, &late), 0);
  const auto ends_late = [] {
    pthread_setspecific(late_key, reinterpret_cast<void*>(100));
    storage()[7] = 1;
    libmalloc::free(libmalloc::malloc(100));
  };
  in_threads(8, ends_late);
  EXPECT_GE(rounds_of_late, 8u * PTHREAD_DESTRUCTOR_ITERATIONS);
  const size_t states_before = states(), places_before = places();
  const uint64_t metadata = ThisLibrary::stats().bytes_metadata;
  for (int round = 0; round < 50; ++round) in_threads(8, ends_late);
  EXPECT_EQ(states(), states_before);
  EXPECT_EQ(places(), places_before);
  EXPECT_LT(ThisLibrary::stats().bytes_metadata,
            metadata + hz::kMiB);  // some states stay for threads to come
  EXPECT_EQ(libmalloc::not_allocated, nullptr);
}

// The heap's first use by a thread is in a destructor.
TEST(ThreadsEnd, WithTheirFirstBlockInADestructor) {
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, [](void*) { libmalloc::free(libmalloc::malloc(300)); }), 0);
  const size_t states_before = states(), places_before = places();
  for (int round = 0; round < 20; ++round) in_threads(8, [&] { pthread_setspecific(key, &key); });
  EXPECT_EQ(states(), states_before);
  EXPECT_EQ(places(), places_before);
}

TEST(ThreadsEnd, AndTheirBlocksStay) {
  std::vector<char*> blocks(400);
  std::atomic<size_t> next{0};
  in_threads(4, [&] {
    for (int i = 0; i < 100; ++i) {
      auto* const block = static_cast<char*>(libmalloc::malloc(500));
      memset(block, i, 500);
      blocks[next++] = block;
    }
  });
  for (char* block : blocks) {
    EXPECT_EQ(block[0], block[499]);
    EXPECT_EQ(libmalloc::zone_of(block), &zone);
    libmalloc::free(block);
  }
}

// --- forks: libmalloc locks the zones

TEST(Forks, LockTheZone) {
  EXPECT_NE(os::hooks.prepare, nullptr);
  EXPECT_NE(os::hooks.child, nullptr);
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      for (size_t n = 1; !stop; n = n * 7 % 60'000 + 1) libmalloc::free(libmalloc::malloc(n));
    });
  }
  for (int round = 0; round < 60; ++round) {
    const pid_t child = libmalloc::fork();
    if (child == 0) {
      alarm(30);
      for (size_t n = 1; n < 200'000; n = n * 2 + 1) libmalloc::free(zone.calloc(&zone, 1, n));
      const pid_t grandchild = libmalloc::fork();
      if (grandchild == 0) _exit(libmalloc::size(libmalloc::malloc(100)) >= 100 ? 0 : 2);
      int ended = 0;
      waitpid(grandchild, &ended, 0);
      _exit(WIFEXITED(ended) ? WEXITSTATUS(ended) : 3);
    }
    int ended = 0;
    ASSERT_EQ(waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << ended;
  }
  stop = true;
  for (std::thread& one : busy) one.join();
}

}  // namespace
