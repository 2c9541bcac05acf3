// SPDX-License-Identifier: Apache-2.0
//
// The process's generator of random bytes: ChaCha8 (Bernstein, 2008) in counter mode, keyed by the system. An
// attacker that sees any of its output, or learns the key of a child, cannot predict other output. Each call
// has a separate stream. Called when the heap opens, when a thread begins, and on slow paths; costs some 250
// instructions for 64 bytes, no system call after the first one, and no lock.
#include <string.h>

#include <atomic>

#include "base/bytes.hpp"
#include "base/compiler.hpp"
#include "os/os.hpp"

namespace hz::os {
namespace {

constexpr unsigned kRounds = 8;
constexpr std::size_t kBlock = 64;

using Row = std::uint32_t __attribute__((vector_size(16)));

struct Key {
  Row rows[2];
};
constinit Key key{};
constinit bool has_key = false;  // perhaps of the process that this one is a fork of
enum State : std::uint32_t { kUnkeyed, kBeingKeyed, kKeyed };
constinit std::atomic<std::uint64_t> next_block{0};

// Of the key: it is this process's.
std::atomic<std::uint32_t>& state() { return of_process.load(std::memory_order_acquire)->random; }

template <int kBits>
HZ_INLINE Row rotated(Row row) {
  return row << kBits | row >> (32 - kBits);
}
HZ_INLINE void quarter_rounds(Row (&r)[4]) {
  r[0] += r[1], r[3] = rotated<16>(r[3] ^ r[0]);
  r[2] += r[3], r[1] = rotated<12>(r[1] ^ r[2]);
  r[0] += r[1], r[3] = rotated<8>(r[3] ^ r[0]);
  r[2] += r[3], r[1] = rotated<7>(r[1] ^ r[2]);
}
template <int kBy>
HZ_INLINE Row turned(Row row) {
  return Row{row[kBy % 4], row[(kBy + 1) % 4], row[(kBy + 2) % 4], row[(kBy + 3) % 4]};
}
// One block of the stream `nonce`, numbered `number`.
void compute_block(std::uint64_t number, std::uint64_t nonce, Row (&out)[4]) {
  const Row start[4] = {{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574},
                        key.rows[0],
                        key.rows[1],
                        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
                         static_cast<std::uint32_t>(nonce), static_cast<std::uint32_t>(nonce >> 32)}};
  for (int i = 0; i < 4; ++i) out[i] = start[i];
  for (unsigned round = 0; round < kRounds; round += 2) {
    quarter_rounds(out);
    out[1] = turned<1>(out[1]), out[2] = turned<2>(out[2]), out[3] = turned<3>(out[3]);
    quarter_rounds(out);
    out[1] = turned<3>(out[1]), out[2] = turned<2>(out[2]), out[3] = turned<1>(out[3]);
  }
  for (int i = 0; i < 4; ++i) out[i] += start[i];
}

// A child's, of its parent's. No system call: a program may have forbidden itself to ask.
void derive_key() {
  const std::uint64_t child =
      of_process.load(std::memory_order_acquire)->noted.load(std::memory_order_relaxed) << 32 ^
      microseconds();
  Row block[4];
  compute_block(next_block.fetch_add(1, std::memory_order_relaxed), child | 1, block);
  key = {{block[0], block[1]}};
}

// Returns false while another thread, or the one that a signal handler interrupted, makes the key.
HZ_SLOW bool make_key() {
  std::uint32_t expected = kUnkeyed;
  // Acquire: pairs with the release below.
  if (!state().compare_exchange_strong(expected, kBeingKeyed, std::memory_order_acquire))
    return expected == kKeyed;
  has_key ? derive_key() : system_random(&key, sizeof key);
  has_key = true;
  state().store(kKeyed, std::memory_order_release);  // a thread that sees that sees the key
  return true;
}

}  // namespace

void random_bytes(void* out, std::size_t bytes) {
  // Acquire: pairs with make_key().
  if (state().load(std::memory_order_acquire) != kKeyed && !make_key()) return system_random(out, bytes);
  auto* to = static_cast<unsigned char*>(out);
  // Relaxed: a block needs only a number that no other one has.
  std::uint64_t number = next_block.fetch_add((bytes + kBlock - 1) / kBlock, std::memory_order_relaxed);
  for (std::size_t n; bytes != 0; bytes -= n, to += n) {
    Row block[4];
    compute_block(number++, 0, block);
    n = bytes < kBlock ? bytes : kBlock;
    copy_bytes(to, block, n);
  }
}

std::uint64_t random_word() {
  std::uint64_t word = 0;
  random_bytes(&word, sizeof word);
  return word;
}

// Relaxed: this process has one thread, or the others wait. Zero already where the system made it so.
void renew_random() {
  if (state().load(std::memory_order_relaxed) != kUnkeyed) state().store(kUnkeyed, std::memory_order_relaxed);
}

}  // namespace hz::os
