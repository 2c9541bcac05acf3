// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: the reader of profiles, and their writer. Of any text nothing counts, or classes that there
// can be, one of a doubling; with its sum behind it a text comes past that check. What was watched, by the
// same bytes, is written, and read as it was written.
#include <memory>
#include <string>

#include "heap/settings/profile.hpp"
#include "input.hpp"
#include "support/summed.hpp"

namespace hz_test::fuzz {
namespace {

void read(const std::string& text) {
  hz::Profile profile;
  profile.sizes[0] = 77;
  const bool wrong = profile.parse({text.data(), text.size()}) != nullptr;
  for (unsigned i = 0; i < hz::kSpares; ++i) {
    const std::size_t size = profile.sizes[i];
    expect(size == 0 || (!wrong && hz::SizeClasses::may_deal(size)), "a class that there cannot be");
    expect(size == 0 || hz::log2_floor(size - 1) == hz::kSpareMinLog + i, "a class of another doubling");
  }
  expect(!wrong || !profile.small, "of a profile that is wrong something counts");
}

}  // namespace
}  // namespace hz_test::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hz_test::fuzz;
  using hz_test::Summed;
  const std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  read(Summed(text));
  read(Summed("hakozuna-profile 1\n" + text + "\n"));

  const auto watch = std::make_unique<hz::SizeWatch>();
  for (Input input(data, size); !input.empty();) {
    const std::size_t asked = input.number(2) % hz::kFineMax + 1;
    watch->asked(asked, static_cast<unsigned>(input.number(2)) + 1);
    for (unsigned spans = input.byte() % 32; spans != 0; --spans) watch->acquired(hz::scan_bin(asked));
  }
  const std::uint64_t most = ~std::uint64_t{0};
  const hz::Profile::Seen seen{
      *watch, {.calm = size % 2 != 0, .windows = most, .busy = most}, {.blocks = most, .dirty = most}};
  const hz::TextView written = hz::Profile::compose(seen, "hakozuna");
  hz::Profile again;
  expect(again.parse(written) == nullptr, "what was written is not read");
  const hz::Profile profile = hz::Profile::of(*watch);
  for (unsigned i = 0; i < hz::kSpares; ++i)
    expect(again.sizes[i] == profile.sizes[i], "another class is read than was written");
  expect(again.small == (size % 2 != 0), "the preset is lost");
  return 0;
}
