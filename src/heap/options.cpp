// SPDX-License-Identifier: Apache-2.0
//
// How the knobs are read, and the table of them: see options.hpp. Called once, when the heap opens.
#include "heap/options.hpp"

#include <initializer_list>

#include "base/text.hpp"
#include "os/message.hpp"

namespace hz {
namespace {

constexpr const char* kList = "HZ_OPTIONS";
constexpr std::string_view kPrefix = "HZ_";
// Beginnings of what `hz`, the lab and the tests tell each other: not ours, and nothing is wrong with them.
constexpr std::string_view kOfOthers[] = {"HZ_BUILD_DIR=", "HZ_LAB_", "HZ_TEST_", "HZ_UNIT_"};

constexpr unsigned kNoUnit = 64;
constexpr std::size_t kMostCache = 4 * kGiB;
constexpr std::size_t kLeastLimit = kMiB;
constexpr std::size_t kMostLimit = 16384 * kGiB;

unsigned shift_of(char unit) {
  const int lower = unit | 0x20;
  return lower == 'k' ? 10 : lower == 'm' ? 20 : lower == 'g' ? 30 : kNoUnit;
}
// Bytes, with or without a unit.
bool parse_size(std::string_view text, std::size_t low, std::size_t high, std::size_t& out) {
  std::size_t n = 0;
  if (!number(text, high, n) || text.size() > 1) return false;
  const unsigned shift = text.empty() ? 0 : shift_of(text[0]);
  if (shift == kNoUnit || n > high >> shift || n << shift < low) return false;
  out = n << shift;
  return true;
}
// A size, or per cent. Less than a MiB is no limit a program starts under, but a forgotten unit.
bool parse_limit(std::string_view text, MemoryLimit& out) {
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

// `words` in the order of the type's values.
template <class T>
bool choose(std::string_view value, std::initializer_list<const char*> words, T& out) {
  for (const char* const& word : words)
    if (value == word) return out = static_cast<T>(&word - words.begin()), true;
  return false;
}
bool set_stats(Options& o, std::string_view value) {
  const bool chosen = choose(value, {"0", "1", "json"}, o.stats);
  o.stats_said |= chosen;
  return chosen;
}
bool set_on_invalid(Options& o, std::string_view value) {
  return choose(value, {"abort", "report"}, o.report_only);
}
bool set_background(Options& o, std::string_view value) { return choose(value, {"0", "1"}, o.background); }
bool set_name_mappings(Options& o, std::string_view value) {
  return choose(value, {"0", "1"}, o.name_mappings);
}
bool set_redirect(Options& o, std::string_view value) { return choose(value, {"0", "1"}, o.redirect); }
bool set_huge_pages(Options& o, std::string_view value) {
  return choose(value, {"auto", "never", "always"}, o.huge_pages);
}
bool set_thread_cache(Options& o, std::string_view value) {
  return parse_size(value, 1, kMostCache, o.thread_cache);
}
bool set_retain(Options& o, std::string_view value) { return parse(value, 100, 1000, o.retain); }

bool set_preset(Options& o, std::string_view value) {
  if (value.empty() || value.size() >= sizeof o.preset) return false;
  __builtin_memcpy(o.preset, value.data(), value.size());
  o.preset[value.size()] = 0;
  return true;
}
bool set_stats_file(Options& o, std::string_view value) {
  const bool kept = os::keep_path(os::File::kStatistics, value.data(), value.size());
  o.stats_file_said |= kept;
  return kept;
}
bool set_policy(Options& o, std::string_view value) {
  return choose(value, {"frozen", "observe", "learn"}, o.learning);
}
bool set_bound(std::string_view value, std::size_t low, std::size_t high, unsigned& out) {
  std::size_t n = 0;
  const bool is = parse(value, low, high, n);
  if (is) out = static_cast<unsigned>(n);
  return is;
}
bool set_learn_classes(Options& o, std::string_view value) {
  return set_bound(value, 0, kSpares, o.cap.classes);
}
bool set_learn_cache(Options& o, std::string_view value) {
  return parse_size(value, 1, kMostCache, o.cap.cache);
}
bool set_learn_retain(Options& o, std::string_view value) {
  return set_bound(value, 100, 1000, o.cap.retain);
}
bool set_learn_looks(Options& o, std::string_view value) { return set_bound(value, 0, 4096, o.cap.looks); }
bool set_learn_busy(Options& o, std::string_view value) { return set_bound(value, 0, 1024, o.cap.busy); }
bool set_learn_purger(Options& o, std::string_view value) { return set_bound(value, 0, 1024, o.cap.purger); }
bool set_profile(Options&, std::string_view value) {
  return os::keep_path(os::File::kProfile, value.data(), value.size());
}
bool set_limit_soft(Options& o, std::string_view value) { return parse_limit(value, o.limit_soft); }
bool set_limit_hard(Options& o, std::string_view value) { return parse_limit(value, o.limit_hard); }

// --- what is not understood

std::size_t shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  return text.size() < kMost ? text.size() : kMost;
}
// What follows is the list of what is accepted; there is room for it, however long the rest is.
os::Message& begin_warning(os::Message& message, std::string_view name, std::string_view value) {
  message.text("hz: warning: ").part(name.data(), shown(name)).text("=").part(value.data(), shown(value));
  return message.text(shown(value) < value.size() ? "..." : "").text(" not understood; accepted:");
}
// Functions of their own: a message takes 700 bytes of the stack.
HZ_COLD void warn_of_value(const Options::Knob& knob, std::string_view value) {
  os::Message message;
  begin_warning(message, knob.variable, value).text(" ").text(knob.accepted).text("\n").send();
}
HZ_COLD void warn_of_key(std::string_view key) {
  os::Message message;
  begin_warning(message, kList, key);
  for (const Options::Knob& knob : Options::kKnobs) message.text(" ").text(knob.key);
  message.text("\n").send();
}
HZ_COLD void warn_of_variable(std::string_view name, std::string_view value) {
  os::Message message;
  begin_warning(message, name, value);
  for (const Options::Knob& knob : Options::kKnobs) message.text(" ").text(knob.variable);
  message.text(" ").text(kList).text("\n").send();
}

// --- one after the other

void apply(Options& o, const Options::Knob& knob, std::string_view value) {
  if (!knob.set(o, value)) warn_of_value(knob, value);
}

// key:value,key:value
void read_list(Options& o, std::string_view list) {
  while (!list.empty()) {
    const std::string_view item = cut(list, ',');
    std::string_view value = item;
    std::string_view key = cut(value, ':');
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

void name_unknown(std::string_view entry) {
  if (!begins_with(entry, kPrefix)) return;
  for (const std::string_view theirs : kOfOthers) {
    if (begins_with(entry, theirs)) return;
  }
  std::string_view value = entry;
  const std::string_view name = cut(value, '=');
  bool known = name == kList;
  for (const Options::Knob& knob : Options::kKnobs) known = known || name == knob.variable;
  if (!known) warn_of_variable(name, value);
}

}  // namespace

Options Options::read() {
  Options options;
  os::Environment environment;
  if (const char* list = environment.value_of(kList)) read_list(options, list);
  for (const Knob& knob : kKnobs) {
    if (const char* value = environment.value_of(knob.variable)) apply(options, knob, value);
  }
  if (options.stats_file_said && !options.stats_said) options.stats = StatsFormat::kText;
  environment.rewind();
  while (const char* entry = environment.next()) name_unknown(entry);
  return options;
}

HZ_COLD void Options::warn_of_preset(const char* line) const {
  os::Message message;
  message.text("hz: warning: line ").text(line).text(" has no preset ").text(preset).text("\n").send();
}

constexpr Options::Knob Options::kKnobs[20] = {
    {"stats", "HZ_STATS", "0, 1, json", "count operations and print one line at exit", set_stats},
    {"stats_file", "HZ_STATS_FILE", "a path of up to 1000 bytes; %p in it is the process's number",
     "where the statistics line goes instead of stderr", set_stats_file},
    {"on_invalid", "HZ_ON_INVALID", "abort, report", "what follows the report of a bad pointer",
     set_on_invalid},
    {"thread_cache", "HZ_THREAD_CACHE", "1 to 4G", "bytes that one thread's bins may hold", set_thread_cache},
    {"background", "HZ_BACKGROUND", "0, 1",
     "whether a thread of its own may return memory while the program is idle", set_background},
    {"retain", "HZ_RETAIN", "100 to 1000",
     "how much memory may be kept, in per cent of the recent peak of live bytes", set_retain},
    {"limit_soft", "HZ_LIMIT_SOFT", "0, 1M to 16384G, 1% to 100%",
     "return caches and purge before the heap grows past it; 0: never", set_limit_soft},
    {"limit_hard", "HZ_LIMIT_HARD", "0, 1M to 16384G, 1% to 100%", "NULL and ENOMEM past it; 0: no limit",
     set_limit_hard},
    {"thp", "HZ_THP", "auto, never, always",
     "whether the program's memory may lie on transparent huge pages; auto: as the system says",
     set_huge_pages},
    {"name_mappings", "HZ_NAME_MAPPINGS", "0, 1",
     "whether mappings are named, so that other tools can tell which are the heap's", set_name_mappings},
    {"preset", "HZ_PRESET", "a name on the line's page", "a set of values that the line offers", set_preset},
    {"policy", "HZ_POLICY", "frozen, observe, learn",
     "whether the heap watches which sizes the program asks for, and gives those that waste much a class",
     set_policy},
    {"size_profile", "HZ_PROFILE", "a path of up to 1000 bytes; %p in it is the process's number",
     "what an observing heap writes when the process exits, and what any other starts from", set_profile},
    {"learn_classes", "HZ_LEARN_CLASSES", "0 to 5", "spare size classes that a learning heap may deal out",
     set_learn_classes},
    {"learn_cache", "HZ_LEARN_CACHE", "1 to 4G",
     "bytes that the bins of a thread may hold in any case while a learning heap finds it calm",
     set_learn_cache},
    {"learn_retain", "HZ_LEARN_RETAIN", "100 to 1000",
     "as HZ_RETAIN, while a learning heap finds the process calm", set_learn_retain},
    {"learn_looks", "HZ_LEARN_LOOKS", "0 to 4096",
     "spans that a calm learning heap looks through for free pages whenever it maps a new one",
     set_learn_looks},
    {"learn_busy", "HZ_LEARN_BUSY", "0 to 1024",
     "1024ths of its time that a thread has to spend in the allocator's slow paths to be given more memory",
     set_learn_busy},
    {"learn_purger", "HZ_LEARN_PURGER", "0 to 1024",
     "1024ths of a processor for which the purger of a learning heap may look in vain; 0: any",
     set_learn_purger},
    {"redirect", "HZ_REDIRECT", "0, 1",
     "whether the DLL that redirects the malloc of Windows' C runtimes does so", set_redirect},
};

}  // namespace hz
