// SPDX-License-Identifier: Apache-2.0
//
// operator new when memory cannot be had: the new_handler loop, bad_alloc, and nullptr from the nothrow
// forms.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <new>
#include <vector>

#include "support/address_space.hpp"
#include "support/opaque.hpp"
#include "support/rss.hpp"

namespace {

using hz_test::kMiB;
using hz_test::Opaque;
using std::align_val_t;
using std::nothrow;

constexpr align_val_t kAligned{128};
const std::size_t kImpossible[] = {std::size_t{PTRDIFF_MAX}, SIZE_MAX, SIZE_MAX - 4096, std::size_t{1} << 62};

using New = std::function<void*(std::size_t)>;

const std::vector<New>& ThrowingForms() {
  static const std::vector<New> forms = {
      [](std::size_t n) { return ::operator new(n); },
      [](std::size_t n) { return ::operator new[](n); },
      [](std::size_t n) { return ::operator new(n, kAligned); },
      [](std::size_t n) { return ::operator new[](n, kAligned); },
  };
  return forms;
}

const std::vector<New>& NothrowForms() {
  static const std::vector<New> forms = {
      [](std::size_t n) { return ::operator new(n, nothrow); },
      [](std::size_t n) { return ::operator new[](n, nothrow); },
      [](std::size_t n) { return ::operator new(n, kAligned, nothrow); },
      [](std::size_t n) { return ::operator new[](n, kAligned, nothrow); },
  };
  return forms;
}

int calls = 0;

struct OwnException {
  int code;
};

class NewHandler : public ::testing::Test {
 protected:
  void SetUp() override { calls = 0; }
  void TearDown() override { std::set_new_handler(nullptr); }
};

TEST_F(NewHandler, WithoutOneBadAllocIsThrown) {
  for (const std::size_t size : kImpossible) {
    for (const New& form : ThrowingForms()) EXPECT_THROW(Opaque(form(Opaque(size))), std::bad_alloc) << size;
  }
}

TEST_F(NewHandler, WithoutOneNothrowGivesNull) {
  for (const std::size_t size : kImpossible) {
    for (const New& form : NothrowForms()) EXPECT_EQ(nullptr, Opaque(form(Opaque(size)))) << size;
  }
}

TEST_F(NewHandler, IsCalledUntilItGivesUp) {
  for (const New& form : ThrowingForms()) {
    calls = 0;
    std::set_new_handler([] {
      if (++calls == 3) std::set_new_handler(nullptr);
    });
    EXPECT_THROW(Opaque(form(Opaque(kImpossible[0]))), std::bad_alloc);
    EXPECT_EQ(3, calls);
  }
}

TEST_F(NewHandler, MayThrowItsOwnException) {
  for (const New& form : ThrowingForms()) {
    calls = 0;
    std::set_new_handler([] {
      if (++calls == 2) throw OwnException{7};
    });
    try {
      Opaque(form(Opaque(kImpossible[0])));
      ADD_FAILURE() << "returned";
    } catch (const OwnException& exception) {
      EXPECT_EQ(7, exception.code);
    }
    EXPECT_EQ(2, calls);
  }
}

TEST_F(NewHandler, IsCalledByTheNothrowForms) {
  for (const New& form : NothrowForms()) {
    calls = 0;
    std::set_new_handler([] {
      if (++calls == 3) std::set_new_handler(nullptr);
    });
    EXPECT_EQ(nullptr, Opaque(form(Opaque(kImpossible[0]))));
    EXPECT_EQ(3, calls);
  }
}

TEST_F(NewHandler, ItsBadAllocBecomesNullInTheNothrowForms) {
  for (const New& form : NothrowForms()) {
    calls = 0;
    std::set_new_handler([] {
      ++calls;
      throw std::bad_alloc();
    });
    EXPECT_EQ(nullptr, Opaque(form(Opaque(kImpossible[0]))));
    EXPECT_EQ(1, calls);
  }
}

// The loop has its use: a handler that makes room lets the same call succeed. A process for each of the eight
// forms: what one has freed would serve the next.
class NewHandlerForm : public NewHandler, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(NewHandlerForm, ThatMakesRoomLetsTheCallSucceed) {
  if (!hz_test::StartedUnderLimit()) return hz_test::RunThisTestUnderLimit();
  std::vector<New> forms = ThrowingForms();
  forms.insert(forms.end(), NothrowForms().begin(), NothrowForms().end());
  std::set_new_handler([] {
    ++calls;
    hz_test::AllowMoreAddressSpace();
  });
  hz_test::ForbidMoreAddressSpace();
  void* block = Opaque(forms.at(GetParam())(512 * kMiB));
  EXPECT_NE(nullptr, block);
  EXPECT_EQ(1, calls);
  ::operator delete(block);
}

INSTANTIATE_TEST_SUITE_P(All, NewHandlerForm, ::testing::Range(std::size_t{0}, std::size_t{8}));

TEST_F(NewHandler, TheHeapWorksAfterBadAlloc) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THROW(Opaque(::operator new(Opaque(SIZE_MAX))), std::bad_alloc);
    ::operator delete(Opaque(::operator new(100)));
  }
}

}  // namespace
