// SPDX-License-Identifier: Apache-2.0
//
// The tables of the heap profile, and its text: see heap_profile.hpp. All words of the tables are written
// under one lock. A sample, and a site, are found from the moment that the word is written which shows them,
// so a child of a fork, which may have been cut off in the middle of add(), loses no more than that sample.
#include "heap/samples/heap_profile.hpp"

#include "base/bytes.hpp"
#include "hakozuna/hakozuna.h"
#include "heap/samples/sampling.hpp"
#include "heap/samples/stacks.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

namespace hz {
namespace {

using Site = HeapProfile::Site;

struct Live {
  std::uintptr_t block = 0;  // 0: none
  std::uint32_t site = 0;
  std::uint32_t bin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t interval = 0;  // at which it was chosen
  std::uint64_t since = 0;     // microseconds
};

// --- tables

constexpr unsigned kParts = 1U << 12;  // of a block: a sample of a large one stands for little more than one
constexpr std::uint32_t kMostSites = HeapProfile::kMostSites, kSiteRows = 2 * kMostSites;
constexpr std::uint32_t kLiveRows = 1U << 17, kMostLive = kLiveRows / 4 * 3;
constexpr std::uint32_t kNoSite = ~0U;

constinit os::LockOf<os::Rank::kSamples> tables_lock;
constinit std::uint32_t* site_rows = nullptr;  // 1 + the number of a site, by its hash; 0: none
constinit std::atomic<std::uint32_t> sites_used{0};
constinit Live* live = nullptr;                      // by the block's address
constinit std::atomic<std::uint32_t> taken{0};       // rows of `live` that are in use, or promised
constinit std::uint32_t most_taken = 0;              // at once so far
constinit std::uint64_t all_live = 0, all_peak = 0;  // bytes
constinit std::uint64_t opened = 0;                  // microseconds

using Hold = os::Guarded;

std::uint32_t row_of(std::uintptr_t block) {
  return static_cast<std::uint32_t>((block / kMinAlign * 0x9E3779B97F4A7C15U) >> 40) & (kLiveRows - 1);
}
std::uint32_t next(std::uint32_t row) { return (row + 1) & (kLiveRows - 1); }

// Where it is, or where it would come. There are always rows to spare.
Live& find(const void* block) {
  std::uint32_t row = row_of(address(block));
  while (live[row].block != 0 && live[row].block != address(block)) row = next(row);
  return live[row];
}
void insert(const Live& sample) {
  Live& at = find(pointer(sample.block));
  at.site = sample.site;
  at.bin = sample.bin;
  at.bytes = sample.bytes;
  at.interval = sample.interval;
  at.since = sample.since;
  std::atomic_signal_fence(std::memory_order_release);
  at.block = sample.block;
}
// Each sample more than ever before may touch a page more.
void count_pages() {
  const std::uint32_t now = taken.load(std::memory_order_relaxed);
  const std::size_t page = os::page_bytes(), all = kLiveRows * sizeof *live;
  for (; most_taken < now; ++most_taken)
    if (std::size_t{most_taken} * page < all) Sampling::metadata().fetch_add(page, std::memory_order_relaxed);
}
// Those behind it that it had pushed away come nearer.
void remove(Live& sample) {
  auto hole = static_cast<std::uint32_t>(&sample - live);
  for (std::uint32_t row = next(hole); live[row].block != 0; row = next(row)) {
    const std::uint32_t home = row_of(live[row].block);
    if (((row - home) & (kLiveRows - 1)) < ((row - hole) & (kLiveRows - 1))) continue;
    live[hole] = live[row];
    hole = row;
  }
  live[hole].block = 0;
}

std::uint64_t hash_of(void* const* frames, unsigned depth) {
  std::uint64_t hash = depth;
  for (unsigned i = 0; i < depth; ++i) {
    hash = (hash ^ address(frames[i])) * 0xBF58476D1CE4E5B9U;
    hash ^= hash >> 29;
  }
  return hash;
}
bool is_of(const Site& site, std::uint64_t hash, void* const* frames, unsigned depth) {
  if (site.hash != hash || site.depth != depth) return false;
  for (unsigned i = 0; i < depth; ++i)
    if (site.frames[i] != address(frames[i])) return false;
  return true;
}
std::uint32_t site_of(void* const* frames, unsigned depth) {
  const std::uint64_t hash = hash_of(frames, depth);
  auto row = static_cast<std::uint32_t>(hash) & (kSiteRows - 1);
  for (; site_rows[row] != 0; row = (row + 1) & (kSiteRows - 1))
    if (is_of(HeapProfile::state.sites[site_rows[row] - 1], hash, frames, depth)) return site_rows[row] - 1;
  if (sites_used == kMostSites) return kNoSite;
  const std::uint32_t number = sites_used.load(std::memory_order_relaxed);
  Site& site = HeapProfile::state.sites[number];
  site.hash = hash;
  site.depth = depth;
  for (unsigned i = 0; i < depth; ++i) site.frames[i] = address(frames[i]);
  // Release: who sees from outside that it is in use sees what it is.
  __atomic_store_n(&site.state, 1, __ATOMIC_RELEASE);
  site_rows[row] = number + 1;
  sites_used.store(number + 1, std::memory_order_relaxed);
  Sampling::metadata().fetch_add(sizeof(Site), std::memory_order_relaxed);
  return number;
}

// --- what samples stand for

struct Weight {
  std::uint64_t parts, bytes;
};
std::uint64_t nearest(double x) {
  const auto below = static_cast<std::uint64_t>(x);
  return x - static_cast<double>(below) < 0.5 ? below : below + 1;
}
Weight weight_of(const Live& sample) {
  const double s = static_cast<double>(sample.bytes);
  const double p = Sampling::chance_of(s / static_cast<double>(sample.interval));
  return {nearest(kParts / p), nearest(s / p)};
}

// A new one is noted when it is a hundredth above the last.
void look_for_peak() {
  if (all_live <= all_peak + all_peak / 100) return;
  all_peak = all_live;
  for (std::uint32_t i = 0; i < sites_used; ++i) {
    Site& site = HeapProfile::state.sites[i];
    site.peak_blocks = site.live_blocks;
    site.peak_bytes = site.live_bytes;
  }
}
void count(Site& site, const Live& sample) {
  const Weight weight = weight_of(sample);
  site.live_parts += weight.parts;
  site.live_blocks = site.live_parts / kParts;
  site.live_bytes += weight.bytes;
  site.allocated_parts += weight.parts;
  site.allocated_blocks = site.allocated_parts / kParts;
  site.allocated_bytes += weight.bytes;
  ++site.samples;
  all_live += weight.bytes;
  look_for_peak();
}
void uncount(Site& site, const Live& sample, std::uint64_t now) {
  const Weight weight = weight_of(sample);
  site.live_parts -= weight.parts;
  site.live_blocks = site.live_parts / kParts;
  site.live_bytes -= weight.bytes;
  all_live -= weight.bytes;
  ++site.freed;
  const std::uint64_t lived = now > sample.since ? now - sample.since : 0;
  const unsigned log = lived < 2 ? 0 : log2_floor(lived);
  ++site.lifetimes[log < HeapProfile::kLifetimes ? log : HeapProfile::kLifetimes - 1];
}

// A sample of a class comes or goes.
void count_sample(std::uint32_t bin, std::uint64_t bytes, bool comes) {
  if (bin == kHugeBin) return;
  const std::uint64_t sign = comes ? 1 : ~std::uint64_t{0};
  HeapProfile::State& state = HeapProfile::state;
  state.samples.fetch_add(sign, std::memory_order_relaxed);
  state.sample_bytes.fetch_add(sign * bytes, std::memory_order_relaxed);
}

// --- the text

using Text = os::BasicMessage<32 * kKiB>;
// Of the one thread that writes: too long for a stack, and behind the tables, for who keeps no profile pays
// for none of it.
struct Scratch {
  Text text;
  Site copied;
  char program[4 * kKiB], mappings[os::CodeMappings::kRoom];
};
constinit Scratch* scratch = nullptr;

class Writer {
 public:
  explicit Writer(const char* path) : file_(os::File::kHeapProfile, path) {}

  Text& line() {
    if (scratch->text.size() > sizeof(Text) - kLongestLine) flush();
    return scratch->text;
  }
  // Whatever of it there is room for.
  void whole(const char* start, const char* bytes, std::size_t length) {
    line().text(start).part(bytes, length).text("\n");
  }
  bool finish() {
    flush();
    return file_.finish();
  }

 private:
  static constexpr std::size_t kLongestLine = 9 * kKiB;  // a path may be 4 KiB, each of it an escape of two

  void flush() {
    file_.write(scratch->text.data(), scratch->text.size());
    scratch->text.clear();
  }
  os::Output file_;
};

void write_function(Writer& writer, std::uint32_t number) {
  const os::PythonFunction& one = PythonFunctions::entries[number].function;
  Text& m = writer.line();
  m.text("function ").hex(PythonFunctions::kMark | (number + 1)).text(" ").decimal(one.line);
  m.text(" ").text(one.name).text("\t").text(one.file).text("\n");
}
void write_site(Writer& writer, const Site& site) {
  Text& m = writer.line();
  m.text("site ").decimal(site.live_blocks).text(" ").decimal(site.live_bytes);
  m.text(" ").decimal(site.allocated_blocks).text(" ").decimal(site.allocated_bytes);
  m.text(" ").decimal(site.peak_blocks).text(" ").decimal(site.peak_bytes);
  m.text(" ").decimal(site.samples).text(" ").decimal(site.freed);
  for (unsigned i = 0; i < HeapProfile::kLifetimes; ++i)
    m.text(i == 0 ? " " : ",").decimal(site.lifetimes[i]);
  m.text(" |");
  for (unsigned i = 0; i < site.depth; ++i) m.text(" ").hex(site.frames[i]);
  m.text("\n");
}

// Under the lock, unless it was not to be had in that time, once.
void locked(unsigned patience, bool& given_up, auto at) {
  const Hold hold(given_up ? nullptr : &tables_lock, os::Rank::kSamples,
                  patience == 0 ? os::Lock::kEndless : patience);
  given_up = !hold.has_lock();
  at();
}

// A function of its own: a message takes 700 bytes of the stack.
HZ_COLD void warn(const char* what, const char* path) {
  constexpr std::size_t kShown = 400;
  std::size_t length = 0;
  while (path[length] != 0 && length < kShown) ++length;
  os::Message message;
  message.text("hz: warning: heap profile").text(length != 0 ? " " : "").part(path, length);
  message.text(length < kShown ? ": " : "...: ").text(what).text("\n").send();
}

// False if there is no memory for them. Where a process has several heaps, they have one profile.
HZ_COLD bool make_tables() {
  const Hold hold(tables_lock);
  if (scratch != nullptr) return true;
  const std::size_t page = os::page_bytes();
  const std::size_t of_sites = align_up(kMostSites * sizeof(Site), page);
  const std::size_t of_rows = align_up(kSiteRows * sizeof *site_rows, page);
  const std::size_t of_live = align_up(kLiveRows * sizeof *live, page);
  const std::size_t all = of_sites + of_rows + of_live + align_up(sizeof(Scratch), page);
  void* const at = os::map(all, page);
  if (at == nullptr) return false;
  os::forbid_huge_pages(at, all);
  HeapProfile::state.sites = static_cast<Site*>(at);
  site_rows = static_cast<std::uint32_t*>(pointer(address(at) + of_sites));
  live = static_cast<Live*>(pointer(address(at) + of_sites + of_rows));
  scratch = ::new (pointer(address(at) + of_sites + of_rows + of_live)) Scratch;
  opened = os::microseconds();
  Sampling::metadata().fetch_add(of_rows, std::memory_order_relaxed);
  return true;
}

}  // namespace

HZ_COLD void HeapProfile::open(const Rates& rates, const char*) {
  if (rates.interval == 0 || records()) return;
  if (!make_tables()) return warn("there is no memory for one", "");
  state.interval.store(rates.interval, std::memory_order_release);  // pairs with records()
}

// Stacks are whole before there are samples.
HZ_COLD bool HeapProfile::change(const Rates& before, const Rates& now, const char*, bool& walking) {
  if (now.interval == before.interval) return true;
  if (now.interval == 0 || !records()) state.pauses.store(true, std::memory_order_relaxed);
  if (now.interval == 0) return true;
  if (!make_tables()) return false;
  state.interval.store(now.interval, std::memory_order_release);  // pairs with records()
  at_load(walking);
  state.pauses.store(false, std::memory_order_relaxed);
  return true;
}

HZ_COLD void HeapProfile::at_load(bool& walking) {
  if (records() && !Stacks::prepare(walking))
    warn("stacks cannot be walked here: each is the caller alone", "");
  before_load();
}

HZ_COLD void HeapProfile::before_load() {
  static constinit os::Turn turn;
  if (!records() || os::PythonStack::has_interpreter()) return;
  const os::Turn::Mine mine(turn);
  if (!mine.is() || !PythonFunctions::open()) return;
  __atomic_store_n(&state.functions, PythonFunctions::entries, __ATOMIC_RELEASE);  // for tools outside
}

void HeapProfile::in_child() {
  tables_lock.reset();
  PythonFunctions::in_child();
}

bool HeapProfile::has_room() {
  if (taken.fetch_add(1, std::memory_order_relaxed) < kMostLive) return true;
  return give_up(), false;
}
void HeapProfile::give_up() {
  taken.fetch_sub(1, std::memory_order_relaxed);
  state.dropped.fetch_add(1, std::memory_order_relaxed);
}

void HeapProfile::add(const void* block, Bin bin, std::size_t bytes, const void* caller, bool& walking) {
  void* frames[kMostFrames];
  os::PythonStack python;
  unsigned depth = Stacks::walk(frames, kMostFrames, caller, walking, python.evaluation());
  if (!python.is_empty()) depth += PythonFunctions::walk(python, frames + depth, kMostFrames - depth);
  const bool is_late = os::PythonStack::program_ends();  // of no interest to what it leaves
  const Hold hold(tables_lock);
  const std::uint32_t site = is_late ? kNoSite : site_of(frames, depth);
  count_pages();
  count_sample(static_cast<std::uint32_t>(bin), bytes, true);
  const Live sample = {.block = address(block),
                       .site = site,
                       .bin = static_cast<std::uint32_t>(bin),
                       .bytes = bytes,
                       .interval = state.interval.load(std::memory_order_relaxed),
                       .since = os::microseconds()};
  insert(sample);
  if (is_late) return;
  if (site == kNoSite) return void(state.dropped.fetch_add(1, std::memory_order_relaxed));
  hz::count(state.sites[site], sample);
}

Bin HeapProfile::bin_of(const void* block) {
  const Hold hold(tables_lock);
  const Live& sample = find(block);
  return sample.block != 0 ? sample.bin : kHugeBin;
}

Bin HeapProfile::end(const void* block) {
  const std::uint64_t now = os::microseconds();
  const bool stays = os::PythonStack::program_ends();
  const Hold hold(tables_lock);
  Live& at = find(block);
  if (at.block == 0) return kHugeBin;
  const Live sample = at;
  remove(at);
  count_sample(sample.bin, sample.bytes, false);
  taken.fetch_sub(1, std::memory_order_relaxed);
  if (sample.site != kNoSite && !stays) uncount(state.sites[sample.site], sample, now);
  return sample.bin;
}

bool HeapProfile::write(const char* path, const char* line, unsigned patience) {
  if (!records()) return false;
  static constinit os::Turn turn;
  const os::Turn::Mine mine(turn);
  if (!mine.is()) return false;
  if (path == nullptr) path = os::heap_profile_to_write();
  Writer writer(path);
  scratch->text.clear();
  std::uint32_t used = 0;
  bool given_up = false;
  locked(patience, given_up, [&] { used = sites_used; });
  const std::uint32_t functions = PythonFunctions::used();  // with those of all sites
  const unsigned version = functions == 0 ? 1 : 2;
  writer.line().text("hakozuna heap profile ").decimal(version).text("\nprocess ");
  writer.line().decimal(os::process_id()).text(" ");
  writer.whole("", scratch->program, os::program_path(scratch->program, sizeof scratch->program));
  writer.line().text("name ").name(os::program_name()).text("\n");
  writer.line().text("library ").text(line).text(" ").text(HZ_VERSION).text("\n");
  writer.line().text("time ").decimal(os::unix_seconds()).text(" ").decimal(os::microseconds() - opened);
  writer.line().text("\ninterval ").decimal(state.interval.load(std::memory_order_relaxed));
  writer.line().text("\ndropped ").decimal(state.dropped.load(std::memory_order_relaxed)).text("\n");
  for (std::uint32_t i = 0; i < used; ++i) {
    // No assignment: clang makes a call of memcpy of it, and the lock is held.
    locked(patience, given_up, [&] { copy_bytes(&scratch->copied, &state.sites[i], sizeof state.sites[i]); });
    write_site(writer, scratch->copied);
  }
  for (std::uint32_t i = 0; i < functions; ++i) write_function(writer, i);
  os::CodeMappings mappings(scratch->mappings);
  std::size_t length = 0;
  while (const char* mapping = mappings.next(length)) writer.whole("map ", mapping, length);
  writer.line().text("end\n");
  const bool whole = writer.finish();
  if (!whole) warn("it cannot be written", path);
  return whole;
}

}  // namespace hz
