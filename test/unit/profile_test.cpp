// SPDX-License-Identifier: Apache-2.0
//
// Profiles: what a heap wrote it reads again; whatever was changed, cut off or made up is told and ignored.
#include "heap/settings/profile.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "support/summed.hpp"

namespace hz_test {
namespace {

using hz::Profile;
using hz::SizeWatch;

std::string Observed(bool calm = true) {
  const auto watch = std::make_unique<SizeWatch>();
  for (const std::size_t size : {24, 1032, 1032, 4120, 30000}) {
    for (unsigned i = 0; i < 100; ++i) {
      watch->asked(size, 10);
      watch->acquired(hz::scan_bin(size));
    }
  }
  const hz::TextView text = Profile::compose(
      {*watch, {.calm = calm}, {.blocks = 700, .waiting = 90, .cached = 8, .in_spans = 200, .dirty = 2}},
      "hakozuna");
  return {text.data(), text.size()};
}

std::string Made(const std::string& lines) { return Summed("hakozuna-profile 1\n" + lines); }

const char* Parse(Profile& profile, const std::string& text) {
  return profile.parse({text.data(), text.size()});
}

const char* Wrong(const std::string& text) {
  Profile profile;
  profile.sizes[0] = 77;
  const char* wrong = Parse(profile, text);
  if (wrong != nullptr) {
    for (const std::size_t size : profile.sizes) EXPECT_EQ(0u, size) << "nothing of it counts";
    EXPECT_FALSE(profile.small);
  }
  return wrong;
}

TEST(ProfileText, SaysWhatWasObserved) {
  const std::string text = Observed();
  EXPECT_EQ(0u, text.find("hakozuna-profile 1\nline hakozuna\nprogram "));
  for (const char* line : {"\nclass 1040 saves ", "\nclass 4128 saves ", "\nslot 1152 spans 200\n",
                           "\npeak 1000 blocks 700 waiting 90 cached 8 spans 200 dirty 2\n",
                           "\nsize 1040 slots 2000\n", "\nsize 32 slots 1000\n", "\nsize 30000 slots 1000\n"})
    EXPECT_NE(std::string::npos, text.find(line)) << line << "in\n" << text;
  Profile profile;
  ASSERT_EQ(nullptr, Parse(profile, text));
  EXPECT_EQ(1040u, profile.sizes[1]);
  EXPECT_EQ(4128u, profile.sizes[3]);
  EXPECT_EQ(0u, profile.sizes[0] + profile.sizes[2] + profile.sizes[4]);
  EXPECT_TRUE(profile.small);
  ASSERT_EQ(nullptr, Parse(profile, Observed(false)));
  EXPECT_FALSE(profile.small) << "its threads are busy in the allocator";
}

TEST(ProfileText, FullOfSizesItStillHasItsEnd) {
  const auto watch = std::make_unique<SizeWatch>();
  for (std::size_t size = 16; size <= SizeWatch::kWatchedMax; size += 16) watch->asked(size, 4000000);
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    for (unsigned i = 0; i < 100000; ++i) watch->acquired(bin);
  }
  Profile profile;
  EXPECT_EQ(nullptr, profile.parse(Profile::compose({*watch, {.calm = true}, {}}, "hakozuna")));
}

TEST(ProfileText, EveryByteCounts) {
  const std::string text = Observed();
  std::mt19937_64 random(1);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    EXPECT_NE(nullptr, Wrong(changed)) << "changed at " << at << " of " << text.size() << "\n" << changed;
    EXPECT_NE(nullptr, Wrong(text.substr(0, at))) << "cut off at " << at;
    EXPECT_NE(nullptr, Wrong(text.substr(0, at) + text.substr(at + 1))) << "without " << at;
    EXPECT_NE(nullptr, Wrong(text.substr(0, at) + "1" + text.substr(at))) << "more at " << at;
  }
  EXPECT_NE(nullptr, Wrong(text + "\n"));
  EXPECT_NE(nullptr, Wrong(text + text));
}

TEST(ProfileText, WhatIsOfAnotherVersionIsNamed) {
  for (const char* text : {"", "\n", "hakozuna-profile", "hakozuna-profile 2\n",
                           "\x7f"
                           "ELF",
                           "hakozuna-profile 1"})
    EXPECT_STREQ(text == std::string("hakozuna-profile 1") ? "it is damaged; ignored"
                                                           : "it is no profile of this version; ignored",
                 Wrong(text));
}

TEST(ProfileText, PresetsThatThereCannotBe) {
  for (const char* name : {"", "large", "smaller", "small small", "fast"})
    EXPECT_STREQ("it asks for a preset that there cannot be; ignored",
                 Wrong(Made("preset " + std::string(name) + "\n")))
        << name;
  EXPECT_EQ(nullptr, Wrong(Made("preset small\nclass 1040\n")));
}

// A right sum under what no heap would have written.
TEST(ProfileText, ClassesThatThereCannotBe) {
  for (const char* size :
       {"", "0", "16", "512", "528x", "1041", "1024", "1152", "16384", "16400", "4294968336",
        "99999999999999999", "18446744073709551615", "-1040", " 1040", "0x410"})
    EXPECT_STREQ("it asks for a class that there cannot be; ignored",
                 Wrong(Made("class " + std::string(size) + "\n")))
        << size;
  EXPECT_STREQ("it asks for a class that there cannot be; ignored", Wrong(Made("class 1040\nclass 1056\n")))
      << "one a doubling";
  EXPECT_EQ(nullptr, Wrong(Made("class 1040\nclass 528\nclass 16368\n")));
  EXPECT_EQ(nullptr, Wrong(Made(""))) << "no class is as good an answer";
  EXPECT_EQ(nullptr, Wrong(Made("words of a later heap\n\nsize\n")));
}

TEST(ProfileText, WhateverStandsInItIsReadToItsEnd) {
  std::mt19937_64 random(2);
  const char* const words[] = {"class ", "preset small", "size ", "slot ", "sum ",  "line ",
                               "1040",   "528",          "\n",    " ",     "saves "};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t n = random() % 20; n != 0; --n)
      text += random() % 8 == 0 ? std::string(1, static_cast<char>(random()))
                                : words[random() % std::size(words)];
    Wrong(Made(text));
    Wrong(text);
  }
}

}  // namespace
}  // namespace hz_test
