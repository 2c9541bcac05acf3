// SPDX-License-Identifier: Apache-2.0
//
// Programs of which it is known what passes between cores: known CASE THREADS. Tests of cores.cpp run them.
// A call of free with nothing to free ends each step: it is what the plugin counts, and touches nothing.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

struct alignas(64) Word {
  std::atomic<long> value{0};
};
Word words[128];
Word one, turn, arrived;
std::atomic<long> neighbours[8];  // in one line
static_assert(sizeof neighbours == 64);
long threads = 1;

using Step = void (*)(long mine);

void step_private(long mine) { words[mine].value.fetch_add(1, std::memory_order_relaxed); }
void step_shared(long) { one.value.fetch_add(1, std::memory_order_relaxed); }
void step_token(long mine) {
  while (turn.value.load(std::memory_order_acquire) % threads != mine) sched_yield();
  turn.value.store(turn.value.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}
void step_readers(long mine) {
  if (mine == 0) {
    one.value.store(mine, std::memory_order_relaxed);
  } else {
    static_cast<void>(one.value.load(std::memory_order_relaxed));
  }
  for (int i = 0; i < 100; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}
void step_neighbours(long mine) { neighbours[mine % 8].fetch_add(1, std::memory_order_relaxed); }
void step_reading(long) { static_cast<void>(one.value.load(std::memory_order_relaxed)); }

struct Case {
  std::string_view name;
  Step step;
};
constexpr Case kCases[] = {{"private", step_private},       {"shared", step_shared},
                           {"token", step_token},           {"readers", step_readers},
                           {"neighbours", step_neighbours}, {"reading", step_reading}};
Step chosen = nullptr;

// Steps of one length would run in a cycle that depends on where each core stood when the steps began. In
// some of these cycles a line stays with its core for one step, in others for four. So each step is followed
// by 0 to 15 rounds that do nothing, at random, and the counts are a mean of all cycles.
[[noreturn]] void* run(void* mine) {
  auto random = reinterpret_cast<unsigned long>(mine);
  arrived.value.fetch_add(1);
  while (arrived.value.load() < threads) sched_yield();
  for (;;) {
    chosen(reinterpret_cast<long>(mine));
    std::free(nullptr);
    random = random * 6364136223846793005 + 1442695040888963407;
    for (unsigned long i = random >> 60; i != 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one_case : kCases)
    if (argc == 3 && one_case.name == argv[1]) chosen = one_case.step;
  if (chosen == nullptr) return std::fputs("usage: known CASE THREADS\n", stderr), 2;
  threads = std::atol(argv[2]);
  pthread_t thread{};
  for (long i = 0; i < threads; ++i)
    if (pthread_create(&thread, nullptr, &run, reinterpret_cast<void*>(i)) != 0) return 3;
  pthread_join(thread, nullptr);
}
