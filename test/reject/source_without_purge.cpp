// SPDX-License-Identifier: Apache-2.0
//
// A source that keeps every page.
#include "box/source/contract.hpp"

using namespace hz;

struct Box {
  struct Global {};
  static constexpr unsigned kMostTables = 1;
  static bool open(Global&, const TableShape*, unsigned);
  static std::uintptr_t base(const Global&);
  static std::size_t bytes(const Global&);
  static std::uintptr_t table(const Global&, unsigned);
  static void tell(Global&, void (*)(std::size_t));
  static void limit(Global&, MemoryLimit, MemoryLimit);
  static Limits limits(const Global&);
  static Run acquire(Global&, std::size_t, std::size_t, Demand);
  static bool claim(Global&, std::uintptr_t, bool);
  static void release(Global&, std::uintptr_t, bool);
  static void part(Global&, std::uintptr_t, std::size_t);
  static void without_pages(Global&, std::ptrdiff_t);
  static bool resize(Global&, std::uintptr_t, std::size_t, RunResize = RunResize::kUsual);
  static std::size_t granules(Global&, std::uintptr_t);
  static std::uintptr_t start(Global&, std::uintptr_t);
  static std::size_t dirty_bytes(const Global&);
  static std::size_t held_bytes(Global&);
  static bool has_room(Global&, std::size_t);
  static bool owes_recall(const Global&);
  static bool took_recall(Global&);
  static std::size_t thread_share(const Global&);
  static std::size_t reached_bytes(Global&);
  static Rows rows_from(Global&, std::size_t, std::size_t);
  static bool answers(Global&, unsigned);
#ifdef HZ_COMPLETE
  static std::size_t purge(Global&, std::size_t, std::size_t);
#endif
  static void free_locks(Global&);
  static void make_whole(Global&);
  static void hold(Global&, std::uintptr_t, unsigned, std::uintptr_t);
  static void join(Global&, std::uintptr_t, std::uintptr_t);
  static void drop(Global&, std::uintptr_t);
  static unsigned holder(Global&, std::uintptr_t);
  static hz::HeldRun drop_next(Global&, std::uintptr_t);
  static void note_mapping_boundary(Global&, std::uintptr_t);
  static bool in_pieces(Global&, std::uintptr_t);
  static std::size_t piece(Global&, std::uintptr_t, std::size_t);
};

static_assert(SourceContract<Box>);
