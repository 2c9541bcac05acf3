# SPDX-License-Identifier: Apache-2.0
#
# mutants.py --runtime LIBRARY [--sample N | --all | NAME...]: whether the explorer finds what is wrong with headers that are:
# each mutant is one change of a header (an order weakened, a fence taken away, two stores swapped, a second look dropped),
# and names the scenario that catches it. A change must apply exactly once. Compiles the scenario with the changed header
# before the others and runs it; a mutant that no execution catches fails. Those that are changes of whole statements are
# compiled together, and switched on one by one (HZ_MUTANT). Called by CTest with a sample, another one each day, and by
# `hz endure` with all: a second or two of a processor for each that is compiled alone, a tenth of that for the others.
#
# Which changes are none, because no program can tell them from what is right, doc/protocols.md says.
import argparse
import datetime
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# In explorer.cpp.
SWITCHES = """namespace hz::os { class Lock; }
extern int hz_mutant;
hz::os::Lock& hz_unlocked(hz::os::Lock&, bool);
template <class Ranked>
Ranked& hz_unlocked(Ranked& lock, bool is) {
  return static_cast<Ranked&>(hz_unlocked(static_cast<hz::os::Lock&>(lock), is));
}
"""

# name, header, the scenario that catches it, and pairs of what stands there and what is put in its place
MUTANTS = []


def mutant(name, header, scenario, *pairs):
    MUTANTS.append((name, header, scenario, pairs))


def weaker(name, header, scenario, before, order, after="", to="relaxed"):
    mutant(name, header, scenario, (f"{before}std::memory_order_{order}{after}",
                                    f"{before}std::memory_order_{to}{after}"))


# --- shared lists
LIST = "base/free_list.hpp"
weaker("list-push-relaxed", LIST, "list.small", "head, chain.first, ", "release")
weaker("list-take-relaxed", LIST, "list.small", "rest = head_.exchange(nullptr, ", "acquire")
mutant("list-take-in-two-steps", LIST, "list.small",
       ("rest = head_.exchange(nullptr, std::memory_order_acquire);",
        "rest = head_.load(std::memory_order_acquire);\n    head_.store(nullptr, std::memory_order_relaxed);"))
weaker("list-give-back-relaxed", LIST, "list.small", "expected, rest, ", "release", ", std")
mutant("list-give-back-overwrites", LIST, "list.small",
       ("if (head_.compare_exchange_strong(expected, rest, std::memory_order_release, std::memory_order_relaxed))\n"
        "        return;",
        "head_.store(rest, std::memory_order_release);\n      if (rest != expected) return;"))
weaker("list-give-back-recent-relaxed", LIST, "list.small", "recent = head_.exchange(nullptr, ", "acquire")
mutant("list-give-back-forgets", LIST, "list.small", ("      rest = recent;\n", ""))
mutant("list-push-overwrites", LIST, "list.small",
       ("} while (!head_.compare_exchange_weak(head, chain.first, std::memory_order_release,\n"
        "                                          std::memory_order_relaxed));",
        "} while (false);\n    head_.store(chain.first, std::memory_order_release);"))
mutant("list-batch-of-one", LIST, "list.batches", ("first->count = chain.count;", "first->count = 1;"))
mutant("list-batch-unlinked", LIST, "list.batches",
       ("reinterpret_cast<Batch*>(last)->next_batch = rest;", "static_cast<void>(rest);"))

# --- a free whose thread is hidden for a moment
FREE = "heap/api/release.hpp"
mutant("free-looks-twice", FREE, "free.hidden",
       ("    if constexpr (Exchange::kOwners == 1) return Heap<Line>::free_slow(block);\n    const Tag tag", "    const Tag tag"))

# --- the lock and the turn
LOCK = "os/lock.hpp"
weaker("lock-relaxed", LOCK, "lock.sleeps", "if (HZ_UNLIKELY(!word_.compare_exchange_strong(expected, kHeld, ", "acquire")
weaker("lock-wait-relaxed", LOCK, "lock.sleeps", "while (word_.exchange(kContended, ", "acquire", ") != kFree) wait_on")
weaker("lock-unlock-relaxed", LOCK, "lock.sleeps", "word_.exchange(kFree, ", "release", ") == kContended")
mutant("lock-sleeper-says-held", LOCK, "lock.sleeps",
       ("while (word_.exchange(kContended, std::memory_order_acquire) != kFree) wait_on(raw(), kContended);",
        "while (word_.exchange(kHeld, std::memory_order_acquire) != kFree) wait_on(raw(), kHeld);"))
mutant("lock-wakes-nobody", LOCK, "lock.sleeps", ("      wake_one(raw());\n", ""))
mutant("lock-wakes-when-held", LOCK, "lock.sleeps", ("std::memory_order_release) == kContended)", "std::memory_order_release) == kHeld)"))
mutant("lock-woken-is-holder", LOCK, "lock.sleeps",
       ("while (word_.exchange(kContended, std::memory_order_acquire) != kFree) wait_on",
        "if (word_.exchange(kContended, std::memory_order_acquire) != kFree) wait_on"))
weaker("lock-spin-relaxed", LOCK, "lock.spins", "word_.compare_exchange_weak(expected, kHeld, ", "acquire")
mutant("lock-spin-takes", LOCK, "lock.spins",
       ("if (word_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire,\n"
        "                                        std::memory_order_relaxed))\n          return true;",
        "static_cast<void>(expected);\n        word_.exchange(kHeld, std::memory_order_acquire);\n        return true;"))
weaker("lock-try-relaxed", LOCK, "lock.tries", "return word_.compare_exchange_strong(expected, kHeld, ", "acquire")
weaker("lock-within-relaxed", LOCK, "lock.tries", "while (word_.exchange(kContended, ", "acquire", ") != kFree) {")
weaker("turn-relaxed", LOCK, "turn", "process_.compare_exchange_strong(before, now, ", "acquire")
weaker("turn-leave-relaxed", LOCK, "turn", "process_.store(0, ", "release")
mutant("turn-in-two-steps", LOCK, "turn",
       ("    return before != now && process_.compare_exchange_strong(before, now, std::memory_order_acquire);",
        "    if (before != 0) return false;\n    process_.store(now, std::memory_order_release);\n    return true;"))

# --- the table that grows, and stores of magazines
TABLE, STORES = "os/growing_table.hpp", "os/magazines.hpp"
weaker("table-publish-relaxed", TABLE, "table.grows", "static_cast<Row*>(chunk), ", "release")
weaker("table-find-relaxed", TABLE, "table.grows", "chunks_[chunk_of(row)].load(", "acquire")
mutant("table-overwrites", TABLE, "table.grows",
       ("if (!chunks_[at].compare_exchange_strong(expected, static_cast<Row*>(chunk), std::memory_order_release,\n"
        "                                             std::memory_order_relaxed))\n      unmap(chunk, bytes_of(at));",
        "static_cast<void>(expected);\n    chunks_[at].store(static_cast<Row*>(chunk), std::memory_order_release);"))
mutant("table-unmaps-the-other", TABLE, "table.grows", ("unmap(chunk, bytes_of(at));", "unmap(expected, bytes_of(at));"))
HOLD = "    const Guarded hold(lock_);\n"
for function, at in (("take", "  Magazine* take() {\n"), ("keep", "  Magazine* keep(Magazine* first) {\n"),
                     ("take-kept", "  Magazine* take_kept() {\n"), ("shrink", "  void shrink() {\n"),
                     ("take-back", "  void take_back(Chunk& chunk, Magazine* magazine) {\n")):
    mutant(f"store-{function}-without-lock", STORES, "magazines", (at + HOLD, at))
mutant("store-shrink-remembers", STORES, "magazines",
       ("if (unused_ != nullptr) drop(*unused_);\n    unused_ = nullptr;", "if (unused_ != nullptr) drop(*unused_);"))
mutant("store-unused-in-use", STORES, "magazines", ("    if (&chunk == unused_) unused_ = nullptr;\n", ""))
mutant("store-drop-linked", STORES, "magazines",
       ("    unlink(chunk);\n    bytes_.fetch_sub", "    bytes_.fetch_sub"))

# --- first-class heaps
HEAPS = "heap/state/heap_table.hpp"
REVOKES = "    biased.store(nullptr, std::memory_order_relaxed);\n    all_have_seen();\n    wait_for_biased();\n"
mutant("bias-without-barrier", HEAPS, "bias.one", (REVOKES, REVOKES.replace("    all_have_seen();\n", "")))
mutant("bias-without-waiting", HEAPS, "bias.one", (REVOKES, REVOKES.replace("    wait_for_biased();\n", "")))
mutant("bias-barrier-first", HEAPS, "bias.one",
       (REVOKES, "    all_have_seen();\n    biased.store(nullptr, std::memory_order_relaxed);\n    wait_for_biased();\n"))
mutant("bias-one-look", HEAPS, "bias.one",
       ("    if (HZ_LIKELY(biased.load(std::memory_order_relaxed) == thread)) return true;\n    leave_biased();\n"
        "    return false;", "    return true;"))
mutant("bias-flag-after-look", HEAPS, "bias.one", ("    inside.put(true);\n", ""),
       ("    if (HZ_LIKELY(biased.load(std::memory_order_relaxed) == thread)) return true;\n    leave_biased();",
        "    if (biased.load(std::memory_order_relaxed) == thread) return inside.put(true), true;\n    leave_biased();"))
mutant("bias-flag-stays", HEAPS, "bias.one", ("    leave_biased();\n    return false;", "    return false;"))
mutant("bias-leave-relaxed", HEAPS, "bias.one", ("inside.set_last(false)", "inside.set(false)"))
mutant("bias-wait-relaxed", HEAPS, "bias.one", ("while (inside.peek_first()) os::give_way();", "while (inside.peek()) os::give_way();"))
mutant("bias-of-second-thread", HEAPS, "bias.again",
       ("if (owner == thread) biased.store(thread, std::memory_order_relaxed);",
        "biased.store(thread, std::memory_order_relaxed);"))
mutant("bias-fork-without-barrier", HEAPS, "bias.fork", ("    if (revoked) HeapRow::all_have_seen();\n", ""))
mutant("bias-fork-without-waiting", HEAPS, "bias.fork", ("had = rows_.find(i)->has_left_within(had ? most_milliseconds : 0) && had;", "static_cast<void>(0);"))
mutant("bias-fork-keeps-all", HEAPS, "bias.fork",
       ("if (biased == nullptr || biased == thread) continue;", "if (biased == nullptr || biased != thread) continue;"))
weaker("heaps-number-relaxed", HEAPS, "heaps.begin", "last_.store(number, ", "release")
weaker("heaps-find-relaxed", HEAPS, "heaps.begin", "number <= last_.load(", "acquire")

# --- pending bits
BITS = "box/exchange/pending_bitmap.hpp"
weaker("pending-bit-order", BITS, "pending.bit", "<< (index % 64), ", "seq_cst", to="acq_rel")
weaker("pending-bit-relaxed", BITS, "pending.bit", "<< (index % 64), ", "seq_cst")
weaker("pending-mark-look-order", BITS, "pending.bit", "mark = entry.mark.load(", "seq_cst", to="acquire")
weaker("pending-drain-order", BITS, "pending.bit", "entry.mark.exchange(kDraining, ", "seq_cst", to="acq_rel")
weaker("pending-word-look-order", BITS, "pending.bit", "if (word.load(", "seq_cst", to="acquire")
weaker("pending-word-relaxed", BITS, "pending.word", "word.exchange(0, ", "acq_rel")
mutant("pending-idle-stored", BITS, "pending.bit",
       ("entry.mark.compare_exchange_strong(mark, kIdle, std::memory_order_acq_rel, std::memory_order_acquire))",
        "(static_cast<void>(mark), entry.mark.store(kIdle, std::memory_order_release), true))"))
mutant("pending-never-dirty", BITS, "pending.bit", ("if (mark == kQueued || mark == kDirty) return", "if (mark != kIdle) return"))
mutant("pending-word-in-two-steps", BITS, "pending.queue",
       ("bits = word.exchange(0, std::memory_order_acq_rel);",
        "bits = word.load(std::memory_order_acquire);\n    word.store(0, std::memory_order_release);"))
mutant("pending-rest-forgotten", BITS, "pending.queue", ("if (bits != 0) word.fetch_or(bits,", "if (false) word.fetch_or(bits,"))
weaker("pending-push-relaxed", BITS, "pending.queue", "with_row(seen, row), ", "seq_cst")
weaker("pending-detach-relaxed", BITS, "pending.queue", "with_row(seen, 0), ", "acquire")
mutant("pending-give-back-overwrites", BITS, "pending.queue", ("if (row_of(seen) == 0 &&\n          head", "if (head"))
mutant("pending-give-back-to-closed", BITS, "pending.lives",
       ("if (owner == kOrphans || is_open(seen)) return", "if (owner <= kOrphans) return"))
mutant("pending-close-overwrites", BITS, "pending.lives",
       ("!head.compare_exchange_weak(seen, seen + (std::uint64_t{1} << 32), std::memory_order_relaxed)",
        "(head.store(seen + (std::uint64_t{1} << 32), std::memory_order_relaxed), false)"))
mutant("pending-push-untold", BITS, "pending.waiting", ("        break;\n    }\n    note_waiting(g);", "        break;\n    }"))
mutant("pending-give-back-untold", BITS, "pending.waiting", ("return note_waiting(g);", "return;"))
weaker("pending-told-order", BITS, "pending.waiting", "if (!g.waiting.load(", "seq_cst", to="acquire")
weaker("pending-asked-order", BITS, "pending.waiting", "g.waiting.exchange(false, ", "seq_cst", to="acq_rel")
weaker("pending-queue-look-order", BITS, "pending.waiting", "seen = head.load(", "seq_cst", ");  // see", to="acquire")
weaker("pending-push-order", BITS, "pending.waiting", "with_row(seen, row), ", "seq_cst", to="acq_rel")
mutant("pending-fork-not-noted", BITS, "pending.fork", ("    t.pushing.put(row);\n", ""))
mutant("pending-fork-not-pushed", BITS, "pending.fork", ("if (announce(entry) || !is_queued(g, row))", "if (announce(entry))"))
mutant("pending-fork-noted-late", BITS, "pending.fork", ("    t.pushing.put(row);\n", ""),
       ("    if (announce(entry)) push(g, owner, bin, row);", "    t.pushing.put(row);\n    if (announce(entry)) push(g, owner, bin, row);"))

# --- the depot, inboxes and claims
DEPOT, INBOX = "box/exchange/magazine_depot.hpp", "box/exchange/message_batch.hpp"
mutant("depot-give-without-lock", DEPOT, "depot.full",
       ("g.of_cpu[here][bin];\n    const os::Guarded hold(shelf.lock);\n", "g.of_cpu[here][bin];\n"))
mutant("depot-take-without-lock", DEPOT, "depot.full", ("    const os::Guarded hold(own.lock);\n", ""))
mutant("depot-steal-without-lock", DEPOT, "depot.full",
       ("      const os::Guarded hold(shelf.lock);\n      Magazine* const newest", "      Magazine* const newest"))
mutant("depot-top-up-without-lock", DEPOT, "depot.single",
       ("    const os::Guarded hold(shelf.lock);\n    if (Magazine* const last", "    if (Magazine* const last"))
mutant("depot-not-shown", DEPOT, "depot.full", ("g.of_bin[bin].shelves.fetch_or(bit_of(here), std::memory_order_relaxed);", ";"))
mutant("depot-hides-all", DEPOT, "depot.full", ("shelves.fetch_and(~bit_of(at), std", "shelves.fetch_and(0, std"))
mutant("depot-shows-one", DEPOT, "depot.full", ("shelves.fetch_or(bit_of(here),", "shelves.store(bit_of(here),"))
mutant("depot-count-of-newest", DEPOT, "depot.single", ("last->count += bundle.take(", "last->count = bundle.take("))
mutant("inbox-without-lock", INBOX, "inbox", ("      const os::Guarded hold(inbox->lock);\n", ""))
mutant("inbox-adopt-overwrites", INBOX, "inbox",
       ("magazine->follow_with(adopted.load(std::memory_order_relaxed));", "magazine->follow_with(nullptr);"))
mutant("inbox-unpack-forgets", INBOX, "inbox",
       ("inbox.adopted[bin].store(magazine, std::memory_order_relaxed);", "inbox.adopted[bin].store(nullptr, std::memory_order_relaxed);"))
mutant("claim-in-two-steps", "base/slot_bytes.hpp", "claims",
       ("return __atomic_compare_exchange_n(at(slot, bin), &expected, value, false, __ATOMIC_RELAXED,\n"
        "                                       __ATOMIC_RELAXED);",
        "if (get(slot, bin) != expected) return false;\n    return set(slot, bin, value), true;"))
mutant("claim-arrives-twice", "box/guard/slot_state.hpp", "claims",
       ("    if (HZ_UNLIKELY(get(slot, bin) != kClaimed)) return false;\n", ""))

# --- revocation
REVOKE, LINKED, ARRAYS = "heap/process/revoke.hpp", "box/front/linked_bins.hpp", "box/front/magazine_bins.hpp"
mutant("revoke-without-first-barrier", REVOKE, "revoke",
       ("    if (!os::barrier_on_all_threads()) return S::show(t, true), false;\n", ""))
mutant("revoke-without-second-barrier", REVOKE, "revoke",
       ("    HeapRow::all_have_seen();\n    for (Bin bin = 1; bin < kBins; ++bin) {\n      if (lists",
        "    for (Bin bin = 1; bin < kBins; ++bin) {\n      if (lists"))
mutant("revoke-not-hidden", REVOKE, "revoke", ("    S::show(*local, S::empty);\n", ""))
mutant("revoke-without-lock", REVOKE, "revoke", ("if (!hold.held || !t.hooked.peek())", "if (!t.hooked.peek())"))
mutant("revoke-whatever-the-count", REVOKE, "revoke",
       ("if (slots.count != 0 && Front::accounts_for(front, bin, slots.count)) {", "if (slots.count != 0) {"))
mutant("revoke-outbox-in-use", REVOKE, "revoke.outbox", ("if (!deferring) Reclaim", "if (deferring || true) Reclaim"))
mutant("revoke-flag-before-barrier", REVOKE, "revoke.outbox",
       ("    const bool deferring = t.deferring.peek_first();\n", ""),
       ("    S::show(*local, S::empty);\n", "    const bool deferring = t.deferring.peek_first();\n    S::show(*local, S::empty);\n"))
mutant("linked-pop-counts-last", LINKED, "revoke", ("    t.room[bin].add(1);\n    in_this_order();\n    FreeSlot* slot", "    FreeSlot* slot"),
       ("      t.room[apart(bin)].add(-1);\n      return nullptr;", "      return nullptr;"),
       ("    t.heads[bin].put(slot->next);\n    return slot;", "    t.heads[bin].put(slot->next);\n    t.room[bin].add(1);\n    return slot;"))
mutant("linked-unresolved-forgotten", LINKED, "revoke",
       ("if (length(t, bin) != t.capacity[bin].peek() - t.room[bin].peek()) {", "if (t.room[bin].peek() == -1) {"))
mutant("linked-unresolved-doubled", LINKED, "revoke",
       ("if (length(t, bin) != t.capacity[bin].peek() - t.room[bin].peek()) {", "if (t.unresolved_bin != 0) {"))
mutant("arrays-pop-counts-last", ARRAYS, "revoke", ("    t.room[bin].add(1);\n    in_this_order();\n    void** top", "    void** top"),
       ("      undo(t, apart(bin), -1);\n      return nullptr;", "      return nullptr;"),
       ("    t.tops[bin].put(top - 1);\n", "    t.tops[bin].put(top - 1);\n    t.room[bin].add(1);\n"))
mutant("arrays-put-forgotten", ARRAYS, "revoke", ("        if (top == t.scratch + 2) *first++ = t.scratch[1];\n", ""))
mutant("arrays-unresolved-forgotten", ARRAYS, "revoke",
       ("void** first = bin == t.unresolved_bin ? t.unresolved : base(t, bin);\n        if", "void** first = base(t, bin);\n        if"))
RINGS = "box/front/quarantine.hpp"
mutant("rings-taken-whatever-the-count", REVOKE, "revoke",
       ("      if (!Front::accounts_for(t.front, bin, listed)) return;\n", ""))
mutant("rings-stay-attached", RINGS, "revoke", ("    if (t.store != nullptr) t.rings[bin].take(t.store->late);\n", ""))
mutant("rings-late-forgotten", RINGS, "revoke", ("      put(t, bin, slot);\n    }\n  }\n", "    }\n  }\n"))

# --- the purger's sleep
PURGER, THREAD = "heap/process/purger.hpp", "heap/process/thread.hpp"
SLEEPS = "    purger.store(S::kPurgerSleeps, std::memory_order_relaxed);\n    const bool barrier = os::barrier_on_all_threads();\n"
mutant("sleep-without-barrier", PURGER, "purger.sleeps",
       (SLEEPS, SLEEPS.replace("os::barrier_on_all_threads()", "true")))
mutant("sleep-barrier-first", PURGER, "purger.sleeps",
       (SLEEPS, "    const bool barrier = os::barrier_on_all_threads();\n    purger.store(S::kPurgerSleeps, std::memory_order_relaxed);\n"))
mutant("sleep-without-look", PURGER, "purger.sleeps", ("if (!barrier || !all_sleep())", "if (!barrier)"))
mutant("sleep-looks-without-lock", PURGER, "purger.ends",
       ("    const Hold list(S::global.threads_lock);\n    if (S::global.threads == nullptr) return false;",
        "    if (S::global.threads == nullptr) return false;"))
mutant("sleep-of-nobody", PURGER, "purger.ends", ("    if (S::global.threads == nullptr) return false;\n    for", "    for"))
mutant("wake-forgotten", THREAD, "purger.sleeps", ("    S::show(t, true);\n    wake_purger();", "    S::show(t, true);"))
mutant("wake-before-back", THREAD, "purger.sleeps", ("    restore(t);\n    S::show(t, true);", "    wake_purger();\n    restore(t);\n    S::show(t, true);"),
       ("    S::show(t, true);\n    wake_purger();", "    S::show(t, true);"))
mutant("wake-nobody", THREAD, "purger", ("      os::wake_one(reinterpret_cast<const std::uint32_t*>(&purger));", "      ;"))
mutant("wake-without-word", THREAD, "purger", ("if (purger.compare_exchange_strong(expected, S::kPurgerRuns, std::memory_order_relaxed))\n", ""))

# --- lives of threads
RECLAIM, LIST_LOCK = "heap/exchange/reclaim.hpp", "    const Hold list(S::global.threads_lock);\n"
mutant("birth-without-lock", THREAD, "lives.births",
       ("    const Hold hold(g.threads_lock);\n    // Born already", "    // Born already"))
mutant("birth-half-listed", THREAD, "lives.births", ("    if (g.threads != nullptr) g.threads->previous = &t;\n", ""))
mutant("birth-state-of-two", THREAD, "lives.births", ("    if (t != nullptr) list = t->next;\n", ""))
mutant("leave-without-lock", THREAD, "lives.heirs", (LIST_LOCK + "    delist(S::global, t);", "    delist(S::global, t);"))
mutant("leave-half-delisted", THREAD, "lives.heirs", ("    if (t.next != nullptr) t.next->previous = t.previous;\n", ""))
mutant("heirs-count-once", THREAD, "lives.heirs", ("    if (leave(*t)) {", "    leave(*t);\n    if (false) {"))
mutant("exit-without-lock", THREAD, "lives.revoked",
       ("      const Crossing crossing(*t);\n      t->local.set(nullptr);", "      t->local.set(nullptr);"))
mutant("exit-keeps-outbox", RECLAIM, "lives.revoked",
       ("    send(t, true);\n    empty(t, to_spans);", "    empty(t, to_spans);"))
mutant("leftovers-without-lock", THREAD, "lives.adopted",
       (LIST_LOCK + "    while (Thread* t = pop(S::global.orphans)) {", "    while (Thread* t = pop(S::global.orphans)) {"))

# --- forks
FORK, ALL_LOCKS = "heap/process/fork.hpp", "    while (t != nullptr && had(t->lock)) t = t->next;\n"
NO_LOCKS = "    while (t != nullptr) t = t->next;\n"
LIST = "    if (!had(S::global.threads_lock)) return false;\n"
mutant("fork-without-threads", FORK, "fork.child", (ALL_LOCKS, NO_LOCKS))
mutant("fork-list-last", FORK, "fork.parent", (LIST, ""), (ALL_LOCKS, ALL_LOCKS + "    had(S::global.threads_lock);\n"))
mutant("fork-shared-first", FORK, "fork.parent", (LIST, "    S::shared.lock.lock();\n    S::global.threads_lock.lock();\n"),
       ("had(S::shared.lock)) {", "true) {"))
mutant("fork-purger-stays", FORK, "fork.parent", ("    S::purger_state.lock.unlock();\n", ""))
mutant("fork-heaps-stay", FORK, "fork.child", ("    S::shelves.heaps.unlock_all();\n    seen_by", "    seen_by"))
mutant("fork-handlers-wait", FORK, "fork.parent", ("mine.forking = true, has_streams", "has_streams"))
mutant("fork-streams-last", FORK, "fork.streams", ("      const bool streams = os::lock_streams();\n", "      const bool streams = false;\n"))
mutant("fork-streams-stay", FORK, "fork.streams", ("    release_all();\n    if (streams) os::unlock_streams();\n", "    release_all();\n"))
mutant("child-source-locked", FORK, "fork.child", ("    Line::Source::free_locks(g.source);\n", ""))
mutant("child-leaves-none", FORK, "fork.child", ("    leave_others_behind(g);\n", ""))
mutant("child-leaves-itself", FORK, "fork.child", ("      if (t != S::tls().heap) leave_behind(g, *t);", "      leave_behind(g, *t);"))
mutant("fork-joined-unseen", FORK, "fork.joined", ("was_alone && HZ_UNLIKELY(!is_alone())", "false"))
mutant("fork-always-alone", FORK, "fork.child", ("return os::has_one_thread() && S", "return true; static_cast<void>(S"), ("memory_order_relaxed) <= 1;", "memory_order_relaxed));"))
mutant("unseen-list-locked", FORK, "fork.unseen", ("    g.threads_lock.reset();\n", ""))
mutant("unseen-own-locked", FORK, "fork.unseen", ("const bool held = t->lock.reset();", "const bool held = false;"))
mutant("unseen-not-noticed", FORK, "fork.unseen", ("    cut_off();\n", ""))

# --- guarded pages
GUARDED = "heap/samples/guarded.cpp"
FORBIDS = "  if (!os::forbid(pointer(page_of(place)), state.page)) clear_bytes(pointer(page_of(place)), state.page);\n"
PUT_INTO_RING = "  ring[(head + idle++) % kPlaces] = static_cast<std::uint16_t>(&place - places);\n"
mutant("guarded-free-without-lock", GUARDED, "guarded.twice", ("    const Hold hold(lock);\n    found = look(block);", "    found = look(block);"))
mutant("guarded-look-before-lock", GUARDED, "guarded.twice",
       ("    const Hold hold(lock);\n    found = look(block);", "    found = look(block);\n    const Hold hold(lock);"))
mutant("guarded-stays-live", GUARDED, "guarded.twice",
       ("    place.use.store(Use::kFreed, std::memory_order_release);  // pairs with look()\n", ""))
mutant("guarded-reads-forbidden", GUARDED, "guarded.twice", (FORBIDS, ""),
       ("  found.at = pointer(overwritten(place));", FORBIDS + "  found.at = pointer(overwritten(place));"))
mutant("guarded-ring-without-lock", GUARDED, "guarded.twice", (FORBIDS + "  const Hold hold(lock);\n", FORBIDS))
mutant("guarded-forbids-late", GUARDED, "guarded.again",
       (FORBIDS + "  const Hold hold(lock);\n" + PUT_INTO_RING, "  lock.lock();\n" + PUT_INTO_RING + "  lock.unlock();\n" + FORBIDS))
mutant("guarded-take-without-lock", GUARDED, "guarded.take",
       ("    const Hold hold(lock);\n    if (idle == 0) return nullptr;", "    if (idle == 0) return nullptr;"))
mutant("guarded-place-of-two", GUARDED, "guarded.take", ("    --idle;\n", ""))
SHOWS = "  place->use.store(Use::kLive, std::memory_order_release);\n"
mutant("guarded-shown-first", GUARDED, "guarded.asked", (SHOWS, ""), ("  place->block.set(block);\n", SHOWS + "  place->block.set(block);\n"))
weaker("guarded-shown-relaxed", GUARDED, "guarded.asked", "place->use.store(Use::kLive, ", "release")
weaker("guarded-look-relaxed", GUARDED, "guarded.asked", "const Use use = place.use.load(", "acquire")
mutant("guarded-begins-without-lock", GUARDED, "guarded.begins",
       ("  const Hold hold(lock);\n  if (GuardedPool::is_on()) return true;", "  if (GuardedPool::is_on()) return true;"))
weaker("guarded-every-relaxed", GUARDED, "guarded.begins", "state.every.store(now.every, ", "release", ");  // pairs with every()\n  return true;")
weaker("guarded-every-look-relaxed", "heap/samples/guarded.hpp", "guarded.begins", "return state.every.load(", "acquire")

# --- quotas
QUOTAS = "heap/api/quotas.hpp"
mutant("quota-shown-half", QUOTAS, "quotas.looked", ("t.quota.set_last(quota);", "t.quota.set(quota);"))
mutant("quota-end-keeps-slots", QUOTAS, "quotas.begin",
       ("      while (t.quota.peek() != nullptr && Reclaim<Line>::drain_quota(t, bin, false)) continue;\n", ""))
mutant("quota-given-up-with-slots", RECLAIM, "quotas.begin",
       ("      while (t.quota.peek() != nullptr && drain_quota(t, bin, to_spans)) continue;\n", ""))
mutant("quota-not-restored", THREAD, "quotas.revoked",
       ("    if (t.quota.peek() != nullptr) Line::Front::reconcile(t.quota.peek()->front);\n", ""))
mutant("quota-of-other-front", REVOKE, "quotas.revoked",
       ("put_back_detached(t, quota->front, bin, lists_of_quota[bin])", "put_back_detached(t, t.front, bin, lists_of_quota[bin])"))

# --- spans between source, route and pool
SUPPLY, RETURN, POOL = "heap/boundary/span_supply.hpp", "heap/spans/span_return.hpp", "box/pool/span_pool.hpp"
BIND = ("    if constexpr (Pool::kWholeSpans)\n"
        "      Route::bind(S::global.route, run.at, bin_slots(bin) * bin_size(bin), bin, t.owner);\n")
mutant("span-bound-when-others-have-it", SUPPLY, "spans.whole",
       (BIND, ""), ("    Retain::span_used(t.retain, bytes);\n", BIND + "    Retain::span_used(t.retain, bytes);\n"))
mutant("span-carved-and-not-bound", SUPPLY, "spans.carved", ("if (taken.pages != 0) bind(t, bin, taken);", ""))
CLEAR = "    Route::clear(S::global.route, span, is_large(bin) ? kPage : kGranule);\n"
mutant("span-cleared-when-others-have-it", RETURN, "spans.whole.turn",
       (CLEAR + "    count_purge(t, MitigationOf<Line>::release_span(span, bytes));\n",
        "    count_purge(t, MitigationOf<Line>::release_span(span, bytes));\n" + CLEAR))
mutant("span-moves-with-one-lock", POOL, "spans.whole",
       ("      const os::Guarded lower((&own < &other ? own : other).lock);\n"
        "      const os::Guarded upper((&own < &other ? other : own).lock);\n",
        "      const os::Guarded lower(own.lock);\n"))
mutant("span-gone-from-the-other-shelf", POOL, "spans.whole", ("      if (row == 0) continue;\n", ""))
mutant("span-moved-before-its-lock", POOL, "spans.whole",
       ("if (HZ_UNLIKELY(place != here) && place >> 8 != shard) {", "if (false) {"))

# --- the heap of one lock
REGIONS, HEAP_LOCK, SPANS = "heap/one_lock/regions.hpp", "heap/one_lock/lock.hpp", "heap/one_lock/spans.hpp"
PURGES = ("    const bool gone = HeapLock::meanwhile([&] { return os::purge(region.at(first, 0), bytes); });\n"
          "    has_left();\n")
mutant("region-pages-go-in-the-open", REGIONS, "regions.purge",
       ("    acquire(region, run);\n    ++leaving;\n",
        "    Account::used_bytes += bytes, Account::dirty_bytes -= bytes, region.dirty &= ~run;\n    ++leaving;\n"))
mutant("region-leaves-its-list-late", REGIONS, "regions.purge",
       ("    region.remove();\n    Account::dirty_bytes -= dirty;\n", "    Account::dirty_bytes -= dirty;\n"))
mutant("region-gone-and-known", REGIONS, "regions.purge",
       ("    Table::mark(address(&region), 1, Table::Kind::kGone);\n    ++leaving;", "    ++leaving;"))
mutant("region-goes-in-use", REGIONS, "regions.purge",
       ("return gone && region.empty() && region.dirty == 0 ? unmap", "return gone && region.dirty == 0 ? unmap"))
mutant("region-work-not-told", REGIONS, "regions.full",
       ("    ++leaving;\n" + PURGES, PURGES.replace("    has_left();\n", "")))
mutant("region-nobody-waits", SPANS, "regions.full", ("    HeapLock::give_way();\n    return true;", "    return false;"))
mutant("region-fork-amid-work", HEAP_LOCK, "regions.fork", ("all = locked && at_work == 0;", "all = locked;"))
mutant("region-streams-last", HEAP_LOCK, "regions.streams",
       ("      const bool streams = os::lock_streams();\n", "      const bool streams = false;\n"))
mutant("region-streams-stay", HEAP_LOCK, "regions.streams", ("    if (streams) end_of_streams();\n", ""))
mutant("region-works-on-without-lock", HEAP_LOCK, "regions.purge",
       ("    if (HZ_LIKELY(mine().fork != Fork::kUnderWay) && HZ_UNLIKELY(!lock.try_lock())) Hold::wait();\n", ""))


SOURCES = {"list": "lists", "lock": "locks", "turn": "locks", "table": "locks", "magazines": "locks", "bias": "bias",
           "heaps": "bias", "revoke": "revocation", "purger": "revocation", "lives": "lives", "fork": "lives", "guarded": "guarded", "quotas": "quotas",
           "spans": "spans", "regions": "regions", "free": "frees"}


# A lock that is held from here on.
HOLDS = re.compile(r"(const (?:os::)?(?:Guarded|Hold) \w+\()([\w.:>-]+)(\);\n\s*)")
# A declaration, which cannot stand in a branch; and what may stand before a statement.
DECLARES = re.compile(r"\s*(?!return|else|delete|if|for|while)(const |auto |[\w:<>]+[&*]? [\w\[\]]+( = |\(|\{|;))")
BEFORE = re.compile(r"(^|[;{}]|//[^\n]*)\s*$")


def condition(text):
    """What stands before a condition, the condition, and what is behind it; None if the text does not begin with one."""
    begins, depth = re.match(r"\s*(if|while) (?=\()", text), 0
    for at in range(begins.end() if begins else len(text), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[: begins.end()], text[begins.end() : at + 1], text[at + 1 :]
    return None


def switched(text, old, new, number):
    """Both of a change, of which the mutant's number chooses one; None if it is none of statements, conditions or locks."""
    conditions = condition(old), condition(new)
    if None not in conditions and conditions[0][0::2] == conditions[1][0::2]:
        (before, was, behind), becomes = conditions[0], conditions[1][1]
        return f"{before}(hz_mutant == {number} ? {becomes} : {was}){behind}"
    if (held := HOLDS.search(old)) and (old.replace(held[0], "")).split() == new.split():
        return old.replace(held[0], f"{held[1]}hz_unlocked({held[2]}, hz_mutant == {number}){held[3]}")
    if text.count(old) != 1 or not BEFORE.search(text[: text.index(old)]):
        return None
    for part in (old, new):
        bare = re.sub(r"//[^\n]*", "", part)
        if any(bare.count(a) != bare.count(b) for a, b in ("()", "{}")) or any(map(DECLARES.match, bare.split("\n"))):
            return None
        if (bare.strip() and bare.strip()[-1] not in ";}") or "//" in part.split("\n")[-1]:
            return None
    return f"if (hz_mutant == {number}) {{\n{new}\n}} else {{\n{old}\n}}\n"


@functools.cache
def source(header):
    return (ROOT / "src" / header).read_text(encoding="utf-8")


def groups(mutants):
    """Those that one program can be made of: each of them is switched on by its number, from 1. The others are alone."""
    made = []
    for one in mutants:
        _, header, scenario, pairs = one
        text = source(header)
        places = [(header, text.find(old), text.find(old) + len(old)) for old, _ in pairs]
        mine, alone = None, any(switched(text, old, new, 1) is None for old, new in pairs)
        if not alone:
            for group in made:
                apart = all(a[0] != b[0] or a[2] <= b[1] or b[2] <= a[1] for a in places for b in group["places"])
                if group["source"] == source_of(scenario) and apart and not group["alone"]:
                    mine = group
                    break
        if mine is None:
            mine = {"source": source_of(scenario), "mutants": [], "places": [], "alone": alone}
            made.append(mine)
        mine["mutants"].append(one)
        mine["places"] += places
    return made


def source_of(scenario):
    return f"{SOURCES.get(scenario.split('.')[0], 'exchanges')}.cpp"


def build(compiler, runtime, folder, group):
    """The explorer with the headers of a group; what is wrong, if it cannot be built."""
    texts, scenarios = {}, {scenario for _, _, scenario, _ in group["mutants"]}
    for number, (_, header, _, pairs) in enumerate(group["mutants"], 1):
        text = texts.get(header) or (ROOT / "src" / header).read_text(encoding="utf-8")
        for old, new in pairs:
            if text.count(old) != 1:
                return f"applies {text.count(old)} times: {old}"
            if not group["alone"]:
                new = switched(text, old, new, number)
            text = text.replace(old, new)
        texts[header] = text
    for header, text in texts.items():
        changed = folder / header
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(SWITCHES + text, encoding="utf-8")
    only = scenarios.pop() if len(scenarios) == 1 else ""
    flags = ["-std=c++20", "-O1", "-fsanitize=thread", "-fno-access-control", "-fno-exceptions", "-w", f'-DHZ_EXPLORE="{only}"', "-include", str(HERE / "threads.hpp")]
    include = [f"-I{folder}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{HERE}"]
    scenario = folder / "scenario.o"
    for command in ([*compiler, *flags, *include, "-c", str(HERE / group["source"]), "-o", str(scenario)],
                    [*compiler, str(scenario), str(runtime), "-o", str(folder / "explorer")]):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return made.stderr[:600]
    return None


def explored(folder, scenario, number, **bounds):
    """What the explorer says first of a failure, its exit code, and the seed, if it was a random execution that failed."""
    try:
        done = subprocess.run([folder / "explorer", scenario], capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, "HZ_MUTANT": str(number), **bounds})
    except subprocess.TimeoutExpired:
        return "it does not end", 0, None
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    seed = re.search(r"^HZ_EXPLORE_EXECUTIONS=0 HZ_EXPLORE_RANDOM=1 HZ_TEST_SEED=(\d+) ", done.stdout, re.MULTILINE)
    return failed[0] if failed else f"exit code {done.returncode}", done.returncode, seed and seed[1]


def by_chance(folder, scenario, number):
    """Whether random executions alone find it, and their seed finds the same one again; None if they do not find it."""
    said, _, seed = explored(folder, scenario, number, HZ_EXPLORE_EXECUTIONS="0", HZ_EXPLORE_RANDOM="100")
    if seed is None:
        return None
    again = explored(folder, scenario, number, HZ_EXPLORE_EXECUTIONS="0", HZ_EXPLORE_RANDOM="1", HZ_TEST_SEED=seed)[0]
    # What is static lies elsewhere in each process.
    return re.sub(r"\(0x\w+\)", "", said) == re.sub(r"\(0x\w+\)", "", again)


def tried(compiler, runtime, group):
    """Of each mutant of a group its name, what the explorer says of it, whether it failed as it should, and by chance, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wrong = build(compiler, runtime, folder, group)
        if wrong is not None and len(group["mutants"]) > 1:
            for one in group["mutants"]:
                yield from tried(compiler, runtime, {**group, "mutants": [one], "alone": True})
            return
        if wrong is None and not group["alone"]:
            # With no mutant switched on it is the program as it is.
            for scenario in sorted({one[2] for one in group["mutants"]}):
                said, code, _ = explored(folder, scenario, 0, HZ_EXPLORE_EXECUTIONS="50", HZ_EXPLORE_RANDOM="5")
                wrong = wrong or (f"{scenario}, without a mutant: {said}" if code != 0 else None)
        for number, (mutant_name, _, scenario, _) in enumerate(group["mutants"], 1):
            said, code, _ = (wrong, 0, None) if wrong is not None else explored(folder, scenario, number)
            if wrong is None and code == 0:  # more than the scenario's own run looks at
                said, code, _ = explored(folder, scenario, number, HZ_EXPLORE_EXECUTIONS="0", HZ_EXPLORE_RANDOM="2000")
            right, again = code == 1 and said.startswith("FAILED"), None
            if right and (again := by_chance(folder, scenario, number)) is False:
                said, right = "the seed of a random execution does not bring it back", False
            yield mutant_name, said, right, again is True


def chosen(options):
    if options.all:
        return MUTANTS
    if options.sample:
        begin = datetime.date.today().toordinal() * options.sample
        return [MUTANTS[(begin + i) % len(MUTANTS)] for i in range(options.sample)]
    known = [one for one in MUTANTS if one[0] in options.names]
    if len(known) != len(set(options.names)) or not known:
        sys.exit("mutants.py: there is no such mutant")
    return known


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runtime", required=True, type=Path)
    parser.add_argument("--compiler", nargs="+", default=["c++"])
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    assert len({one[0] for one in MUTANTS}) == len(MUTANTS)
    if gone := [name for name, header, _, pairs in MUTANTS if any(old not in source(header) for old, _ in pairs)]:
        sys.exit(f"mutants.py: what they change is not there any more: {' '.join(gone)}")
    survivors, at_random = [], 0
    some = chosen(options)
    for group in groups(some):
        for name, said, right, chance in tried(options.compiler, options.runtime, group):
            at_random += chance
            print(f"{name:32} {'caught by ' + said.removeprefix('FAILED ') if right else 'NOT CAUGHT: ' + said}", flush=True)
            if not right:
                survivors.append(name)
    print(f"{len(some) - len(survivors)} of {len(some)} mutants were caught, of {len(MUTANTS)} that there are; "
          f"{at_random} also at random, and again by their seeds")
    if survivors:
        sys.exit("not caught: " + " ".join(survivors))


if __name__ == "__main__":
    os.environ.pop("HZ_TEST_SEED", None)
    main()
