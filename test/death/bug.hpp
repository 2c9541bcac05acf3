// SPDX-License-Identifier: Apache-2.0
//
// A registry of bugs. Each file of this folder that is named after a bug commits it once, in a function
// written as
//
//   HZ_BUG(DoubleFreeAtOnce, "E03 double-free", kFatal) { ... scene.Expect(p, size); ... }
//
// and death_test.cpp runs it in a child process and compares what came out, to the letter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/heap_api.hpp"

namespace hz_test {

enum Severity { kFatal, kNeverFatal };

// What a bug tells the test about the report that must follow.
class Scene {
 public:
  // The next report is about `block`, of `class_size` bytes a slot (kNoClass: printed as "-"), by the calling
  // thread.
  void Expect(const void* block, std::size_t class_size);
  // The same, but by the purger where the line sees second frees late.
  void ExpectOfPurger(const void* block, std::size_t class_size);
  // After a free that some lines take for good until the slots return to their spans.
  static void SlotsComeHome() {
    if (SeesSecondFreesLate()) api::Trim();
  }
  // A promise of the report mode that was not kept.
  void Check(bool kept, const char* promise);

  std::size_t last_class() const { return last_class_; }
  bool all_kept() const { return all_kept_; }

  static constexpr std::size_t kNoClass = 0;

 private:
  void Announce(const void* block, std::size_t class_size, const std::string& thread);

  std::size_t last_class_ = kNoClass;
  bool all_kept_ = true;
};

struct Bug {
  Bug(const char* bug_name, const char* bug_code, Severity bug_severity, void (*bug_commit)(Scene&))
      : name(bug_name), code(bug_code), severity(bug_severity), commit(bug_commit), next(first) {
    first = this;
  }

  const char* name;
  const char* code;  // "E03 double-free"
  Severity severity;
  void (*commit)(Scene&);
  Bug* next;

  static inline Bug* first = nullptr;
};

#define HZ_BUG(bug, code, severity)                                                    \
  static void bug(::hz_test::Scene& scene);                                            \
  static const ::hz_test::Bug bug##Registration(#bug, code, ::hz_test::severity, bug); \
  static void bug(::hz_test::Scene& scene)

// `block` moved by some bytes, hidden from the compiler.
inline void* Inside(void* block, std::ptrdiff_t bytes) {
  return Opaque(static_cast<char*>(Opaque(block)) + bytes);
}

}  // namespace hz_test
