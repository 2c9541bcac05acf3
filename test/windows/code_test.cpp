// SPDX-License-Identifier: Apache-2.0
//
// Functions of a module are redirected in machine code, all or none: what cannot be is named, and nothing is
// changed then. Each test loads the module of odd functions anew.
#include "os/windows_redirect.hpp"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>
#include <vector>

namespace {

using hz::os::Redirection;

int Ours() { return 100; }
int OursToo() { return 200; }
void* const kOurs = reinterpret_cast<void*>(&Ours);
void* const kOursToo = reinterpret_cast<void*>(&OursToo);

class Code : public ::testing::Test {
 protected:
  ~Code() override { FreeLibrary(module_); }

  int Call(const char* name) const {
    auto* const at = hz::os::exported(module_, name);
    return at == nullptr ? -1 : reinterpret_cast<int (*)(int)>(at)(3);
  }
  // What is in the way; "" if it was done.
  std::string Redirect(const std::vector<Redirection>& list) const {
    const char* which = "";
    const char* why = hz::os::redirect(module_, list.data(), list.size(), which);
    return why == nullptr ? "" : std::string(which) + ": " + why;
  }
  DWORD Protection(const char* name) const {
    MEMORY_BASIC_INFORMATION pages = {};
    VirtualQuery(hz::os::exported(module_, name), &pages, sizeof pages);
    return pages.Protect;
  }

  const HMODULE module_ = LoadLibraryA("windows_odd_functions.dll");
};

TEST_F(Code, GoesToOurs) {
  ASSERT_NE(nullptr, module_);
  ASSERT_EQ(1, Call("odd_plain"));
  ASSERT_EQ(2, Call("odd_jump"));
  const DWORD before = Protection("odd_plain");
  EXPECT_EQ("", Redirect({{"odd_plain", kOurs, true}, {"odd_jump", kOursToo, true}}));
  EXPECT_EQ(100, Call("odd_plain"));
  EXPECT_EQ(200, Call("odd_jump"));
  EXPECT_EQ(2, Call("odd_other")) << "nobody asked for it";
  EXPECT_EQ(before, Protection("odd_plain"));
  EXPECT_EQ(100, Call("odd_twin")) << "it is the same function";
}

TEST_F(Code, GoesToOursByTheOtherNameAsWell) {
  ASSERT_EQ(2, Call("_o_odd_other"));
  EXPECT_EQ("", Redirect({{"odd_other", kOurs, true}}));
  EXPECT_EQ(100, Call("odd_other"));
  EXPECT_EQ(100, Call("_o_odd_other"));
}

TEST_F(Code, MayJumpBackBehindItsFirstBytes) {
  ASSERT_EQ(6, Call("odd_later_loop"));
  EXPECT_EQ("", Redirect({{"odd_later_loop", kOurs, true}}));
  EXPECT_EQ(100, Call("odd_later_loop"));
}

TEST_F(Code, MayHaveNoFrame) {
  ASSERT_EQ(1, Call("odd_leaf"));
  EXPECT_EQ("", Redirect({{"odd_leaf", kOurs, true}}));
  EXPECT_EQ(100, Call("odd_leaf"));
  EXPECT_EQ(1, Call("odd_plain"));
}

TEST_F(Code, MayLackWhatIsNotNeeded) {
  EXPECT_EQ("", Redirect({{"odd_none", kOurs, false}, {"odd_plain", kOurs, true}}));
  EXPECT_EQ(100, Call("odd_plain"));
}

TEST_F(Code, ChangesNothingWhereOneCannotBe) {
  for (const auto& [name, why] : {std::pair{"odd_short", "it is too short"},
                                  {"odd_loop", "it jumps back to its first bytes"},
                                  {"odd_long_loop", "it jumps back to its first bytes"},
                                  {"odd_leaf_loop", "it jumps back to its first bytes"},
                                  {"odd_middle", "its end is not known"},
                                  {"odd_address", "its beginning cannot be written at once"},
                                  {"odd_none", "it is not there"},
                                  {"odd_twin", "it is another function as well"}}) {
    EXPECT_EQ(std::string(name) + ": " + why, Redirect({{"odd_plain", kOurs, true}, {name, kOursToo, true}}));
    EXPECT_EQ(1, Call("odd_plain")) << name;
  }
}

TEST_F(Code, IsReachedFromWhereverTheModuleLies) {
  // Both runtimes lie where Windows put them; this one is far from the program.
  EXPECT_EQ("", Redirect({{"odd_plain", kOurs, true}}));
  EXPECT_EQ(100, Call("odd_plain"));
  MEMORY_BASIC_INFORMATION pages = {};
  const auto* const entry = static_cast<const unsigned char*>(hz::os::exported(module_, "odd_plain"));
  ASSERT_EQ(0xE9, entry[0]);
  int distance = 0;
  __builtin_memcpy(&distance, entry + 1, sizeof distance);
  ASSERT_NE(0u, VirtualQuery(entry + 5 + distance, &pages, sizeof pages));
  EXPECT_EQ(static_cast<DWORD>(PAGE_EXECUTE_READ), pages.Protect) << "the slots are written to by nobody";
}

}  // namespace
