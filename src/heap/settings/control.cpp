// SPDX-License-Identifier: Apache-2.0
//
// Answers requests about a heap and its knobs, and the thread that listens: see control.hpp.
#include "heap/settings/control.hpp"

#include <errno.h>

#include "base/text.hpp"
#include "os/lock.hpp"

namespace hz {
namespace {

using os::TextInto;

struct Deed {
  const char* key;
  const char* meaning;
  Action action;
};
constexpr Deed kDeeds[] = {
    {"trim", "give back what threads cache, and every free page", Action::kTrim},
    {"purge", "give back free pages, and leave caches alone", Action::kPurge},
    {"write_stats", "write the statistics line where HZ_STATS_FILE says, or to stderr", Action::kWriteStats},
    {"write_profile", "write the profile so far to the file that HZ_PROFILE names", Action::kWriteProfile},
    {"write_heap_profile", "write the heap profile so far to the file that HZ_PROFILE_HEAP_FILE names",
     Action::kWriteHeapProfile}};

// Text that a client sent, of which nothing is known.
TextInto& shown(TextInto& text, TextView value) {
  constexpr std::size_t kMost = 100;
  for (std::size_t i = 0; i < value.size() && i < kMost; ++i)
    text.part(value[i] >= ' ' && value[i] <= '~' ? &value[i] : "?", 1);
  return text.text(value.size() > kMost ? "..." : "");
}

// A row for each key: tabs between its name, when it can be set, what is accepted, and what it is now.
void list(const Controlled& heap, TextInto& text) {
  const Options now = heap.settings();
  for (const Options::Knob& knob : Options::kKnobs) {
    const bool lacks = heap.lacks(knob.live) != nullptr;
    const char* const when = knob.live == Setting::kStartOnly ? "start" : lacks ? "none" : "live";
    text.text(knob.key).text("\t").text(when).text("\t").text(knob.accepted).text("\t");
    lacks ? text.text("-") : (knob.tell(now, text), text);
    text.text("\n");
  }
  for (const Deed& deed : kDeeds) text.text(deed.key).text("\taction\t-\t").text(deed.meaning).text("\n");
}

int act(const Controlled& heap, const Deed& deed, const TextView* value, TextInto& text) {
  if (value == nullptr) return text.text(deed.key).text(" is an action: it can be set, not read"), EPERM;
  if (!value->empty()) return text.text(deed.key).text(" takes no value"), EINVAL;
  const Outcome outcome = heap.act(deed.action);
  return text.text(outcome.text), outcome.error;
}

int set(const Controlled& heap, const Options::Knob& knob, TextView value, TextInto& text) {
  if (knob.live == Setting::kStartOnly) {
    text.text(knob.key).text(" is read at the start alone: set ").text(knob.variable);
    return text.text(" in the environment of the program"), EPERM;
  }
  const Options before = heap.settings();
  Options wanted = before;
  if (!knob.set(wanted, value)) {
    shown(text.text(knob.key).text("="), value).text(" not understood; accepted: ").text(knob.accepted);
    return EINVAL;
  }
  const Outcome outcome = heap.change(knob.live, before, wanted);
  if (outcome.error != 0) text.text(knob.key).text(" stays as it is: ").text(outcome.text);
  return outcome.error;
}

int ask_knob(const Controlled& heap, const Options::Knob& knob, const TextView* value, TextInto& text) {
  if (const char* const why = heap.lacks(knob.live))
    return text.text(knob.key).text(" is nothing here: ").text(why), ENOTSUP;
  const int error = value == nullptr ? 0 : set(heap, knob, *value, text);
  if (error == 0) knob.tell(heap.settings(), text);
  return error;
}

}  // namespace

int Control::ask(const Controlled& heap, TextView key, const TextView* value, TextInto& text) {
  if (key == "list" && value == nullptr) return list(heap, text), 0;
  for (const Options::Knob& knob : Options::kKnobs)
    if (key == knob.key) return ask_knob(heap, knob, value, text);
  for (const Deed& deed : kDeeds)
    if (key == deed.key) return act(heap, deed, value, text);
  shown(text.text("there is no key "), key).text("; list tells which there are");
  return ENOENT;
}

// --- the thread

namespace {

constexpr std::uint32_t kNever = 0;  // waited on for its time alone

// The end of the process removes the file, which must not come back.
constinit os::LockOf<os::Rank::kFile> file_lock;
constinit bool file_is_over = false, file_is_told_of = false;

bool writes_files() { return os::kept_path(os::File::kStatsFolder)[0] != 0; }

HZ_COLD void warn_of_refusal(const char* variable, int error) {
  os::Message message;
  message.text("hz: warning: ").text(variable);
  message.text(": the system refuses what thread hz-control needs, error ");
  message.decimal(static_cast<unsigned>(error)).text("\n").send();
}
HZ_COLD void warn_of_file() {
  constexpr std::size_t kShown = 400;
  const TextView path = os::kept_path(os::File::kStatsFolder);
  os::Message message;
  message.text("hz: warning: HZ_STATS_DIR=").part(path.data(), path.size() < kShown ? path.size() : kShown);
  message.text(path.size() < kShown ? "" : "...").text(": no file can be written there\n").send();
}

}  // namespace

constexpr os::OwnThread Control::kKeeper = {&Control::keep, "hz-keeper"};
constexpr os::OwnThread Control::kServer = {&Control::run, "hz-control"};

void Control::at_load(const Controlled& heap) {
  permits = heap.settings().control;
  if (permits && !os::kHasControl) {
    os::Message().text("hz: warning: HZ_CONTROL=1: control from outside is there on Linux alone\n").send();
    permits = false;
  }
  if (!permits && !writes_files()) return;
  const char* const variable = permits ? "HZ_CONTROL=1" : "HZ_STATS_DIR";
  controlled = &heap;
  // Release: pairs with start().
  state.store(kMissing, std::memory_order_release);
  if (!os::kHasControl) return void(start());
  if (!start()) return warn_of_refusal(variable, EAGAIN);
  // So that the parent of the program can ask at once. Refusals of the thread are reported here.
  constexpr unsigned kPatience = 1000;
  os::wait_at_most(word(), kStarts, kPatience);
  // Acquire: pairs with run().
  if (state.load(std::memory_order_acquire) > kStarts && refusal != 0) warn_of_refusal(variable, refusal);
}

void Control::at_exit() {
  if (state.load(std::memory_order_relaxed) == kNone || !file_lock.lock_within(kTick)) return;
  file_is_over = true;
  os::remove_stats_file();
  file_lock.unlock();
}

bool Control::start() {
  if (os::milliseconds() < not_before.load(std::memory_order_relaxed)) return false;
  std::uint32_t expected = kMissing;
  // Acquire: see what at_load() wrote.
  if (!state.compare_exchange_strong(expected, kStarts, std::memory_order_acquire, std::memory_order_relaxed))
    return false;
  if (os::start_thread(kKeeper)) return true;
  not_before.store(os::milliseconds() + kTick, std::memory_order_relaxed);
  state.store(kMissing, std::memory_order_release);
  return false;
}

void Control::begin_again() {
  file_lock.reset();
  state.store(kMissing, std::memory_order_relaxed);
}

void Control::keep() {
  controlled->begin_thread();
  if (!os::start_thread(kServer)) {
    refusal = EAGAIN;
    state.store(kEnded, std::memory_order_release);  // pairs with at_load()
    return os::wake_one(word());
  }
  for (std::uint32_t now = kStarts; now != kEnded; now = state.load(std::memory_order_relaxed))
    os::wait_on(word(), now);
  while (os::are_last_threads(2)) os::wait_at_most(&kNever, kNever, 1);  // the other one has not left yet
}

void Control::run() {
  controlled->begin_thread();
  const int left = os::leave_files();
  refusal = left != 0 || !permits ? left : os::open_control();
  const bool serves = permits && refusal == 0, writes = left == 0 && writes_files();
  // Release: pairs with at_load().
  state.store(serves || writes ? kRuns : kEnded, std::memory_order_release);
  os::wake_one(word());  // the keeper, and the thread that loads the library
  os::wake_one(word());
  if (!serves && !writes) return;
  os::LongMessage last;
  std::uint64_t written = os::microseconds() / 1000;  // a shorter life writes nothing
  do {
    const std::uint64_t now = os::microseconds() / 1000;
    if (writes && now - written >= kTick) {
      write_file(last);
      written = now;
    }
    serves ? os::serve_control(kTick, &answer) : os::wait_at_most(&kNever, kNever, kTick);
  } while (!os::are_last_threads(2));
  state.store(kEnded, std::memory_order_relaxed);
  os::wake_one(word());
}

// A line is "get KEY", "set KEY VALUE" or "set KEY". The answer is a text, and a last line with its error, or
// 0.
std::size_t Control::answer(const os::Request& request, char* out, std::size_t room) {
  constexpr std::size_t kLast = 16;  // room for it
  TextInto text(out, room - kLast);
  int error = 0;
  switch (request.client) {
    case os::Client::kStranger:
      text.text(
          "control is for root, and for the user that the process has as its real, effective and saved one");
      error = EACCES;
      break;
    case os::Client::kSilent:
      text.text("a line has to come within a second");
      error = ETIMEDOUT;
      break;
    case os::Client::kTooLong:
      text.text("a line has at most ").decimal(os::Request::kMostLine - 1).text(" bytes");
      error = EMSGSIZE;
      break;
    case os::Client::kAsks: {
      TextView value(request.line, request.length);
      const TextView verb = cut(value, ' '), key = cut(value, ' ');
      if (verb == "get" || verb == "set") {
        error = ask(*controlled, key, verb == "set" ? &value : nullptr, text);
      } else {
        shown(text, verb).text(" is neither get nor set");
        error = EINVAL;
      }
      break;
    }
  }
  TextInto end(out + text.size(), kLast);
  end.text("\n").decimal(static_cast<unsigned>(error)).text("\n");
  return text.size() + end.size();
}

void Control::write_file(os::LongMessage& last) {
  os::LongMessage now;
  controlled->compose(now);
  if (now.size() == last.size() && __builtin_memcmp(now.data(), last.data(), now.size()) == 0) return;
  const os::Guarded hold(file_lock);
  if (file_is_over) return;
  if (os::write_stats_file(now.data(), now.size())) {
    last = now;
  } else if (!file_is_told_of) {
    file_is_told_of = true;
    warn_of_file();
  }
}

}  // namespace hz
