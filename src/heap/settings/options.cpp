// SPDX-License-Identifier: Apache-2.0
//
// Reads and formats the knobs, and has their table: see options.hpp. Called once, when the heap opens, and
// when a knob is set later.
#include "heap/settings/options.hpp"

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "os/message.hpp"

namespace hz {
namespace {

constexpr const char* kList = "HZ_OPTIONS";
constexpr TextView kPrefix = "HZ_";
constexpr unsigned kMostMistyped = 2;  // letters

constexpr unsigned kNoUnit = 64;
constexpr std::size_t kMostCache = 4 * kGiB;
constexpr std::size_t kLeastLimit = kMiB;
constexpr std::size_t kMostLimit = 16384 * kGiB;
constexpr std::size_t kInterval = 512 * kKiB, kMostInterval = kGiB;  // between samples of the heap profile
constexpr std::size_t kMostSample = 1'000'000'000;
constexpr TextView kHeapProfileFile = "hakozuna.%p.heap";

unsigned shift_of(char unit) {
  const int lower = unit | 0x20;
  return lower == 'k' ? 10 : lower == 'm' ? 20 : lower == 'g' ? 30 : kNoUnit;
}
// Bytes, with or without a unit.
bool parse_size(TextView text, std::size_t low, std::size_t high, std::size_t& out) {
  std::size_t n = 0;
  if (!number(text, high, n) || text.size() > 1) return false;
  const unsigned shift = text.empty() ? 0 : shift_of(text[0]);
  if (shift == kNoUnit || n > high >> shift || n << shift < low) return false;
  out = n << shift;
  return true;
}
// A size, or per cent. Less than a MiB is no limit a program starts under, but a forgotten unit.
bool parse_limit(TextView text, MemoryLimit& out) {
  std::size_t n = 0;
  if (!text.empty() && text.back() == '%') {
    text.remove_suffix(1);
    if (!parse(text, 1, 100, n)) return false;
    out = {.bytes = 0, .percent = static_cast<unsigned>(n), .given = true};
    return true;
  }
  if (!parse_size(text, 0, kMostLimit, n) || (n != 0 && n < kLeastLimit)) return false;
  out = {.bytes = n, .percent = 0, .given = true};
  return true;
}

using Text = os::TextInto;

// Words in the order of the type's values.
constexpr const char* kYesOrNo[] = {"0", "1"};
constexpr const char* kStats[] = {"0", "1", "json"};
constexpr const char* kOnInvalid[] = {"abort", "report"};
constexpr const char* kDeepBind[] = {"clear", "keep"};
constexpr const char* kHugePages[] = {"auto", "never", "always"};
constexpr const char* kPolicies[] = {"frozen", "sizes", "observe", "learn"};

template <class T, std::size_t kCount>
bool choose(TextView value, const char* const (&words)[kCount], T& out) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (value == words[i]) return out = static_cast<T>(i), true;
  return false;
}

// A knob that is one member of Options, which is a word of a list, or a number.
template <auto kMember, const auto& kWords>
bool set_word(Options& o, TextView value) {
  return choose(value, kWords, o.*kMember);
}
template <auto kMember, const auto& kWords>
void tell_word(const Options& o, Text& text) {
  text.text(kWords[static_cast<unsigned>(o.*kMember)]);
}
template <auto kMember>
void tell_number(const Options& o, Text& text) {
  text.decimal(o.*kMember);
}

bool set_stats(Options& o, TextView value) {
  const bool chosen = choose(value, kStats, o.stats);
  o.stats_said |= chosen;
  return chosen;
}
constexpr TextView kAuto = "auto";
bool set_thread_cache(Options& o, TextView value) {
  if (value == kAuto) return o.thread_cache = 0, true;
  return parse_size(value, 1, kMostCache, o.thread_cache);
}
void tell_thread_cache(const Options& o, Text& text) {
  o.thread_cache == 0 ? text.part(kAuto.data(), kAuto.size()) : text.decimal(o.thread_cache);
}
bool set_retain(Options& o, TextView value) { return parse(value, 100, 1000, o.retain); }
bool set_retain_floor(Options& o, TextView value) { return parse_size(value, 0, kMostCache, o.retain_floor); }

bool set_preset(Options& o, TextView value) {
  if (value.empty() || value.size() >= sizeof o.preset) return false;
  copy_bytes(o.preset, value.data(), value.size());
  o.preset[value.size()] = 0;
  return true;
}
void tell_preset(const Options& o, Text& text) { text.text(o.preset[0] == 0 ? "none" : o.preset); }

template <os::File kFile>
void tell_path(const Options&, Text& text) {
  const char* const path = os::kept_path(kFile);
  text.text(path[0] == 0 ? "none" : path);
}
template <os::File kFile>
bool set_path(Options&, TextView value) {
  return os::keep_path(kFile, value.data(), value.size());
}
bool set_stats_file(Options& o, TextView value) {
  const bool kept = os::keep_path(os::File::kStatistics, value.data(), value.size());
  o.stats_file_said |= kept;
  return kept;
}
bool set_bound(TextView value, std::size_t low, std::size_t high, unsigned& out) {
  std::size_t n = 0;
  const bool is = parse(value, low, high, n);
  if (is) out = static_cast<unsigned>(n);
  return is;
}
template <auto kMember, std::size_t kLow, std::size_t kHigh>
bool set_cap(Options& o, TextView value) {
  return set_bound(value, kLow, kHigh, o.cap.*kMember);
}
template <auto kMember>
void tell_cap(const Options& o, Text& text) {
  text.decimal(o.cap.*kMember);
}
bool set_learn_cache(Options& o, TextView value) { return parse_size(value, 1, kMostCache, o.cap.cache); }
template <auto kMember>
bool set_limit(Options& o, TextView value) {
  return parse_limit(value, o.*kMember);
}
template <auto kMember>
void tell_limit(const Options& o, Text& text) {
  const MemoryLimit& limit = o.*kMember;
  limit.percent == 0 ? text.decimal(limit.bytes) : text.decimal(limit.percent).text("%");
}

// Bytes between samples, or whether.
bool set_heap_profile(Options& o, TextView value) {
  if (!parse_size(value, 0, kMostInterval, o.heap_profile)) return false;
  if (o.heap_profile == 1) o.heap_profile = kInterval;
  return o.heap_profile_said = true;
}
bool set_guard_sample(Options& o, TextView value) { return parse(value, 0, kMostSample, o.guard_sample); }
bool set_heap_profile_file(Options& o, TextView value) {
  const bool kept = os::keep_path(os::File::kHeapProfile, value.data(), value.size());
  o.heap_profile_file_said |= kept;
  return kept;
}

// --- what is not understood

constexpr std::size_t kMostOfAName = 100;
std::size_t shown(TextView text, std::size_t most = 150) { return text.size() < most ? text.size() : most; }
// What follows is the list of what is accepted; there is room for it, however long the rest is.
os::Message& begin_warning(os::Message& message, TextView name, TextView value) {
  message.text("hz: warning: ")
      .part(name.data(), shown(name, kMostOfAName))
      .text("=")
      .part(value.data(), shown(value));
  return message.text(shown(value) < value.size() ? "..." : "").text(" not understood; accepted:");
}
// Separate functions: a message takes 700 bytes of the stack.
HZ_COLD void warn_of_value(const Options::Knob& knob, TextView value) {
  os::Message message;
  begin_warning(message, knob.variable, value).text(" ").text(knob.accepted).text("\n").send();
}
HZ_COLD void warn_of_key(TextView key) {
  os::Message message;
  begin_warning(message, kList, key);
  for (const Options::Knob& knob : Options::kKnobs) message.text(" ").text(knob.key);
  message.text("\n").send();
}
// The value stays untold: the variable may be another product's, and hold a secret.
HZ_COLD void warn_of_variable(TextView name, const char* meant) {
  os::Message message;
  message.text("hz: warning: ").part(name.data(), name.size());
  message.text(" not understood; did you mean ").text(meant).text("?\n").send();
}

// --- one after the other

void apply(Options& o, const Options::Knob& knob, TextView value) {
  if (!knob.set(o, value)) warn_of_value(knob, value);
}

// key:value,key:value
void read_list(Options& o, TextView list) {
  while (!list.empty()) {
    const TextView item = cut(list, ',');
    TextView value = item;
    TextView key = cut(value, ':');
    if (key == "profile") key = "preset";  // as published
    const Options::Knob* found = nullptr;
    for (const Options::Knob& knob : Options::kKnobs) {
      if (key == knob.key) found = &knob;
    }
    if (found != nullptr) {
      apply(o, *found, value);
    } else if (!item.empty()) {
      warn_of_key(key);
    }
  }
}

// Returns true if at most kMost letters of one are to be changed, dropped or added to make it the other.
template <unsigned kMost>
bool resembles(TextView one, TextView other) {
  while (!one.empty() && !other.empty() && one[0] == other[0]) one.remove_prefix(1), other.remove_prefix(1);
  if (one.empty() || other.empty()) return one.size() + other.size() <= kMost;
  if constexpr (kMost == 0) {
    return false;
  } else {
    TextView rest = one, others = other;  // substr() throws
    rest.remove_prefix(1), others.remove_prefix(1);
    return resembles<kMost - 1>(rest, others) || resembles<kMost - 1>(rest, other) ||
           resembles<kMost - 1>(one, others);
  }
}

// Warns of a variable that is none of ours, if it resembles one: not again where the parent process was
// started with it and with the entry that loaded the same heap, nullptr if none did.
void check_name(const char* entry, const char* preload) {
  if (!begins_with(entry, kPrefix)) return;
  TextView rest = entry;
  const TextView name = cut(rest, '=');
  const char* meant = resembles<kMostMistyped>(name, kList) ? kList : nullptr;
  for (const Options::Knob& knob : Options::kKnobs) {
    if (name == knob.variable) return;
    if (meant == nullptr && resembles<kMostMistyped>(name, knob.variable)) meant = knob.variable;
  }
  if (meant == nullptr || name == kList) return;
  if (preload == nullptr || !os::parent_was_given(preload) || !os::parent_was_given(entry))
    warn_of_variable(name, meant);
}

}  // namespace

void Options::read() {
  os::Environment environment;
  if (const char* list = environment.value_of(kList)) read_list(*this, list);
  for (const Knob& knob : kKnobs) {
    if (const char* value = environment.value_of(knob.variable)) apply(*this, knob, value);
  }
  if (stats_file_said && !stats_said) stats = StatsFormat::kText;
  if (heap_profile_file_said && !heap_profile_said) heap_profile = kInterval;
  if (heap_profile != 0) keep_heap_profile_file();
  const char* preload = environment.value_of(os::kPreload);
  if (preload != nullptr) preload -= TextView(os::kPreload).size() + 1;  // from the value to its entry
  environment.rewind();
  while (const char* entry = environment.next()) check_name(entry, preload);
}

void Options::keep_heap_profile_file() {
  if (os::kept_path(os::File::kHeapProfile)[0] == 0)
    os::keep_path(os::File::kHeapProfile, kHeapProfileFile.data(), kHeapProfileFile.size());
}

HZ_COLD void Options::warn_of_preset(const char* line) const {
  os::Message message;
  message.text("hz: warning: line ").text(line).text(" has no preset ").text(preset).text("\n").send();
}

namespace {
HZ_COLD void warn_of_samples(const char* line, const char* what) {
  os::Message().text("hz: warning: line ").text(line).text(what).text(" ignored\n").send();
}
}  // namespace

// Separate functions for warnings: a message takes 700 bytes of the stack.
HZ_COLD void Options::warn_of_lacks(const char* line, const Preset* found) const {
  if (found == nullptr && preset[0] != 0) warn_of_preset(line);
  if (heap_profile != 0) warn_of_samples(line, " keeps no heap profile; HZ_PROFILE_HEAP");
  if (guard_sample != 0) warn_of_samples(line, " has no guarded pages; HZ_GUARD_SAMPLE");
}

constexpr Options::Knob Options::kKnobs[27] = {
    {"stats", "HZ_STATS", "0, 1, json", "count operations and print one line at exit", set_stats,
     tell_word<&Options::stats, kStats>},
    {"stats_file", "HZ_STATS_FILE", "a path of up to 1000 bytes; %p in it is the process's number",
     "where the statistics line goes instead of stderr", set_stats_file, tell_path<os::File::kStatistics>},
    {"stats_dir", "HZ_STATS_DIR", "a path of up to 1000 bytes",
     "the folder in which a thread of its own writes the statistics line, once a second",
     set_path<os::File::kStatsFolder>, tell_path<os::File::kStatsFolder>},
    {"control", "HZ_CONTROL", "0, 1", "permits hz ctl to ask and set from outside, by a thread of its own",
     set_word<&Options::control, kYesOrNo>, tell_word<&Options::control, kYesOrNo>},
    {"on_invalid", "HZ_ON_INVALID", "abort, report", "what follows the report of a bad pointer",
     set_word<&Options::report_only, kOnInvalid>, tell_word<&Options::report_only, kOnInvalid>,
     Setting::kOnInvalid},
    {"thread_cache", "HZ_THREAD_CACHE", "auto, 1 to 4G", "bytes that one thread's bins may hold",
     set_thread_cache, tell_thread_cache, Setting::kThreadCache},
    {"background", "HZ_BACKGROUND", "0, 1",
     "lets a thread of its own return memory while the program is idle",
     set_word<&Options::background, kYesOrNo>, tell_word<&Options::background, kYesOrNo>},
    {"retain", "HZ_RETAIN", "100 to 1000",
     "how much memory may be kept, in per cent of the recent peak of live bytes", set_retain,
     tell_number<&Options::retain>, Setting::kRetain},
    {"retain_floor", "HZ_RETAIN_FLOOR", "0 to 4G", "free bytes that may stay in any case", set_retain_floor,
     tell_number<&Options::retain_floor>, Setting::kRetainFloor},
    {"limit_soft", "HZ_LIMIT_SOFT", "0, 1M to 16384G, 1% to 100%",
     "return caches and purge before the heap grows past it; 0: never", set_limit<&Options::limit_soft>,
     tell_limit<&Options::limit_soft>, Setting::kLimitSoft},
    {"limit_hard", "HZ_LIMIT_HARD", "0, 1M to 16384G, 1% to 100%", "NULL and ENOMEM past it; 0: no limit",
     set_limit<&Options::limit_hard>, tell_limit<&Options::limit_hard>, Setting::kLimitHard},
    {"thp", "HZ_THP", "auto, never, always",
     "lets the program's memory lie on transparent huge pages; auto: as the system says",
     set_word<&Options::huge_pages, kHugePages>, tell_word<&Options::huge_pages, kHugePages>},
    {"name_mappings", "HZ_NAME_MAPPINGS", "0, 1",
     "names mappings, so that other tools can tell which are the heap's",
     set_word<&Options::name_mappings, kYesOrNo>, tell_word<&Options::name_mappings, kYesOrNo>},
    {"preset", "HZ_PRESET", "balanced, fast, small, remote, or a name on the line's page",
     "a set of values that the line offers", set_preset, tell_preset},
    {"policy", "HZ_POLICY", "frozen, sizes, observe, learn",
     "sizes: gives sizes that waste much a class; observe: notes sizes and times; learn: acts on both",
     set_word<&Options::learning, kPolicies>, tell_word<&Options::learning, kPolicies>},
    {"size_profile", "HZ_PROFILE", "a path of up to 1000 bytes; %p in it is the process's number",
     "what an observing heap writes when the process exits, and what any other starts from",
     set_path<os::File::kProfile>, tell_path<os::File::kProfile>},
    {"learn_classes", "HZ_LEARN_CLASSES", "0 to 5", "spare size classes that the heap may deal out",
     set_cap<&Cap::classes, 0, kSpares>, tell_cap<&Cap::classes>, Setting::kLearning},
    {"learn_cache", "HZ_LEARN_CACHE", "1 to 4G",
     "bytes that the bins of a thread may hold in any case while a learning heap finds it calm",
     set_learn_cache, tell_cap<&Cap::cache>, Setting::kLearning},
    {"learn_retain", "HZ_LEARN_RETAIN", "100 to 1000",
     "as HZ_RETAIN, while a learning heap finds the process calm", set_cap<&Cap::retain, 100, 1000>,
     tell_cap<&Cap::retain>, Setting::kLearning},
    {"learn_looks", "HZ_LEARN_LOOKS", "0 to 4096",
     "spans that a calm learning heap looks through for free pages whenever it maps a new one",
     set_cap<&Cap::looks, 0, 4096>, tell_cap<&Cap::looks>, Setting::kLearning},
    {"learn_busy", "HZ_LEARN_BUSY", "0 to 1024",
     "1024ths of its time that a thread has to spend in the allocator's slow paths to be given more memory",
     set_cap<&Cap::busy, 0, 1024>, tell_cap<&Cap::busy>, Setting::kLearning},
    {"learn_purger", "HZ_LEARN_PURGER", "0 to 1024",
     "1024ths of a processor for which the purger of a learning heap may scan without result; 0: any",
     set_cap<&Cap::purger, 0, 1024>, tell_cap<&Cap::purger>, Setting::kLearning},
    {"profile_heap", "HZ_PROFILE_HEAP", "0, 1, 2 to 1G",
     "bytes that are allocated between two samples of the heap profile, on average; 1: 512K; 0: none is kept",
     set_heap_profile, tell_number<&Options::heap_profile>, Setting::kHeapProfile},
    {"profile_heap_file", "HZ_PROFILE_HEAP_FILE",
     "a path of up to 1000 bytes; %p in it is the process's number",
     "where the heap profile is written when the process exits", set_heap_profile_file,
     tell_path<os::File::kHeapProfile>},
    {"guard_sample", "HZ_GUARD_SAMPLE", "0 to 1000000000",
     "one allocation in so many lies between inaccessible pages, on one that becomes inaccessible when it is "
     "freed; 0: none",
     set_guard_sample, tell_number<&Options::guard_sample>, Setting::kGuardSample},
    {"redirect", "HZ_REDIRECT", "0, 1",
     "redirects the malloc of Windows' C runtimes, in the DLL that does so",
     set_word<&Options::redirect, kYesOrNo>, tell_word<&Options::redirect, kYesOrNo>},
    {"deepbind", "HZ_DEEPBIND", "clear, keep",
     "clear: dlopen clears RTLD_DEEPBIND, and dlsym finds our malloc in libraries, so that all share the "
     "program's heap",
     set_word<&Options::keep_deepbind, kDeepBind>, tell_word<&Options::keep_deepbind, kDeepBind>},
};

}  // namespace hz
