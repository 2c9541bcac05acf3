// SPDX-License-Identifier: Apache-2.0
//
// The text of a profile: see profile.hpp. A line is a word and numbers; the last one is a sum of all bytes
// before it, so that a text which was cut off or changed is none.
#include "heap/settings/profile.hpp"

#include "base/text.hpp"
#include "os/lock.hpp"
#include "os/message.hpp"

namespace hz {
namespace {

constexpr TextView kFirst = "hakozuna-profile 1";
// Sizes that make up less of all slots than this are left out of the text.
constexpr std::uint64_t kLeastShare = 512;

// Returns memory for a text, which is too long for a stack; null if there is none. A heap that has a profile
// maps it at the first call. Called by one thread at a time.
char* space() {
  static constinit char* mapped = nullptr;
  if (mapped == nullptr)
    mapped = static_cast<char*>(os::map(align_up(Profile::kMostBytes, os::page_bytes()), os::page_bytes()));
  return mapped;
}

// FNV-1a, 64 bits: G. Fowler, L. C. Noll, K.-P. Vo.
std::uint64_t sum_of(TextView text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

unsigned doubling_of(std::size_t size) { return log2_floor(size - 1) - kSpareMinLog; }

// A separate function: a message takes 700 bytes of the stack.
HZ_COLD void warn(const char* what) {
  constexpr std::size_t kShown = 400;
  const TextView path = os::kept_path(os::File::kProfile);
  os::Message message;
  message.text("hz: warning: profile ").part(path.data(), path.size() < kShown ? path.size() : kShown);
  message.text(path.size() < kShown ? ": " : "...: ").text(what).text("\n").send();
}

}  // namespace

Profile Profile::of(const SizeWatch& watch) {
  Profile best;
  for (Bin bin = kFirstSpare; bin <= kLastFineBin; ++bin) {
    const std::uint32_t spans = watch.most_spans(bin);
    if (spans < SizeWatch::kLeastSpans) continue;
    const SizeWatch::Choice choice = watch.choose(bin, spans);
    if (choice.size == 0) continue;
    const unsigned doubling = doubling_of(choice.size);
    if (choice.saves <= best.saves[doubling]) continue;
    best.sizes[doubling] = choice.size;
    best.saves[doubling] = choice.saves;
  }
  return best;
}

const char* Profile::parse(TextView all) {
  *this = {};
  TextView rest = all;
  if (cut(rest, '\n') != kFirst) return "it is no profile of this version; ignored";
  Profile read;
  while (!rest.empty()) {
    const TextView before(all.data(), all.size() - rest.size());
    const std::size_t length = rest.size();
    TextView line = cut(rest, '\n');
    if (line.size() == length) break;  // cut off
    const TextView word = cut(line, ' ');
    if (word == "sum") {
      os::BasicMessage<16> sum;
      sum.hex(sum_of(before));
      if (line != TextView(sum.data(), sum.size()) || !rest.empty()) break;
      *this = read;
      return nullptr;
    }
    if (word == "preset") {
      if (line != "small") return "it asks for a preset that there cannot be; ignored";
      read.small = true;
    }
    if (word != "class") continue;
    std::size_t size = 0;
    if (!hz::parse(cut(line, ' '), kSpareMin + 1, kFineMax, size) || !SizeClasses::may_deal(size) ||
        read.sizes[doubling_of(size)] != 0)
      return "it asks for a class that there cannot be; ignored";
    read.sizes[doubling_of(size)] = size;
  }
  return "it is damaged; ignored";
}

void Profile::deal_out() const {
  for (const std::size_t size : sizes) {
    if (size != 0) classes.deal(size);
  }
}

TextView Profile::compose(const Seen& seen, const char* line) {
  const SizeWatch& watch = seen.sizes;
  std::uint64_t all = 0;
  for (unsigned n = 0; n < SizeWatch::kNumbers; ++n) all += watch.slots(n);
  os::TextInto m(space(), kMostBytes);
  m.part(kFirst.data(), kFirst.size()).text("\nline ").text(line);
  m.text("\nprogram ").name(os::program_name()).text("\n");
  const Profile profile = of(watch);
  if (seen.decisions.calm) m.text("preset small\n");
  m.text("windows ").decimal(seen.decisions.windows).text(" busy ").decimal(seen.decisions.busy).text("\n");
  m.text("peak ").decimal(seen.peak.all()).text(" blocks ").decimal(seen.peak.blocks);
  m.text(" waiting ").decimal(seen.peak.waiting).text(" cached ").decimal(seen.peak.cached);
  m.text(" spans ").decimal(seen.peak.in_spans).text(" dirty ").decimal(seen.peak.dirty).text("\n");
  for (unsigned i = 0; i < kSpares; ++i) {
    if (profile.sizes[i] != 0)
      m.text("class ").decimal(profile.sizes[i]).text(" saves ").decimal(profile.saves[i]).text("\n");
  }
  for (Bin bin = 1; bin < kBins; ++bin) {
    if (watch.most_spans(bin) != 0)
      m.text("slot ").decimal(size_of_bin(bin)).text(" spans ").decimal(watch.most_spans(bin)).text("\n");
  }
  for (unsigned n = 0; n < SizeWatch::kNumbers; ++n) {
    if (watch.slots(n) != 0 && watch.slots(n) >= all / kLeastShare)
      m.text("size ").decimal((n + 1) * kMinAlign).text(" slots ").decimal(watch.slots(n)).text("\n");
  }
  const std::uint64_t sum = sum_of({space(), m.size()});
  m.text("sum ").hex(sum).text("\n");
  return {space(), m.size()};
}

Profile Profile::start_from_file() {
  const std::ptrdiff_t bytes = space() == nullptr ? -1 : os::read_profile(space(), kMostBytes);
  Profile profile;
  const char* const wrong =
      bytes < 0 ? "it cannot be read; ignored" : profile.parse({space(), static_cast<std::size_t>(bytes)});
  if (wrong != nullptr) warn(wrong);
  profile.deal_out();
  return profile;
}

HZ_COLD void Profile::warn_of_no_file() {
  os::Message message;
  message.text("hz: warning: HZ_POLICY=observe writes no profile, for HZ_PROFILE names no file\n").send();
}

bool Profile::write_file(const Seen& seen, const char* line) {
  static constinit os::Turn turn;
  const os::Turn::Mine mine(turn);
  if (!mine.is()) return false;
  const TextView text = compose(seen, line);
  const bool written = !text.empty() && os::write_profile(text.data(), text.size());
  if (!written) warn("it cannot be written");
  return written;
}

}  // namespace hz
