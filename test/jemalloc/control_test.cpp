// SPDX-License-Identifier: Apache-2.0
//
// mallctl: each name with its type, what may be read and written, the errors of jemalloc's manual, names as
// MIBs, and input that nobody should pass.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "jemalloc/interface.hpp"
#include "support/rss.hpp"

namespace {

using namespace hz_test::jemalloc;

using Mib = std::vector<std::size_t>;

Mib MibOf(const std::string& name, std::size_t most = 8) {
  Mib mib(most);
  std::size_t count = most;
  EXPECT_EQ(0, mallctlnametomib(name.c_str(), mib.data(), &count)) << name;
  mib.resize(count);
  return mib;
}
int Ask(const Mib& mib, void* value, std::size_t length) {
  return mallctlbymib(mib.data(), mib.size(), value, &length, nullptr, 0);
}

// --- names and their types

struct Name {
  const char* name;
  std::size_t bytes;  // of its value
};
constexpr std::size_t kText = sizeof(char*), kFlag = 1, kUnsigned = 4, kSize = 8;

// What can only be read, here and in jemalloc.
constexpr Name kReadOnly[] = {
    {"version", kText},
    {"config.cache_oblivious", kFlag},
    {"config.debug", kFlag},
    {"config.fill", kFlag},
    {"config.lazy_lock", kFlag},
    {"config.malloc_conf", kText},
    {"config.opt_safety_checks", kFlag},
    {"config.prof", kFlag},
    {"config.prof_libgcc", kFlag},
    {"config.prof_libunwind", kFlag},
    {"config.stats", kFlag},
    {"config.utrace", kFlag},
    {"config.xmalloc", kFlag},
    {"opt.abort", kFlag},
    {"opt.abort_conf", kFlag},
    {"opt.background_thread", kFlag},
    {"opt.cache_oblivious", kFlag},
    {"opt.confirm_conf", kFlag},
    {"opt.dss", kText},
    {"opt.junk", kText},
    {"opt.max_background_threads", kSize},
    {"opt.metadata_thp", kText},
    {"opt.narenas", kUnsigned},
    {"opt.percpu_arena", kText},
    {"opt.prof", kFlag},
    {"opt.retain", kFlag},
    {"opt.stats_print", kFlag},
    {"opt.tcache", kFlag},
    {"opt.tcache_max", kSize},
    {"opt.zero", kFlag},
    {"opt.zero_realloc", kText},
    {"arena.0.initialized", kFlag},
    {"arena.4096.initialized", kFlag},
    {"arenas.narenas", kUnsigned},
    {"arenas.quantum", kSize},
    {"arenas.page", kSize},
    {"arenas.tcache_max", kSize},
    {"arenas.nbins", kUnsigned},
    {"arenas.bin.0.size", kSize},
    {"arenas.bin.3.nregs", kUnsigned},
    {"arenas.bin.5.slab_size", kSize},
    {"arenas.nlextents", kUnsigned},
    {"arenas.lextent.2.size", kSize},
    {"stats.allocated", kSize},
    {"stats.active", kSize},
    {"stats.metadata", kSize},
    {"stats.resident", kSize},
    {"stats.mapped", kSize},
    {"stats.retained", kSize},
    {"stats.arenas.0.nthreads", kUnsigned},
    {"stats.arenas.0.pactive", kSize},
    {"stats.arenas.4096.pactive", kSize},
    {"stats.arenas.4096.pdirty", kSize},
    {"stats.arenas.4096.pmuzzy", kSize},
    {"stats.arenas.4096.mapped", kSize},
    {"stats.arenas.4096.retained", kSize},
    {"stats.arenas.4096.resident", kSize},
    {"stats.arenas.4096.small.allocated", kSize},
    {"stats.arenas.4096.large.allocated", kSize},
    {"stats.arenas.4096.bins.4.curregs", kSize},
    {"stats.arenas.4096.bins.4.curslabs", kSize},
};

TEST(Names, AreReadWithTheirType) {
  for (const auto& [name, bytes] : kReadOnly) {
    for (const std::size_t room : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
      unsigned char value[16];
      std::memset(value, 0xA5, sizeof value);
      std::size_t length = room;
      EXPECT_EQ(room == bytes ? 0 : EINVAL, mallctl(name, value, &length, nullptr, 0)) << name << " " << room;
      EXPECT_EQ(std::min(room, bytes), length) << name << ": as much as there is room for";
      for (std::size_t i = length; i < sizeof value; ++i)
        EXPECT_EQ(0xA5, value[i]) << name << " wrote beyond";
    }
  }
}

TEST(Names, MayNotBeWritten) {
  for (const auto& [name, bytes] : kReadOnly) {
    std::uint64_t value = 0;
    std::size_t length = bytes;
    EXPECT_EQ(EPERM, mallctl(name, nullptr, nullptr, &value, bytes)) << name;
    EXPECT_EQ(EPERM, mallctl(name, &value, &length, &value, bytes)) << name;
    EXPECT_EQ(EPERM, mallctl(name, nullptr, nullptr, nullptr, bytes))
        << name << ": a length is a wish to write";
  }
}

TEST(Names, AskForNothing) {
  for (const auto& [name, bytes] : kReadOnly) {
    std::size_t length = bytes;
    std::uint64_t value = 0;
    EXPECT_EQ(0, Do(name)) << name;
    EXPECT_EQ(0, mallctl(name, nullptr, &length, nullptr, 0)) << name;
    EXPECT_EQ(0, mallctl(name, &value, nullptr, nullptr, 0)) << name;
    EXPECT_EQ(0u, value);
  }
}

TEST(Names, UnknownOnes) {
  for (const char* name : {"",
                           ".",
                           "..",
                           "x",
                           "versio",
                           "versions",
                           "version.",
                           ".version",
                           "version.x",
                           "arenas",
                           "arenas.",
                           "arenas.bin",
                           "arenas.bin.",
                           "arenas.bin..size",
                           "arenas.bin.x.size",
                           "arenas.bin.-1.size",
                           "arenas.bin.0.size.x",
                           "arenas.bin.0.",
                           "arenas.bin.999.size",
                           "arenas.bin.18446744073709551616.size",
                           "arenas.lextent.9999.size",
                           "arena.0",
                           "arena.5000.purge",
                           "arena.0.no_such",
                           "stats",
                           "stats.arenas",
                           "stats.arenas.4096.bins.999.curregs",
                           "stats.arenas.77.pactive",
                           " epoch",
                           "EPOCH",
                           "thread",
                           "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p"}) {
    std::uint64_t value = 0;
    std::size_t length = sizeof value;
    EXPECT_EQ(ENOENT, mallctl(name, &value, &length, nullptr, 0)) << name;
    EXPECT_EQ(0u, value) << name;
  }
  EXPECT_EQ(ENOENT, Do(std::string(100'000, 'x')));
  EXPECT_EQ(ENOENT, Do(std::string(100'000, '.')));
}

// They could not be true, or would have to be done and are not.
TEST(Names, RefusedOnes) {
  if (OnJemalloc()) GTEST_SKIP() << "it has them";
  for (const char* name : {"thread.allocated",
                           "thread.allocatedp",
                           "thread.deallocated",
                           "thread.deallocatedp",
                           "thread.peak.read",
                           "opt.dirty_decay_ms",
                           "opt.muzzy_decay_ms",
                           "arenas.dirty_decay_ms",
                           "arena.0.dirty_decay_ms",
                           "arena.0.muzzy_decay_ms",
                           "arena.0.extent_hooks",
                           "arena.0.dss",
                           "arena.0.retain_grow_limit",
                           "stats.arenas.0.bins.0.nmalloc",
                           "stats.arenas.0.uptime",
                           "stats.arenas.4097.pactive",
                           "stats.metadata_thp",
                           "stats.background_thread.num_threads",
                           "stats.mutexes.ctl.num_ops",
                           "prof.dump",
                           "prof.reset",
                           "opt.lg_prof_sample"}) {
    std::uint64_t value = 0;
    std::size_t length = sizeof value;
    EXPECT_EQ(ENOENT, mallctl(name, &value, &length, nullptr, 0)) << name;
  }
  for (const char* name : {"arena.0.reset", "arena.0.destroy", "thread.peak.reset", "arena.4097.purge"})
    EXPECT_EQ(ENOENT, Do(name)) << name;
}

// --- what they say

TEST(Names, WhatTheySay) {
  EXPECT_EQ(0u, std::string(Value<const char*>("version")).find("5."));
  EXPECT_TRUE(Value<bool>("config.stats"));
  EXPECT_EQ(16u, Value<std::size_t>("arenas.quantum"));
  EXPECT_EQ(4096u, Value<std::size_t>("arenas.page"));
  EXPECT_TRUE(Value<bool>("opt.tcache"));
  EXPECT_FALSE(Value<bool>("opt.zero"));
  EXPECT_FALSE(Value<bool>("prof.active"));
  EXPECT_STREQ("", Value<const char*>("config.malloc_conf"));
  EXPECT_STREQ("disabled", Value<const char*>("opt.percpu_arena"));
  EXPECT_STREQ("free", Value<const char*>("opt.zero_realloc"));
  if (OnJemalloc()) return;
  EXPECT_STREQ("5.3.0-hakozuna-" HZ_VERSION, Value<const char*>("version"));
  EXPECT_EQ(1u, Value<unsigned>("opt.narenas"));
  EXPECT_FALSE(Value<bool>("config.prof"));
  EXPECT_FALSE(Value<bool>("opt.prof"));
  EXPECT_TRUE(Value<bool>("background_thread"));
  EXPECT_TRUE(Value<bool>("opt.background_thread"));
  EXPECT_EQ(1u, Value<std::size_t>("max_background_threads"));
}

// Each class is what a block of its size has, and the next one is larger.
TEST(Names, Classes) {
  std::size_t last = 0;
  const auto bins = Value<unsigned>("arenas.nbins"), large = Value<unsigned>("arenas.nlextents");
  EXPECT_GT(bins, 10u);
  for (unsigned i = 0; i < bins + large; ++i) {
    const bool small = i < bins;
    const std::string row =
        small ? "arenas.bin." + std::to_string(i) : "arenas.lextent." + std::to_string(i - bins);
    const auto size = Value<std::size_t>(row + ".size");
    EXPECT_GT(size, last) << row;
    last = size;
    if (size < 16 * kMiB) {
      EXPECT_EQ(size, nallocx(size, 0)) << row;
    }
    if (small) {
      EXPECT_LE(Value<std::uint32_t>(row + ".nregs") * size, Value<std::size_t>(row + ".slab_size"));
    }
  }
  if (OnJemalloc()) return;  // which has one more of each than it says
  std::size_t none = 0;
  EXPECT_EQ(ENOENT, Read("arenas.bin." + std::to_string(bins) + ".size", none));
  EXPECT_EQ(ENOENT, Read("arenas.lextent." + std::to_string(large) + ".size", none));
}

// --- what can be written, and done

TEST(Epoch, CountsAndRefuses) {
  const auto before = Value<std::uint64_t>("epoch");
  EXPECT_EQ(before, Value<std::uint64_t>("epoch")) << "a look begins none";
  BeginEpoch();
  EXPECT_EQ(before + 1, Value<std::uint64_t>("epoch"));
  std::uint64_t old = 0, fresh = 0;
  std::size_t length = sizeof old;
  EXPECT_EQ(0, mallctl("epoch", &old, &length, &fresh, sizeof fresh));
  EXPECT_EQ(before + 2, old) << "the one that has begun";
  for (const std::size_t bytes : {0u, 4u, 7u, 9u})
    EXPECT_EQ(EINVAL, mallctl("epoch", nullptr, nullptr, &fresh, bytes)) << bytes;
  EXPECT_EQ(before + 2, Value<std::uint64_t>("epoch")) << "what is refused begins none";
}

TEST(Switches, TakeWhatTheyAre) {
  for (const char* name : {"background_thread", "thread.tcache.enabled", "prof.active"}) {
    const bool now = Value<bool>(name);
    EXPECT_EQ(0, Write(name, now)) << name;
    EXPECT_EQ(EINVAL, Write(name, std::uint64_t{1})) << name;
    EXPECT_EQ(EINVAL, Write(name, 1)) << name;
    EXPECT_EQ(now, Value<bool>(name));
  }
  EXPECT_EQ(0, Write("max_background_threads", std::size_t{1}));
  EXPECT_EQ(EINVAL, Write("max_background_threads", std::size_t{100'000}));
  EXPECT_EQ(ENOENT, Write("prof.active", true)) << "there is nothing to activate";
  EXPECT_FALSE(Value<bool>("prof.active"));
  if (OnJemalloc()) return;
  EXPECT_EQ(EFAULT, Write("background_thread", false));
  EXPECT_TRUE(Value<bool>("background_thread"));
  EXPECT_EQ(EFAULT, Write("thread.tcache.enabled", false));
  EXPECT_TRUE(Value<bool>("thread.tcache.enabled"));
}

TEST(Actions, TakeAndTellNothing) {
  for (const char* name : {"arena.0.purge", "arena.0.decay", "arena.4096.purge", "arena.4096.decay",
                           "thread.tcache.flush", "thread.idle"}) {
    std::uint64_t value = 0;
    std::size_t length = sizeof value;
    EXPECT_EQ(0, Do(name)) << name;
    EXPECT_EQ(EPERM, mallctl(name, &value, &length, nullptr, 0)) << name;
    EXPECT_EQ(EPERM, mallctl(name, nullptr, &length, nullptr, 0)) << name;
    EXPECT_EQ(EPERM, Write(name, value)) << name;
  }
  // What Redis calls all of them, with the number of arenas.
  EXPECT_EQ(0, Do("arena." + std::to_string(Value<unsigned>("arenas.narenas")) + ".purge"));
}

// A block and its cache are still there where a whole span was freed.
void* LeaveAHole(std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < bytes / 1000; ++i) {
    blocks.push_back(mallocx(1000, 0));
    std::memset(blocks.back(), 1, 1000);
  }
  void* const last = blocks.back();
  blocks.pop_back();
  for (void* block : blocks) dallocx(block, 0);
  return last;
}

TEST(Actions, PurgeGivesBack) {
  void* const kept = LeaveAHole(64 * kMiB);
  ASSERT_EQ(0, Do("thread.tcache.flush"));
  ASSERT_EQ(0, Do("arena.4096.purge"));
  BeginEpoch();
  EXPECT_EQ(0u, Value<std::size_t>("stats.arenas.4096.pdirty"));
  EXPECT_LT(Value<std::size_t>("stats.resident"), 24 * kMiB);
  EXPECT_LT(hz_test::RssBytes(), 48 * kMiB);
  dallocx(kept, 0);
}

TEST(Actions, FlushEmptiesTheThreadsCache) {
  if (OnJemalloc()) GTEST_SKIP() << "it counts otherwise";
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(mallocx(4096, 0));
  for (void* block : blocks) dallocx(block, 0);
  const auto cached = [] {
    hz_stats_t stats;
    hz_stats(&stats, sizeof stats);
    return stats.bytes_cached;
  };
  EXPECT_GE(cached(), 10u * 4096);
  EXPECT_EQ(0, mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0));
  EXPECT_EQ(0u, cached());
}

// --- arenas and caches that a program creates

TEST(Arenas, AreNumbersFromWhichNothingComes) {
  const auto before = Value<unsigned>("arenas.narenas");
  EXPECT_EQ(before, Value<unsigned>("arenas.create"));
  EXPECT_EQ(before + 1, Value<unsigned>("arenas.narenas"));
  const std::string arena = std::to_string(before);
  EXPECT_EQ(0, Do("arena." + arena + ".purge"));
  EXPECT_EQ(0, Write("thread.arena", before));
  EXPECT_EQ(EFAULT, Write("thread.arena", 4000u));
  EXPECT_EQ(EINVAL, Write("thread.arena", std::uint64_t{0}));
  std::uint64_t none = 0;
  EXPECT_EQ(EINVAL, Read("arenas.create", none)) << "its number would be lost";
  EXPECT_EQ(before + 1, Value<unsigned>("arenas.narenas"));
  void* const block = mallocx(100'000, Arena(static_cast<int>(before)));
  EXPECT_NE(nullptr, block);
  unsigned of_block = 7;
  std::size_t length = sizeof of_block;
  void* asked = block;
  EXPECT_EQ(0, mallctl("arenas.lookup", &of_block, &length, &asked, sizeof asked));
  if (!OnJemalloc()) {
    EXPECT_EQ(0u, of_block);
    BeginEpoch();
    for (const char* name : {".pactive", ".pdirty", ".pmuzzy", ".mapped", ".resident", ".small.allocated",
                             ".large.allocated", ".bins.3.curregs", ".bins.3.curslabs"})
      EXPECT_EQ(0u, Value<std::size_t>("stats.arenas." + arena + name)) << name;
    EXPECT_EQ(0u, Value<unsigned>("thread.arena"));
    void* hooks = &none;
    unsigned number = 0;
    length = sizeof number;
    EXPECT_EQ(EPERM, mallctl("arenas.create", &number, &length, &hooks, sizeof hooks));
    asked = &none;
    EXPECT_EQ(EINVAL, mallctl("arenas.lookup", &of_block, &length, &asked, sizeof asked))
        << "not a block of ours";
  }
  dallocx(block, 0);
}

TEST(Arenas, EndBeforeFlagsCannotNameThem) {
  if (OnJemalloc()) GTEST_SKIP() << "each costs it memory";
  unsigned number = 0;
  int error = 0;
  for (int i = 0; i < 5000 && error == 0; ++i) error = Read("arenas.create", number);
  EXPECT_EQ(EAGAIN, error);
  EXPECT_EQ(4094u, Value<unsigned>("arenas.narenas"));
}

TEST(Caches, AreTheThreadsOwn) {
  const auto number = Value<unsigned>("tcache.create");
  void* block = mallocx(1000, Tcache(static_cast<int>(number)));
  EXPECT_NE(nullptr, block);
  dallocx(block, Tcache(static_cast<int>(number)));
  EXPECT_EQ(0, Write("tcache.flush", number));
  std::uint64_t none = 0;
  EXPECT_EQ(EINVAL, Read("tcache.create", none));
  EXPECT_EQ(EINVAL, Write("tcache.flush", none));
  unsigned old = 0;
  EXPECT_EQ(EPERM, Read("tcache.flush", old));
  EXPECT_EQ(0, Write("tcache.destroy", number));
  if (!OnJemalloc()) {
    EXPECT_EQ(EFAULT, Write("tcache.flush", 99u));
  }
}

// --- MIBs

TEST(Mibs, AnswerWhatNamesAnswer) {
  BeginEpoch();
  for (const auto& [name, bytes] : kReadOnly) {
    const Mib mib = MibOf(name);
    EXPECT_EQ(static_cast<std::size_t>(std::count(name, name + std::strlen(name), '.')) + 1, mib.size())
        << name;
    std::uint64_t by_name = 0, by_mib = 0;
    std::size_t length = bytes;
    EXPECT_EQ(0, mallctl(name, &by_name, &length, nullptr, 0));
    EXPECT_EQ(0, Ask(mib, &by_mib, bytes)) << name;
    EXPECT_EQ(by_name, by_mib) << name;
    EXPECT_EQ(EINVAL, Ask(mib, &by_mib, bytes + 1)) << name;
    EXPECT_EQ(EPERM, mallctlbymib(mib.data(), mib.size(), nullptr, nullptr, &by_mib, bytes)) << name;
  }
}

TEST(Mibs, AreNotAlike) {
  std::set<Mib> all;
  for (const auto& name : kReadOnly) all.insert(MibOf(name.name));
  EXPECT_EQ(std::size(kReadOnly), all.size());
}

// The example of jemalloc's manual.
TEST(Mibs, NumbersInThemCanBeSet) {
  Mib mib = MibOf("arenas.bin.0.size");
  ASSERT_EQ(4u, mib.size());
  EXPECT_EQ(0u, mib[2]);
  for (unsigned i = 0; i < Value<unsigned>("arenas.nbins"); ++i) {
    std::size_t size = 0;
    mib[2] = i;
    EXPECT_EQ(0, Ask(mib, &size, sizeof size));
    EXPECT_EQ(Value<std::size_t>("arenas.bin." + std::to_string(i) + ".size"), size);
  }
  std::uint64_t value = 0;
  mib[2] = Value<unsigned>("arenas.nbins") + 1;
  EXPECT_EQ(ENOENT, Ask(mib, &value, 8));
  mib[2] = SIZE_MAX;
  EXPECT_EQ(ENOENT, Ask(mib, &value, 8));
}

TEST(Mibs, CanBeCutOff) {
  const Mib whole = MibOf("arenas.bin.7.size");
  for (std::size_t most = 0; most <= 4; ++most) {
    const Mib part = MibOf("arenas.bin.7.size", most);
    EXPECT_EQ(Mib(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(most)), part);
    std::uint64_t value = 0;
    if (most < 4 && (most != 0 || !OnJemalloc())) {
      EXPECT_EQ(ENOENT, Ask(part, &value, 8)) << most;
    }
  }
  // A part of a name is a part of its MIB.
  for (const auto& row : kReadOnly) {
    const Mib mib = MibOf(row.name);
    std::string name = row.name;
    for (std::size_t words = mib.size(); words > 1; --words) {
      EXPECT_EQ(Mib(mib.begin(), mib.begin() + static_cast<std::ptrdiff_t>(words)), MibOf(name)) << name;
      name.resize(name.rfind('.'));
    }
  }
}

TEST(Mibs, UnknownOnes) {
  std::size_t mib[4], count = 4;
  for (const char* name :
       {"no_such_name", "", "arenas.no_such", "arenas.bin.x.size", "arenas.bin.999.size"}) {
    count = 4;
    EXPECT_EQ(ENOENT, mallctlnametomib(name, mib, &count)) << name;
    EXPECT_EQ(4u, count) << name;
  }
  if (!OnJemalloc()) EXPECT_EQ(ENOENT, mallctlbymib(mib, 1000000, nullptr, nullptr, nullptr, 0));
  std::uint64_t value = 0;
  const Mib bin = MibOf("arenas.bin.0.size"), epoch = MibOf("epoch"),
            lookup = MibOf("stats.arenas.0.pactive");
  for (std::size_t length = 0; length < 8; ++length) {
    Mib other = bin;
    other.resize(length, 0);
    if (OnJemalloc() && (length == 0 || length > 4)) continue;  // which crashes
    EXPECT_EQ(length == 4 ? 0 : ENOENT, Ask(other, &value, 8)) << length;
    other = epoch;
    other.resize(length, 0);
    if (OnJemalloc() && length > 1) continue;
    EXPECT_EQ(length == 1 ? 0 : ENOENT, Ask(other, &value, 8)) << length;
  }
  for (std::size_t at = 0; at < bin.size(); ++at) {
    for (const std::size_t wrong : {std::size_t{9999}, SIZE_MAX}) {
      Mib other = bin;
      other[at] = wrong;
      EXPECT_EQ(ENOENT, Ask(other, &value, 8)) << at;
    }
  }
  if (OnJemalloc()) return;
  Mib mixed = bin;
  mixed[3] = lookup[3];
  EXPECT_EQ(ENOENT, Ask(mixed, &value, 8)) << "the words of two names";
}

// --- many at once

TEST(Threads, AskAtOnce) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; !done.load(std::memory_order_relaxed); ++i) {
        void* block = mallocx(1 + i * 37 % 50'000, i % 3 == 0 ? kZero : 0);
        if (t == 0) {
          BeginEpoch();
          Do("arena.4096.purge");
        } else {
          std::size_t value = 0;
          EXPECT_EQ(0, Read("stats.allocated", value));
          EXPECT_EQ(0, Read("stats.arenas.4096.bins.3.curregs", value));
        }
        if (i % 16 == 0) Do("thread.tcache.flush");
        dallocx(block, 0);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
