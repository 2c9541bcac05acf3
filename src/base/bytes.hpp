// SPDX-License-Identifier: Apache-2.0
//
// Copies and clears what the heap moves while it holds a lock. Called at the boundary and below it, by guards
// and by os/. Cost: eleven instructions for each 64 bytes of a copy, seven of a clear. A program's block that
// is copied or cleared where no lock is held goes by the C library, which is faster below some KiB.
//
// Not the C library's: a program may wrap that, and allocate in its wrapper. There is no loop over bytes
// here, for a compiler may make a call of memcpy or memset of one, as clang does of an assignment of much.
#pragma once

#include <cstdint>

#include "base/lanes.hpp"

namespace hz {
namespace bytes {

struct Step {
  Lane lanes[4];
};
template <class Piece>
struct __attribute__((packed, may_alias)) At {
  Piece value;
};

HZ_INLINE Step load_step(std::uintptr_t from) {
  const LaneAt* const lane = lanes_at(from);
  return {{lane[0].value, lane[1].value, lane[2].value, lane[3].value}};
}
HZ_INLINE void store_step(std::uintptr_t to, const Step& step) {
  LaneAt* const lane = lanes_at(to);
  for (unsigned i = 0; i < 4; ++i) lane[i].value = step.lanes[i];
}

template <class Piece>
HZ_INLINE Piece& at(std::uintptr_t where) {
  return *static_cast<Piece*>(pointer(where));
}
// The first and the last piece, which may share bytes and are all of it.
template <class Piece>
HZ_INLINE void copy_ends(std::uintptr_t to, std::uintptr_t from, std::size_t n) {
  const Piece first = at<Piece>(from), last = at<Piece>(from + n - sizeof(Piece));
  at<Piece>(to) = first;
  at<Piece>(to + n - sizeof(Piece)) = last;
}
template <class Piece>
HZ_INLINE void clear_ends(std::uintptr_t to, std::size_t n) {
  at<Piece>(to) = Piece{};
  at<Piece>(to + n - sizeof(Piece)) = Piece{};
}

// Calls what(piece) with a piece of the largest size of which two are at least n bytes and one is at most.
HZ_INLINE void with_piece_for(std::size_t n, auto what) {
  if (n >= sizeof(WideLaneAt)) return what(WideLaneAt{});
  if (n >= sizeof(LaneAt)) return what(LaneAt{});
  if (n >= sizeof(std::uint64_t)) return what(At<std::uint64_t>{});
  if (n >= sizeof(std::uint32_t)) return what(At<std::uint32_t>{});
  if (n >= sizeof(std::uint16_t)) return what(At<std::uint16_t>{});
  if (n != 0) what(At<std::uint8_t>{});
}

}  // namespace bytes

/// Copies n bytes. They may overlap where `to` lies below `from`.
inline void copy_bytes(void* to, const void* from, std::size_t n) {
  const std::uintptr_t out = address(to), in = address(from);
  if (n < sizeof(bytes::Step))
    return bytes::with_piece_for(n, [&](auto piece) { bytes::copy_ends<decltype(piece)>(out, in, n); });
  // Read before anything is written, for the last step shares bytes with the one before it.
  const std::size_t end = n - sizeof(bytes::Step);
  const bytes::Step last = bytes::load_step(in + end);
  for (std::size_t i = 0; i < end; i += sizeof(bytes::Step))
    bytes::store_step(out + i, bytes::load_step(in + i));
  bytes::store_step(out + end, last);
}

/// Writes zero to n bytes.
inline void clear_bytes(void* at, std::size_t n) {
  const std::uintptr_t out = address(at);
  if (n < sizeof(bytes::Step))
    return bytes::with_piece_for(n, [&](auto piece) { bytes::clear_ends<decltype(piece)>(out, n); });
  const std::size_t end = n - sizeof(bytes::Step);
  for (std::size_t i = 0; i < end; i += sizeof(bytes::Step)) bytes::store_step(out + i, bytes::Step{});
  bytes::store_step(out + end, bytes::Step{});
}

}  // namespace hz
