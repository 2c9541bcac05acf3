// SPDX-License-Identifier: Apache-2.0
//
// explorer [SCENARIO...]: runs each scenario through the orders in which its threads may take their steps,
// and through the values that each of their loads may see. The code under test is what the product is made
// of, compiled with ThreadSanitizer's instrumentation: each access calls a function of this file, which
// stands in the place of the sanitizer's runtime. So no header knows of it, and a step is exactly an atomic
// access. Called by CTest, and by mutants.py for headers that are wrong.
//
//   threads   coroutines; one runs at a time, and may be left before each access to a word that threads share
//   orders    all with at most kPreemptions switches that nobody had to make; then random ones (M. Musuvathi,
//   S. Qadeer,
//             "Iterative context bounding", 2007). Words that no two threads of any execution so far had in
//             common with a write between them are no place to switch: when another is found, all begins anew
//   memory    that of C++: each word has a history, each thread a view of how much of each history it knows;
//   a load may see
//             what is not older than that, a store with release hands the view on, a load with acquire takes
//             it over, and what is sequentially consistent sees all that was before. Whatever the store
//             buffers of x86-64 do is among that, and whatever Arm does but for loads that see stores which
//             depend on them. A barrier on all threads exchanges all views. (J. Kang et al., "A promising
//             semantics", 2017, without promises.)
//   data      plain accesses that nothing orders are reported, and so is memory that was unmapped
//
// What fails prints the steps of that execution. The next run of the same program fails in the same one, for
// there is nothing that differs. A random one is made by its seed alone: what is printed runs that one again.
//   HZ_EXPLORE_EXECUTIONS  how many orders of a scenario for each number of switches, 0: none
//   HZ_EXPLORE_RANDOM      how many random executions after these, HZ_TEST_SEED: the first one's seed
#include "explorer.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "threads.hpp"

#include "base/random.hpp"
#include "os/lock.hpp"
#include "os/os.hpp"

// Of the program: what is static lies between.
extern "C" char __data_start, _end;

// Which of the mutants that were compiled into the headers is switched on: see mutants.py.
int hz_mutant = 0;
// In the place of a lock that is not taken: each time another one.
hz::os::Lock& hz_unlocked(hz::os::Lock& lock, bool is) {
  static hz::os::Lock others[256];
  static unsigned last = 0;
  return is ? others[last = (last + 1) % 256] : lock;
}

namespace hz_test::explorer {
namespace {

constexpr unsigned kMostThreads = 4, kNobody = ~0U;
constexpr unsigned kPreemptions = 2, kOldReads = 2;
constexpr std::size_t kStack = 128 * 1024, kRoom = 64 << 20, kAlignment = 4 << 20, kZeroed = 64 * 1024;
constexpr unsigned kMostSteps = 5000, kMostAccesses = 500000, kPage = 4096;

constexpr std::uintptr_t kPiece = 4;

using Clock = std::array<std::uint32_t, kMostThreads>;
using View = std::vector<std::uint16_t>;  // of a word: the oldest that may be seen

struct Known {
  View view;
  Clock clock{};

  void join(const Known& other) {
    if (view.size() < other.view.size()) view.resize(other.view.size());
    for (std::size_t i = 0; i < other.view.size(); ++i)
      if (view[i] < other.view[i]) view[i] = other.view[i];
    for (unsigned i = 0; i < kMostThreads; ++i)
      if (clock[i] < other.clock[i]) clock[i] = other.clock[i];
  }
  std::uint16_t of(unsigned word) const { return word < view.size() ? view[word] : 0; }
  void raise(unsigned word, std::uint16_t to) {
    if (view.size() <= word) view.resize(word + 1);
    if (view[word] < to) view[word] = to;
  }
};

struct Message {
  std::uint64_t value = 0;
  Known known;  // what who sees it with acquire knows
};
struct Word {
  unsigned number = 0;
  std::vector<Message> history;
};
// Of accesses to four bytes: who wrote last, and who has read since, and when.
struct Plain {
  unsigned writer = kNobody, first = 0, last = 0;
  std::uint32_t when = 0;
  bool atomic = false;
  Clock reads{};
};

enum class State : std::uint8_t { kRuns, kGaveWay, kWaits, kEnded };

struct Thread {
  std::function<void()> steps;
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  State state = State::kRuns;
  const void* waits_for = nullptr;
  bool may_be_cut = false;
  bool fresh = false;  // sees the newest of each word, until its next step
  unsigned cpu = 0;
  Known known, acquired, released;
};

struct Choice {
  unsigned taken, of;
};

// Of one execution.
std::vector<std::unique_ptr<Thread>> threads;
std::function<void()> check;
std::function<bool()> may_wait;
unsigned running = kNobody;
hz::os::LocksOfThread locks_of[kMostThreads + 1];  // the last: before and after all threads
unsigned steps, all_accesses, preemptions, old_reads;
ucontext_t home;
std::unordered_map<std::uintptr_t, Word> words;
std::unordered_map<std::uintptr_t, Plain> plain;
std::vector<std::pair<std::uintptr_t, std::uintptr_t>> unmapped;
std::map<const void*, bool> slots;  // whether somebody has it
Known consistent;                   // what sequentially consistent accesses have seen
struct Line {
  unsigned thread;
  const char* what;
  std::uintptr_t address;
  std::uint64_t value;
};
std::vector<Line> trace;
std::size_t used, reserved;  // of the room, from its start and from its end

// Of one scenario.
const char* scenario = "";
std::vector<Choice> choices;
std::size_t at;
unsigned preemptions_allowed;
bool random_choices;
std::uint64_t random_state, seed;
struct Access {
  unsigned by = 0;  // a bit for each thread
  bool written = false;
};
std::map<std::uintptr_t, Access> accesses;
std::set<std::uintptr_t> shared;
bool shared_grew;
bool refuses_barriers;

alignas(1 << 20) char* arena;

Scenario* scenarios = nullptr;

std::uint64_t next_random() {
  random_state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = random_state;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return z ^ z >> 31;
}

[[noreturn]] void fail(const char* claim, const void* where = nullptr) {
  std::printf("FAILED %s: %s", scenario, claim);
  if (where != nullptr)
    std::printf(" (%#zx)", reinterpret_cast<std::uintptr_t>(where) - reinterpret_cast<std::uintptr_t>(arena));
  std::printf(", thread %d, step %u\n", static_cast<int>(running), steps);
  if (random_choices)
    std::printf("HZ_EXPLORE_EXECUTIONS=0 HZ_EXPLORE_RANDOM=1 HZ_TEST_SEED=%llu explorer %s\n",
                static_cast<unsigned long long>(seed), scenario);
  for (const Line& line : trace)
    std::printf("  thread %u  %-10s %#8zx  %#llx\n", line.thread, line.what, line.address,
                static_cast<unsigned long long>(line.value));
  std::fflush(stdout);
  std::_Exit(1);
}

unsigned choose(unsigned n) {
  if (n == 1) return 0;
  if (random_choices) {
    // What was chosen first is what goes on as it was.
    return next_random() % 4 != 0 ? 0 : static_cast<unsigned>(next_random() % n);
  }
  if (at == choices.size()) choices.push_back({0, n});
  if (choices[at].of != n) fail("the same choices lead elsewhere");
  return choices[at++].taken;
}

bool may_run(const Thread& thread) { return thread.state == State::kRuns; }

Thread& me() { return *threads[running]; }

// Who is next; `must`: not the one that runs.
unsigned pick(bool must) {
  unsigned candidates[kMostThreads], count = 0;
  if (!must) candidates[count++] = running;
  for (unsigned i = 0; i < threads.size(); ++i)
    if ((must || i != running) && may_run(*threads[i])) candidates[count++] = i;
  if (count == 0) {
    // Who gave way goes on, if nobody else can.
    bool any = false;
    for (auto& thread : threads)
      if (thread->state == State::kGaveWay) thread->state = State::kRuns, any = true;
    if (!any) return kNobody;
    return pick(must);
  }
  if (!must && preemptions == preemptions_allowed && !random_choices) return running;
  const unsigned chosen = candidates[choose(count)];
  if (!must && chosen != running) ++preemptions;
  return chosen;
}

void switch_to(unsigned next) {
  if (next == running) return;
  ucontext_t* const from = running == kNobody ? &home : &threads[running]->context;
  running = next;
  swapcontext(from, next == kNobody ? &home : &threads[next]->context);
}

// Asked by nobody: what it looks at is no step.
bool at_rest(const std::function<bool()>& is_right) {
  const unsigned before = std::exchange(running, kNobody);
  const bool result = is_right();
  running = before;
  return result;
}

void leave(State state) {
  me().state = state;
  unsigned next = pick(true);
  if (next == kNobody && !(may_wait && at_rest(may_wait))) {
    for (auto& thread : threads)
      if (thread->state == State::kWaits) fail("a thread waits for ever", thread->waits_for);
  }
  switch_to(next);
}

void entry() {
  me().steps();
  leave(State::kEnded);
}

// Whoever gave way may find what it waits for.
void something_changed() {
  for (unsigned i = 0; i < threads.size(); ++i)
    if (i != running && threads[i]->state == State::kGaveWay) threads[i]->state = State::kRuns;
}

void say(const char* what, std::uintptr_t address, std::uint64_t value) {
  trace.push_back({running, what, address - reinterpret_cast<std::uintptr_t>(arena), value});
}

// Whether it was known before as a word that threads share; notes who has it.
bool is_shared(std::uintptr_t address, bool writes) {
  if (shared.count(address) != 0) return true;
  Access& access = accesses[address];
  access.by |= 1U << running;
  access.written |= writes;
  if (access.written && (access.by & (access.by - 1)) != 0) shared.insert(address), shared_grew = true;
  return false;
}

// Before an access to a word. What was random before, or will be, is nothing to a random execution: each word
// is a place to switch there.
void step(std::uintptr_t address, bool writes) {
  if (++steps > kMostSteps) fail("it does not come to an end");
  for (const auto& [begin, end] : unmapped)
    if (begin <= address && address < end)
      fail("memory that was unmapped is used", reinterpret_cast<void*>(address));
  if (me().may_be_cut && choose(2) != 0) leave(State::kEnded);
  if (random_choices || is_shared(address, writes)) switch_to(pick(false));
}

Word& word_at(std::uintptr_t address, std::uint64_t value) {
  const auto [place, added] = words.try_emplace(address);
  if (added) {
    place->second.number = static_cast<unsigned>(words.size() - 1);
    place->second.history.push_back({value, {}});
  }
  return place->second;
}

bool acquires(int order) { return order == 1 || order == 2 || order >= 4; }
bool releases(int order) { return order >= 3; }
constexpr int kConsistent = 5;

void race(std::uintptr_t address, std::size_t bytes, bool writes, bool atomic);

// What comes after this is not among what was handed on before.
void tick() { ++me().known.clock[running]; }

std::uint64_t seen(Word& word, const Message& message, std::uint16_t number, int order) {
  Thread& t = me();
  t.known.raise(word.number, number);
  t.acquired.join(message.known);
  if (acquires(order)) t.known.join(message.known);
  if (order == kConsistent) consistent.raise(word.number, number);
  return message.value;
}

std::uint64_t load(std::uintptr_t address, std::size_t bytes, std::uint64_t now, int order) {
  race(address, bytes, false, true);
  Word& word = word_at(address, now);
  const std::size_t newest = word.history.size() - 1;
  std::size_t oldest = me().known.of(word.number);
  if (order == kConsistent && consistent.of(word.number) > oldest) oldest = consistent.of(word.number);
  std::size_t back = 0;
  if (oldest < newest && !me().fresh &&
      (random_choices || (old_reads < kOldReads && shared.count(address) != 0))) {
    back = choose(static_cast<unsigned>(newest - oldest + 1));
    if (back != 0) ++old_reads;
  }
  me().fresh = false;
  const auto number = static_cast<std::uint16_t>(newest - back);
  say(back != 0 ? "reads old" : "reads", address, word.history[number].value);
  return seen(word, word.history[number], number, order);
}

void store(std::uintptr_t address, std::size_t bytes, std::uint64_t now, std::uint64_t value, int order,
           bool with_last) {
  race(address, bytes, true, true);
  Word& word = word_at(address, now);
  Thread& t = me();
  const auto number = static_cast<std::uint16_t>(word.history.size());
  t.known.raise(word.number, number);
  if (order == kConsistent) consistent.raise(word.number, number);
  Message message{value, releases(order) ? t.known : t.released};
  message.known.raise(word.number, number);
  if (with_last) message.known.join(word.history.back().known);
  word.history.push_back(std::move(message));
  tick();
  something_changed();
  say("writes", address, value);
}

void race(std::uintptr_t address, std::size_t bytes, bool writes, bool atomic) {
  const Clock& clock = me().known.clock;
  for (std::uintptr_t piece = address & ~(kPiece - 1); piece < address + bytes; piece += kPiece) {
    Plain& p = plain[piece];
    const unsigned first = piece < address ? static_cast<unsigned>(address - piece) : 0;
    const unsigned last = static_cast<unsigned>(std::min(address + bytes - piece, kPiece));
    const bool both_atomic = p.atomic && atomic;
    if (p.writer != kNobody && p.writer != running && !both_atomic && first < p.last && p.first < last &&
        clock[p.writer] < p.when)
      fail("nothing orders this access and a write", reinterpret_cast<void*>(address));
    if (writes) {
      for (unsigned i = 0; !atomic && i < threads.size(); ++i)
        if (i != running && last - first == kPiece && clock[i] < p.reads[i])
          fail("nothing orders this write and a read", reinterpret_cast<void*>(address));
      p = {running, first, last, clock[running], atomic, {}};
    } else if (!atomic) {
      p.reads[running] = clock[running];
    }
  }
}

// Of accesses of every kind, also of the check at the end: what goes in a circle is found.
void count_access() {
  if (++all_accesses > kMostAccesses) fail("it goes in a circle");
}

void plain_access(const void* at_address, std::size_t bytes, bool writes) {
  count_access();
  if (running == kNobody) return;
  const auto address = reinterpret_cast<std::uintptr_t>(at_address);
  const auto within = [address](const char* begin, const char* end) {
    return reinterpret_cast<std::uintptr_t>(begin) <= address &&
           address < reinterpret_cast<std::uintptr_t>(end);
  };
  if (!within(arena, arena + kRoom) && !within(&__data_start, &_end)) return;  // its own stack, and constants
  for (const auto& [begin, end] : unmapped)
    if (begin <= address && address < end) fail("memory that was unmapped is used", at_address);
  race(address, bytes, writes, false);
  if (writes) words.erase(address);
}

// --- one execution after the other

void run_once(const Scenario& s) {
  threads.clear();
  check = nullptr;
  may_wait = nullptr;
  words.clear();
  plain.clear();
  unmapped.clear();
  slots.clear();
  consistent = {};
  trace.clear();
  std::memset(arena, 0, used);
  used = reserved = 0;
  drawn = kDrawn;
  steps = all_accesses = preemptions = old_reads = 0;
  at = 0;
  running = kNobody;
  refuses_barriers = false;
  for (auto& locks : locks_of) locks = {};
  Execution execution;
  s.run(execution);
  for (auto& thread : threads) {
    thread->stack = std::make_unique<char[]>(kStack);
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack.get();
    thread->context.uc_stack.ss_size = kStack;
    makecontext(&thread->context, &entry, 0);
  }
  for (unsigned i = 0; i < threads.size(); ++i) threads[i]->known.clock[i] = 1;
  unsigned candidates = static_cast<unsigned>(threads.size());
  switch_to(choose(candidates));
  running = kNobody;
  if (check) check();
}

// To the next choices in the order; false: there are none.
bool advance() {
  choices.resize(at);
  while (!choices.empty() && choices.back().taken + 1 == choices.back().of) choices.pop_back();
  if (choices.empty()) return false;
  ++choices.back().taken;
  return true;
}

// How many executions; all that there are, but for `most`.
unsigned explore(const Scenario& s, unsigned allowed, unsigned most, bool& complete) {
  preemptions_allowed = allowed;
  random_choices = false;
  choices.clear();
  unsigned count = 0;
  for (complete = false; count < most;) {
    shared_grew = false;
    run_once(s);
    ++count;
    if (shared_grew) {
      choices.clear();
    } else if (!advance()) {
      complete = true;
      break;
    }
  }
  return count;
}

unsigned number_from(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

void run(const Scenario& s) {
  scenario = s.name;
  accesses.clear();
  shared.clear();
  const unsigned most = number_from("HZ_EXPLORE_EXECUTIONS", 1000) / s.share;
  unsigned orders = 0;
  bool complete = false;
  unsigned allowed = 0;
  for (; allowed <= kPreemptions; ++allowed) {
    orders += explore(s, allowed, most, complete);
    if (!complete) break;
  }
  random_choices = true;
  const unsigned chance = (number_from("HZ_EXPLORE_RANDOM", 200) + s.share - 1) / s.share;
  const unsigned first = number_from("HZ_TEST_SEED", 1);
  for (unsigned i = 0; i < chance; ++i) {
    random_state = seed = first + i;
    run_once(s);
  }
  std::printf("%-40s %6u executions, %s up to %u switches, %u words; %u at random\n", s.name, orders,
              complete ? "all" : "cut off", complete ? kPreemptions : allowed,
              static_cast<unsigned>(shared.size()), chance);
}

}  // namespace

void* Execution::room(std::size_t bytes, std::size_t alignment) {
  used = (used + alignment - 1) & ~(alignment - 1);
  void* const result = arena + used;
  used += bytes;
  if (used + reserved > kRoom) fail("the explorer has no room left");
  return result;
}
void Execution::thread(std::function<void()> steps_of_it) {
  auto thread = std::make_unique<Thread>();
  thread->steps = std::move(steps_of_it);
  thread->cpu = static_cast<unsigned>(threads.size());
  threads.push_back(std::move(thread));
}
void Execution::may_wait(std::function<bool()> is_right) { explorer::may_wait = std::move(is_right); }
void Execution::finally(std::function<void()> checks) { check = std::move(checks); }

void expect(bool holds, const char* claim) {
  if (!holds) fail(claim);
}
void starts_outside(const void* slot) { slots[slot] = true; }
void taken(const void* slot) {
  const auto known = slots.find(slot);
  if (known == slots.end()) fail("a slot that there is none", slot);
  if (known->second) fail("a slot is given to two", slot);
  known->second = true;
}
void given(const void* slot) { slots[slot] = false; }
std::size_t outside() {
  std::size_t count = 0;
  for (const auto& [slot, is] : slots) count += is ? 1 : 0;
  return count;
}
void on_cpu(unsigned cpu) {
  if (running != kNobody) me().cpu = cpu;
}
bool is_running() { return running != kNobody; }
unsigned self() { return running == kNobody ? 0 : running; }
void others_may_run() {
  if (running != kNobody) switch_to(pick(false));
}
void refuse_barriers() { refuses_barriers = true; }
void may_be_cut_off() { me().may_be_cut = true; }
void go_on_in_a_child() {
  for (auto& thread : threads) {
    me().known.join(thread->known);
    if (thread.get() != &me()) thread->state = State::kEnded;
  }
  say("forks", reinterpret_cast<std::uintptr_t>(arena), 0);
}

void Scenario::enlist(void (*its_run)(Execution&)) {
  run = its_run;
  next = scenarios;
  scenarios = this;
}

}  // namespace hz_test::explorer

// --- what the compiler calls for each access

using namespace hz_test::explorer;

#define HZ_PLAIN(bytes)                                                         \
  void __tsan_read##bytes(void* a) { plain_access(a, bytes, false); }           \
  void __tsan_write##bytes(void* a) { plain_access(a, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* a) { plain_access(a, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* a) { plain_access(a, bytes, true); } \
  void __tsan_read_write##bytes(void* a) { plain_access(a, bytes, true); }      \
  void __tsan_unaligned_read_write##bytes(void* a) { plain_access(a, bytes, true); }

// Memory has what was written last, so who looks at it without us sees that.
#define HZ_ATOMIC(bits, T)                                                                               \
  T __tsan_atomic##bits##_load(const volatile T* a, int order) {                                         \
    if (running == kNobody) return count_access(), *a;                                                   \
    step(reinterpret_cast<std::uintptr_t>(a), false);                                                    \
    return static_cast<T>(load(reinterpret_cast<std::uintptr_t>(a), sizeof(T), *a, order));              \
  }                                                                                                      \
  void __tsan_atomic##bits##_store(volatile T* a, T value, int order) {                                  \
    if (running == kNobody) return void(*a = value);                                                     \
    step(reinterpret_cast<std::uintptr_t>(a), *a != value);                                              \
    store(reinterpret_cast<std::uintptr_t>(a), sizeof(T), *a, value, order, false);                      \
    *a = value;                                                                                          \
  }                                                                                                      \
  static T change##bits(volatile T* a, int order, T (*next)(T, T), T value, bool writes) {               \
    const auto address = reinterpret_cast<std::uintptr_t>(a);                                            \
    count_access();                                                                                      \
    if (running != kNobody) step(address, writes);                                                       \
    const T before = *a, after = next(before, value);                                                    \
    if (running != kNobody) {                                                                            \
      Word& word = word_at(address, before);                                                             \
      seen(word, word.history.back(), static_cast<std::uint16_t>(word.history.size() - 1), order);       \
      store(address, sizeof(T), before, after, order, true);                                             \
    }                                                                                                    \
    *a = after;                                                                                          \
    return before;                                                                                       \
  }                                                                                                      \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int order) {                                      \
    return change##bits(                                                                                 \
        a, order, [](T, T x) { return x; }, v, *a != v);                                                 \
  }                                                                                                      \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int order) {                                     \
    return change##bits(                                                                                 \
        a, order, [](T b, T x) { return static_cast<T>(b + x); }, v, true);                              \
  }                                                                                                      \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int order) {                                     \
    return change##bits(                                                                                 \
        a, order, [](T b, T x) { return static_cast<T>(b - x); }, v, true);                              \
  }                                                                                                      \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int order) {                                     \
    return change##bits(                                                                                 \
        a, order, [](T b, T x) { return static_cast<T>(b & x); }, v, true);                              \
  }                                                                                                      \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int order) {                                      \
    return change##bits(                                                                                 \
        a, order, [](T b, T x) { return static_cast<T>(b | x); }, v, true);                              \
  }                                                                                                      \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T expected, T v, int order, int failed) {  \
    const auto address = reinterpret_cast<std::uintptr_t>(a);                                            \
    count_access();                                                                                      \
    if (running != kNobody) step(address, *a == expected && v != expected);                              \
    if (*a == expected) {                                                                                \
      if (running != kNobody) {                                                                          \
        Word& word = word_at(address, *a);                                                               \
        seen(word, word.history.back(), static_cast<std::uint16_t>(word.history.size() - 1), order);     \
        store(address, sizeof(T), *a, v, order, true);                                                   \
      }                                                                                                  \
      *a = v;                                                                                            \
      return expected;                                                                                   \
    }                                                                                                    \
    if (running != kNobody) {                                                                            \
      Word& word = word_at(address, *a);                                                                 \
      say("refused", address, *a);                                                                       \
      seen(word, word.history.back(), static_cast<std::uint16_t>(word.history.size() - 1), failed);      \
    }                                                                                                    \
    return *a;                                                                                           \
  }                                                                                                      \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* expected, T v, int order, int f) { \
    const T wanted = *expected;                                                                          \
    *expected = __tsan_atomic##bits##_compare_exchange_val(a, wanted, v, order, f);                      \
    return *expected == wanted ? 1 : 0;                                                                  \
  }                                                                                                      \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* expected, T v, int order, int f) {   \
    return __tsan_atomic##bits##_compare_exchange_strong(a, expected, v, order, f);                      \
  }

extern "C" {
HZ_PLAIN(1)
HZ_PLAIN(2)
HZ_PLAIN(4)
HZ_PLAIN(8)
HZ_PLAIN(16)
HZ_ATOMIC(8, std::uint8_t)
HZ_ATOMIC(16, std::uint16_t)
HZ_ATOMIC(32, std::uint32_t)
HZ_ATOMIC(64, std::uint64_t)

void __tsan_read_range(void* a, std::size_t bytes) { plain_access(a, bytes, false); }
void __tsan_write_range(void* a, std::size_t bytes) { plain_access(a, bytes, true); }
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}

void __tsan_atomic_thread_fence(int order) {
  if (running == kNobody) return;
  Thread& t = me();
  if (acquires(order)) t.known.join(t.acquired);
  if (order == kConsistent) {
    t.known.join(consistent);
    consistent.join(Known{t.known.view, {}});
  }
  if (!releases(order)) return;
  t.released = t.known;
  tick();
}
void __tsan_atomic_signal_fence(int) {}
}

// --- what the code under test asks of a system

namespace hz::os {

LocksOfThread& PerThread<LocksOfThread>::mine() {
  using namespace hz_test::explorer;
  return locks_of[running == kNobody ? kMostThreads : running];
}

// The process, as far as it is asked about here.
// Its zeros are as if the caller had written the first of them: who finds it elsewhere has to come after
// that. Of much, what begins it is zero, for it is seldom that a scenario looks at more.
void* map(std::size_t bytes, std::size_t alignment, Use) {
  void* const at_address = Execution().room(bytes, alignment);
  std::memset(at_address, 0, std::min(bytes, kZeroed));
  plain_access(at_address, bytes < kPage ? bytes : kPage, true);
  return at_address;
}
bool unmap(void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  unmapped.emplace_back(begin, begin + bytes);
  return true;
}
bool forbid_huge_pages(void*, std::size_t) { return true; }
// From the end of the room, of which only what is made usable is written to.
void* reserve(std::size_t bytes, std::size_t alignment) {
  reserved = (reserved + bytes + alignment - 1) & ~(alignment - 1);
  if (used + reserved > kRoom) fail("the explorer has no room left");
  unmap(arena + kRoom - reserved, bytes);
  return arena + kRoom - reserved;
}
bool commit(void* at, std::size_t bytes) {
  others_may_run();
  std::memset(at, 0, bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(at), end = begin + bytes;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> left;
  for (const auto& [from, to] : unmapped) {
    if (from < begin) left.emplace_back(from, std::min(to, begin));
    if (to > end) left.emplace_back(std::max(from, end), to);
  }
  unmapped = std::move(left);
  return true;
}
bool forbid(void* at, std::size_t bytes) {
  others_may_run();
  return unmap(at, bytes);
}
std::uint64_t random_word() { return drawn; }
void random_bytes(void* out, std::size_t bytes) {
  Random random(random_word());  // the same in each execution
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(out)[i] = static_cast<unsigned char>(random.next());
}
bool create_exit_hook(void (*)(void*), unsigned*) { return true; }
void renew_random() {}
bool has_one_thread() { return seems_alone; }
bool is_mapped(void* at, std::size_t) {
  for (const auto& [begin, end] : unmapped)
    if (begin <= reinterpret_cast<std::uintptr_t>(at) && reinterpret_cast<std::uintptr_t>(at) < end)
      return false;
  return true;
}
std::size_t page_bytes() { return kPage; }
unsigned current_cpu() { return running == kNobody ? 0 : me().cpu; }
std::uint64_t process_id() { return 1; }
std::uint64_t milliseconds() { return steps; }
std::uint64_t microseconds() { return steps; }

// Only an address is asked for: between the look at the word and the sleep nothing happens.
void wait_on(const std::uint32_t* word, std::uint32_t while_value) {
  step(reinterpret_cast<std::uintptr_t>(word), false);
  if (*word != while_value) return;
  me().waits_for = word;
  say("sleeps", reinterpret_cast<std::uintptr_t>(word), while_value);
  leave(State::kWaits);
}
void wake_one(const std::uint32_t* word) {
  for (auto& thread : threads) {
    if (thread->state != State::kWaits || thread->waits_for != word) continue;
    thread->state = State::kRuns;
    return;
  }
}
void give_way() {
  me().fresh = true;
  leave(State::kGaveWay);
}
void wait_at_most(const std::uint32_t*, std::uint32_t, unsigned) { give_way(); }

// All see what the caller has written, and the caller what all have.
bool barrier_on_all_threads() {
  if (refuses_barriers) return false;
  if (running == kNobody) return true;
  for (auto& thread : threads) me().known.join(thread->known);
  for (unsigned i = 0; i < threads.size(); ++i) {
    threads[i]->known.join(me().known);
    ++threads[i]->known.clock[i];
  }
  say("barrier", reinterpret_cast<std::uintptr_t>(arena), 0);
  return true;
}
void write_error(const char* text, std::size_t length) { std::fwrite(text, 1, length, stdout); }
void abort_process() { fail("the code under test gave up"); }
std::uint64_t thread_id() { return self(); }

}  // namespace hz::os

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  arena = static_cast<char*>(std::aligned_alloc(kAlignment, kRoom));
  std::memset(arena, 0, kRoom);
  hz_mutant = static_cast<int>(number_from("HZ_MUTANT", 0));
  unsigned ran = 0;
  for (const Scenario* s = scenarios; s != nullptr; s = s->next) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i)
      wanted |= std::strncmp(s->name, arguments[i], std::strlen(arguments[i])) == 0;
    if (!wanted) continue;
    run(*s);
    ++ran;
  }
  if (ran == 0) std::printf("there is no such scenario\n");
  return ran == 0 ? 2 : 0;
}
