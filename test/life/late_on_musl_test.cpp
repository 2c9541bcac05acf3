// SPDX-License-Identifier: Apache-2.0
//
// Our library comes late on musl: its loader gives static thread-local storage to what is there at the start
// and to nothing after, so it refuses to load us, and says why. The program goes on with the heap it has.
// Not run under preload: HZ_TEST_LIBRARY names the library.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "stress/threads.hpp"
#include "support/opaque.hpp"

namespace hz_test {
namespace {

TEST(Late, IsRefusedWithAReason) {
  const char* library = std::getenv("HZ_TEST_LIBRARY");
  ASSERT_NE(nullptr, library);
  void* const their_malloc = dlsym(RTLD_DEFAULT, "malloc");
  void* const block = Opaque(std::malloc(1000));
  EXPECT_EQ(nullptr, dlopen(library, RTLD_NOW | RTLD_LOCAL));
  const char* reason = dlerror();
  ASSERT_NE(nullptr, reason);
  EXPECT_NE(std::string::npos, std::string(reason).find("initial-exec")) << reason;
  EXPECT_EQ(their_malloc, dlsym(RTLD_DEFAULT, "malloc"));
  EXPECT_EQ(nullptr, dlsym(RTLD_DEFAULT, "hz_malloc"));
  Together(4, [](unsigned i) { std::free(Opaque(std::malloc(100 * i))); });
  std::free(block);
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
