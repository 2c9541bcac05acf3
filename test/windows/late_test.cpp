// SPDX-License-Identifier: Apache-2.0
//
// DLLs of ours that a program loads when it has been running for a while, and unloads: what became of the
// blocks that the C runtime had handed out, and of the threads that there were. Each test has a process of
// its own.
#include <gtest/gtest.h>
#include <malloc.h>
#include <windows.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "hakozuna/hakozuna.h"
#include "support/capture.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::Opaque;

// One of our DLLs, loaded.
class Dll {
 public:
  explicit Dll(const std::string& kind)
      : module_(LoadLibraryA(("hakozuna-" + hz_test::ExpectedLine() + kind + ".dll").c_str())) {}
  HMODULE module() const { return module_; }
  template <class Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(reinterpret_cast<void*>(GetProcAddress(module_, name)));
  }
  bool Owns(const void* p) const { return Find<int(const void*)>("hz_owns")(p) == 1; }
  hz_stats_t Stats() const {
    hz_stats_t now;
    Find<void(hz_stats_t*, std::size_t)>("hz_stats")(&now, sizeof now);
    return now;
  }

 private:
  const HMODULE module_;
};

// A block that the C runtime has from the system.
bool IsOfTheRuntime(const void* p) {
  return HeapValidate(reinterpret_cast<HANDLE>(_get_heap_handle()), 0, p) != 0;
}

TEST(Late, OlderBlocksAreFreedToTheRuntime) {
  void* p = Opaque(std::malloc(1000));
  ASSERT_TRUE(IsOfTheRuntime(p));
  const Dll dll("-redirect");
  ASSERT_NE(nullptr, dll.module());
  void* ours = Opaque(std::malloc(1000));
  ASSERT_TRUE(dll.Owns(ours));
  EXPECT_FALSE(dll.Owns(p));
  EXPECT_EQ(1000u, _msize(p)) << "as the system has it";
  EXPECT_EQ(p, _expand(p, 500));
  EXPECT_EQ(nullptr, _expand(p, 2000));
  std::free(p);
  EXPECT_FALSE(IsOfTheRuntime(p));
  std::free(ours);
}

TEST(Late, OlderBlocksMoveWhenTheyAreResized) {
  void* p = Opaque(std::malloc(1000));
  void* ended = Opaque(std::malloc(1000));
  FillPattern(p, 1000, 5);
  const Dll dll("-redirect");
  void* to = Opaque(std::realloc(p, 2000));
  ASSERT_TRUE(dll.Owns(to));
  EXPECT_TRUE(HasPattern(to, 1000, 5));
  EXPECT_FALSE(IsOfTheRuntime(p));
  std::free(to);
  EXPECT_EQ(nullptr, std::realloc(ended, 0));
  EXPECT_FALSE(IsOfTheRuntime(ended));
}

TEST(Late, OlderAlignedBlocks) {
  void* p = Opaque(_aligned_malloc(1000, 256));
  void* q = Opaque(_aligned_malloc(1000, 256));
  FillPattern(p, 1000, 5);
  const Dll dll("-redirect");
  void* to = Opaque(_aligned_realloc(p, 3000, 256));
  ASSERT_TRUE(dll.Owns(to));
  EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(to) % 256);
  EXPECT_TRUE(HasPattern(to, 1000, 5));
  _aligned_free(to);
  _aligned_free(q);
}

TEST(Late, WhatIsNobodysIsReported) {
  _putenv("HZ_ON_INVALID=report");
  alignas(64) char here[200] = {};
  const Dll dll("-redirect");
  hz_test::Capture capture;
  std::free(Opaque(static_cast<void*>(here + 64)));
  _aligned_free(Opaque(static_cast<void*>(here + 128)));
  EXPECT_EQ(0u, _msize(Opaque(static_cast<void*>(here + 64))));
  const std::string text = capture.Text();
  std::size_t reports = 0;
  for (std::size_t at = 0; (at = text.find("E01 foreign-pointer", at)) != std::string::npos; ++at) ++reports;
  EXPECT_EQ(3u, reports) << text;
}

TEST(Late, ThreadsFromBeforeEndAsOthersDo) {
  for (const char* kind : {"", "-redirect"}) {
    HANDLE there = CreateEventA(nullptr, TRUE, FALSE, nullptr);
    HANDLE go = CreateEventA(nullptr, TRUE, FALSE, nullptr);
    void* (*allocate)(std::size_t) = nullptr;
    std::thread old([&] {
      SetEvent(there);
      WaitForSingleObject(go, INFINITE);
      EXPECT_NE(nullptr, allocate(100));
    });
    WaitForSingleObject(there, INFINITE);  // how a thread begins allocates, too
    const Dll dll(kind);
    ASSERT_NE(nullptr, dll.module());
    allocate = dll.Find<void*(std::size_t)>("hz_malloc");
    dll.Find<void(void*)>("hz_free")(allocate(100));
    const std::uint64_t before = dll.Stats().threads;
    SetEvent(go);
    old.join();
    for (int i = 0; i < 20; ++i) std::thread([&] { allocate(100); }).join();
    EXPECT_EQ(before, dll.Stats().threads) << "the end of a thread went unnoticed";
    EXPECT_EQ(hz_test::IsTiny() ? 0u : 1u, before);
    CloseHandle(go);
    CloseHandle(there);
  }
}

TEST(Late, StaysWhenItIsUnloaded) {
  for (const char* kind : {"", "-redirect"}) {
    const Dll dll(kind);
    auto* const allocate = dll.Find<void*(std::size_t)>("hz_malloc");
    void* p = allocate(100);
    for (int i = 0; i < 5; ++i) FreeLibrary(dll.module());
    EXPECT_TRUE(dll.Owns(p));
    EXPECT_TRUE(dll.Owns(allocate(100)));
    dll.Find<void(void*)>("hz_free")(p);
  }
  void* p = Opaque(std::malloc(100));
  EXPECT_TRUE(Dll("-redirect").Owns(p)) << "malloc went back to the runtime";
  std::free(p);
}

}  // namespace
