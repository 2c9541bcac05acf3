// SPDX-License-Identifier: Apache-2.0
//
// A heap profile as it was written, taken apart. Fails the test where the file is not whole.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace hz_test {

struct ProfiledSite {
  std::uint64_t live_blocks = 0, live_bytes = 0, allocated_blocks = 0, allocated_bytes = 0;
  std::uint64_t peak_blocks = 0, peak_bytes = 0, samples = 0, freed = 0;
  std::vector<std::uint64_t> lifetimes;
  std::vector<std::uintptr_t> frames;

  void Add(const ProfiledSite& other) {
    live_blocks += other.live_blocks;
    live_bytes += other.live_bytes;
    allocated_blocks += other.allocated_blocks;
    allocated_bytes += other.allocated_bytes;
    peak_blocks += other.peak_blocks;
    peak_bytes += other.peak_bytes;
    samples += other.samples;
    freed += other.freed;
  }
};

struct ProfileFile {
  std::string process, name, library;
  std::uint64_t pid = 0, interval = 0, dropped = 0, uptime = 0;
  std::vector<ProfiledSite> sites;
  std::vector<std::string> mappings;
  bool whole = false;

  // One of this process now.
  template <class Write>
  static ProfileFile Now(Write write) {
    const std::string path = "/tmp/hz_heap_profile." + std::to_string(getpid());
    EXPECT_EQ(1, write(path.c_str()));
    ProfileFile profile = Read(path);
    unlink(path.c_str());
    return profile;
  }
  static ProfileFile Read(const std::string& path) {
    ProfileFile profile;
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    EXPECT_EQ("hakozuna heap profile 1", line);
    while (std::getline(file, line)) profile.Take(line);
    EXPECT_TRUE(profile.whole);
    return profile;
  }

 private:
  void Take(const std::string& line) {
    EXPECT_FALSE(whole) << "the end is the last line: " << line;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "site") return TakeSite(words);
    if (word == "process") words >> pid >> process;
    if (word == "name") words >> name;
    if (word == "library") words >> library;
    if (word == "interval") words >> interval;
    if (word == "dropped") words >> dropped;
    if (word == "time") words >> word >> uptime;
    if (word == "map") mappings.push_back(line.substr(4));
    if (line == "end") whole = true;
  }
  void TakeSite(std::istringstream& words) {
    ProfiledSite site;
    words >> site.live_blocks >> site.live_bytes >> site.allocated_blocks >> site.allocated_bytes;
    words >> site.peak_blocks >> site.peak_bytes >> site.samples >> site.freed;
    std::string list, word;
    words >> list;
    std::istringstream counts(list);
    while (std::getline(counts, word, ',')) site.lifetimes.push_back(std::stoull(word));
    words >> word;
    EXPECT_EQ("|", word);
    while (words >> word) site.frames.push_back(std::stoull(word, nullptr, 16));
    EXPECT_FALSE(site.frames.empty());
    sites.push_back(site);
  }
};

}  // namespace hz_test
