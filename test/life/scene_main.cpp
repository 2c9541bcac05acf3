// SPDX-License-Identifier: Apache-2.0
//
// Starts the life tests, or one scene of them (HZ_TEST_SCENE); see scene.hpp. What this process asks of its
// library is asked in both.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "life/scene.hpp"
#include "support/line.hpp"

namespace hz_test {

bool Scene::Play(const std::string& name) {
  for (const Scene* scene = first; scene != nullptr; scene = scene->next_) {
    if (name != scene->name_) continue;
    scene->body_();
    return true;
  }
  return false;
}

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  _exit(99);
}

ChildResult RunScene(const char* name, std::vector<Setting> settings) {
  settings.emplace_back("HZ_TEST_SCENE", name);
  return RunChild({"/proc/self/exe"}, settings);
}

void ExpectScene(const char* name, int exit_code) {
  ChildResult result = RunScene(name);
  EXPECT_EQ(exit_code, result.exit_code) << "signal " << result.signal << "\n" << result.out;
  EXPECT_EQ("", result.err);
  result = RunScene(name, {{"HZ_STATS", "1"}});
  EXPECT_EQ(exit_code, result.exit_code) << "counting; signal " << result.signal << "\n" << result.out;
  if (!OnLibc()) {
    EXPECT_EQ(0U, result.err.find("hz: stats line=" + ExpectedLine() + " ")) << result.err;
    EXPECT_EQ(result.err.size() - 1, result.err.find('\n')) << result.err;
  }
}

}  // namespace hz_test

int main(int argc, char** argv) {
  if (const char* name = std::getenv("HZ_TEST_SCENE")) {
    void* block = std::malloc(100);
    hz_test::Require(hz_test::Owned(block), "malloc is ours");
    std::free(block);
    return hz_test::Scene::Play(name) ? 0 : 98;
  }
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new hz_test::LineEnvironment);
  return RUN_ALL_TESTS();
}
