// SPDX-License-Identifier: Apache-2.0
//
// The description of a line's heap for readers of the process from outside: the words of all boxes, and the
// bases of their offsets. Part of every library by src/export/direct.cpp.
#pragma once

#include "base/layout.hpp"
#include "heap/of_line.hpp"
#include "heap/spans/discard.hpp"
#include "heap/state/tables.hpp"

namespace hz {

template <class Line>
struct LayoutOf {
  static constexpr Layout make(const char* release) {
    Layout layout(Line::kName, release, kWords);
    layout.part[kProcess] = &S::global;
    layout.part[kPool] = &S::shelves.pool;
    layout.part[kClasses] = &classes;
    if constexpr (requires { Line::Policy::process; }) layout.part[kPolicy] = &Line::Policy::process;
    layout.part[kShared] = &S::shared;
    layout.part[kPurger] = &S::purger_state;
    layout.part[kExtension] = Extensions::begin_of_words();
    if constexpr (requires { typename Line::Front::Empty; })
      layout.part[kMagazines] = Line::Front::Empty::begin_of_words();
    return layout;
  }

 private:
  using S = State<Line>;
  using Global = typename S::Global;
  using Thread = typename S::Thread;
  using Word = layout::Word;

  enum : layout::Part {
    kProcess = 1,
    kPool,
    kClasses,
    kPolicy,
    kShared,
    kPurger,
    kMagazines,
    kExtension,
    kThread,  // a pattern, as are the next
    kSpan,
    kSite
  };

  static constexpr layout::Words<11> kOwn = {
      Word("granule.bytes", kGranule),
      {"span.pages_go", Discard<Line>::kPossible ? 1 : 0},
      {"metadata.bytes", sizeof(Global) + sizeof(typename S::Shelves)},
      {"metadata.per_granule", Tables<Line>::kUsualBytesPerGranule},
      {"process.counting", offsetof(Global, counting), 1},
      {"process.purger", offsetof(Global, purger), sizeof(std::uint32_t)},
      {"process.threads", offsetof(Global, threads), sizeof(void*)},
      {"process.orphans", offsetof(Global, orphans), sizeof(void*)},
      {"process.thread_memory", offsetof(Global, thread_memory), sizeof(std::size_t)},
      {"huge.blocks", offsetof(Global, huge_blocks), sizeof(std::size_t)},
      {"huge.bytes", offsetof(Global, huge_bytes), sizeof(std::size_t)}};
  // States that are no thread's; only where they lie matters.
  static constexpr layout::Words<1> kOfShared = {Word("process.shared", 0, 1)};
  static constexpr layout::Words<1> kOfPurger = {Word("process.purger_state", 0, 1)};
  // A quota begins with a front, as a state does, and as many bytes can be read there.
  static_assert(offsetof(Thread, front) == 0 && offsetof(typename S::Quota, front) == 0);
  static constexpr layout::Words<5> kOfThread = {Word("thread.bytes", sizeof(Thread)),
                                                 {"thread.quota", offsetof(Thread, quota), sizeof(void*)},
                                                 {"thread.next", offsetof(Thread, next), sizeof(void*)},
                                                 {"thread.local", offsetof(Thread, local), sizeof(void*)},
                                                 {"thread.revoked", offsetof(Thread, revoked), 1}};

  // Of a box that may name none.
  template <class Box>
  static constexpr auto of(layout::Part part, std::size_t at) {
    if constexpr (requires { Box::words(); })
      return layout::placed(Box::words(), part, at);
    else
      return layout::Words<0>{};
  }
  static constexpr auto of_magazines() {
    if constexpr (requires { typename Line::Front::Empty; })
      return of<typename Line::Front::Empty>(kMagazines, 0);
    else
      return layout::Words<0>{};
  }
  static constexpr auto kWords = layout::joined(
      layout::placed(kOwn, kProcess, 0), layout::placed(kOfShared, kShared, 0),
      layout::placed(kOfPurger, kPurger, 0),
      layout::placed(Line::Retain::words(), kProcess, offsetof(Global, retain)),
      layout::placed(Line::Source::words(), kProcess, offsetof(Global, source)),
      layout::placed(Line::Pool::words(), kPool, 0), layout::placed(Line::Pool::words_of_span(), kSpan, 0),
      layout::placed(SizeClasses::words(), kClasses, 0), of_magazines(), Extensions::words(kExtension, kSite),
      of<typename Line::Policy>(kPolicy, 0), layout::placed(kOfThread, kThread, 0),
      layout::placed(Line::Retain::words_of_thread(), kThread, offsetof(Thread, retain)),
      layout::placed(Line::Front::words(), kThread, offsetof(Thread, front)),
      layout::placed(Line::Exchange::words(), kThread, offsetof(Thread, exchange)),
      of<typename Line::Observe>(kThread, offsetof(Thread, observe)));
};

}  // namespace hz
