// SPDX-License-Identifier: Apache-2.0
// Each form of operator new without memory: alone, with a handler that gives up, and with one that throws.
#include <new>
#include <vector>

namespace {

int handled;
void give_up() {
  ++handled;
  std::set_new_handler(nullptr);
}
struct Mine {};
void throw_mine() {
  ++handled;
  throw Mine();
}
constexpr std::align_val_t kAligned{128};

template <class Exception, class Allocation>
bool throws(Allocation allocation) {
  try {
    void* const volatile block = allocation();
    static_cast<void>(block);
  } catch (const Exception&) {
    return true;
  }
  return false;
}

}  // namespace

extern "C" const char* failing_step(std::size_t size) {
  const auto plain = [=] { return ::operator new(size); };
  const auto array = [=] { return ::operator new[](size); };
  const auto aligned = [=] { return ::operator new(size, kAligned); };
  if (!throws<std::bad_alloc>(plain)) return "new";
  if (!throws<std::bad_alloc>(array)) return "new[]";
  if (!throws<std::bad_alloc>(aligned)) return "aligned new";
  if (!throws<std::bad_alloc>([=] { return std::vector<char>(size / 2).data(); })) return "vector";
  if (::operator new(size, std::nothrow) != nullptr) return "nothrow new";
  if (::operator new[](size, kAligned, std::nothrow) != nullptr) return "aligned nothrow new[]";

  std::set_new_handler(give_up);
  if (!throws<std::bad_alloc>(plain) || handled != 1) return "new with a handler";
  std::set_new_handler(give_up);
  if (::operator new(size, std::nothrow) != nullptr || handled != 2) return "nothrow new with a handler";

  std::set_new_handler(throw_mine);
  if (!throws<Mine>(aligned) || handled != 3) return "aligned new with a handler that throws";
  if (::operator new(size, std::nothrow) != nullptr || handled != 4) return "nothrow, a handler that throws";
  if (::operator new(size, kAligned, std::nothrow) != nullptr || handled != 5)
    return "aligned nothrow, a handler that throws";
  std::set_new_handler(nullptr);
  return nullptr;
}
