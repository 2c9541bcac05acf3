// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role retain. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/retain/hysteresis.hpp"
#include "box/retain/keep_refill.hpp"

namespace hz_test {

// A box's books with the part of the only thread: what it counts is folded at once.
template <class R>
class Alone : public R::Global {
 public:
  void slots_out(std::size_t n) { R::slots_out(part(), n); }
  void slots_returned(std::size_t n) { R::slots_returned(part(), n); }
  void span_used(std::size_t n) { R::span_used(part(), n); }
  void span_retired(std::size_t n) { R::span_retired(part(), n); }
  void waiting_added(std::size_t n) { R::waiting_added(part(), n); }
  void waiting_taken(std::size_t n) { R::waiting_taken(part(), n); }
  void bins_grown(std::size_t n) { R::bins_grown(part(), n); }
  void bins_shrunk(std::size_t n) { R::bins_shrunk(part(), n); }
  bool may_wait(std::size_t slot) { return R::may_wait(*this, seen(), slot); }
  bool must_go() { return R::must_go(*this, seen()); }
  bool has_slack(std::size_t elsewhere) { return R::has_slack(*this, seen(), elsewhere, 1); }
  bool sparse(std::size_t elsewhere) { return R::sparse(*this, elsewhere); }
  bool may_spread(std::size_t elsewhere) { return R::may_spread(seen(), elsewhere); }
  std::size_t live_bytes() { return R::live_bytes(seen()); }
  std::size_t dirty_limit() { return R::dirty_limit(*this, seen()); }
  std::size_t dirty_target() { return R::dirty_target(*this, seen()); }

 private:
  // Folds what is counted in it when the statement ends.
  struct Part {
    Alone& all;
    ~Part() { R::leave(all, all.own_, 1); }
    operator typename R::PerThread &() { return all.own_; }
  };
  Part part() { return {*this}; }
  const typename R::PerThread& seen() {
    R::enter(*this, own_, 1);
    return own_;
  }
  typename R::PerThread own_;
};

using RetainBoxes = ::testing::Types<hz::Hysteresis, hz::KeepRefill>;

}  // namespace hz_test
