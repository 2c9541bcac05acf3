// SPDX-License-Identifier: Apache-2.0
//
// Runs the workers of a lane, each on a thread of its own, takes the time and reads the moments from `start`
// to `idle`. Called by the run function of every family; main reads `empty` before it and `after` behind it.
//
// A worker has two functions, called once each on its thread:
//   timed()    the timed region. fair: from a barrier of all workers; ends with everything freed
//   untimed()  when the time of all workers has stopped: what upstream runs leave to be freed; usually empty
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "lane/lane.hpp"
#include "lane/moments.hpp"
#include "lane/record.hpp"
#include "support/harness_memory.hpp"
#include "support/process.hpp"
#include "support/stacks.hpp"

namespace hz::bench {

// Where `parties` threads wait for each other; lives in harness memory.
class Gate {
 public:
  explicit Gate(unsigned parties) { pthread_barrier_init(&barrier_, nullptr, parties); }
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

struct Gates {
  explicit Gates(unsigned workers)
      : start(workers + 1), ended(workers), parked(workers + 1), leave(workers + 1) {}
  Gate start;   // workers and main; fair only
  Gate ended;   // workers: everybody's time has stopped
  Gate parked;  // workers and main: everything is freed
  Gate leave;   // workers and main: workers may exit
};

// On the stack `which`. `entry` must decrement alive_workers as its last act.
inline pthread_t start_thread(const Stacks& stacks, unsigned which, void* (*entry)(void*), void* argument) {
  pthread_t thread{};
  alive_workers.fetch_add(1, std::memory_order_relaxed);
  if (stacks.start(which, thread, entry, argument) != 0) fail("cannot create a thread");
  return thread;
}

template <class Worker>
struct alignas(64) Station {
  Worker& worker;
  Gates& gates;
  bool fair;
  pthread_t thread{};
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;

  static void* entry(void* self) {
    Station& station = *static_cast<Station*>(self);
    if (station.fair) station.gates.start.wait();
    station.started_ns = now_ns();
    station.worker.timed();
    station.ended_ns = now_ns();
    station.gates.ended.wait();
    station.worker.untimed();
    station.gates.parked.wait();
    station.gates.leave.wait();
    alive_workers.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
};

inline void read_idle(const HarnessMemory& memory, unsigned workers, Record& record) {
  sleep_ms(record.settle_ms);
  record.moments.read(Moment::kIdle, workers);
  record.harness_kib = memory.resident_kib();
  if (record.rest_ms == 0) return;
  if (record.rest_ms > record.settle_ms) sleep_ms(record.rest_ms - record.settle_ms);
  record.rested_kib = rss_kib();
}

// `workers` has run.threads entries, in `memory`. fair: time runs from the first worker's start to the last
// one's end; upstream: from before the first is created.
template <class Worker>
void run_crew(const Run& run, HarnessMemory& memory, Worker* workers, Record& record) {
  const bool fair = run.mode == Mode::kFair;
  const unsigned threads = run.threads;
  Gates& gates = *new (memory.take<Gates>(1)) Gates(threads);
  auto* stations = memory.take<Station<Worker>>(threads);
  const Stacks stacks(threads);
  for (unsigned i = 0; i < threads; ++i) new (stations + i) Station<Worker>{workers[i], gates, fair};

  if (!fair) record.moments.read(Moment::kStart, 0);
  std::uint64_t start = fair ? UINT64_MAX : now_ns();
  for (unsigned i = 0; i < threads; ++i) {
    stations[i].thread = start_thread(stacks, i, Station<Worker>::entry, stations + i);
  }
  if (fair) {
    record.moments.read(Moment::kStart, threads);
    gates.start.wait();
  }
  gates.parked.wait();
  record.moments.read(Moment::kEnd, threads);
  read_idle(memory, threads, record);
  record.stacks_kib = stacks.resident_kib();
  gates.leave.wait();

  std::uint64_t end = 0;
  for (unsigned i = 0; i < threads; ++i) {
    pthread_join(stations[i].thread, nullptr);
    if (fair) start = std::min(start, stations[i].started_ns);
    end = std::max(end, stations[i].ended_ns);
  }
  record.seconds = static_cast<double>(end - start) * 1e-9;
}

// One worker on the program's only thread: a C library is faster while a process has never had a second one,
// and so are the programs that such a lane stands for.
template <class Worker>
void run_alone(HarnessMemory& memory, Worker& worker, Record& record) {
  record.moments.read(Moment::kStart, 0);
  const std::uint64_t start = now_ns();
  worker.timed();
  record.seconds = static_cast<double>(now_ns() - start) * 1e-9;
  worker.untimed();
  record.moments.read(Moment::kEnd, 0);
  read_idle(memory, 0, record);
}

}  // namespace hz::bench
