// SPDX-License-Identifier: Apache-2.0
//
// Scenes: what a process does from its start to its end, in a process of its own, because the end is what is
// tested. The program of a test runs itself with HZ_TEST_SCENE, under the same line. Called by the life
// tests:
//
//   static void Body() { … }                  runs in the child; ends it, or returns
//   static const Scene scene("Name", &Body);
//   TEST(Suite, Name) { ExpectScene("Name", exit_code); }
//
// The program's main() is in scene_main.cpp.
#pragma once

#include <string>
#include <vector>

#include "support/child.hpp"

namespace hz_test {

class Scene {
 public:
  Scene(const char* name, void (*body)()) : name_(name), body_(body), next_(first) { first = this; }

  // False if there is no such scene.
  static bool Play(const std::string& name);

 private:
  const char* name_;
  void (*body_)();
  Scene* next_;
  static inline Scene* first = nullptr;
};

// In a child: says so and ends the process at once if it does not hold.
void Require(bool holds, const char* what);

ChildResult RunScene(const char* name, std::vector<Setting> settings = {});

// The scene ends with this code and writes nothing to stderr; neither while operations are counted, but for
// one line of statistics, which shows that the line serves and that the heap lived to see the end.
void ExpectScene(const char* name, int exit_code);

}  // namespace hz_test
