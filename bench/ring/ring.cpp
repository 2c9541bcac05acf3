// SPDX-License-Identifier: Apache-2.0
//
// The program `ring`: runs one ring lane once under whatever allocator the process has, and prints one JSON record on
// one line. Started by bench/compare.py with LD_PRELOAD, or by hand.
//
// The moments of a run, each known to all threads by a barrier:
//   empty    before the harness has any memory
//   start    fair: all workers leave the barrier, and time runs from the first that does;
//            upstream: no barrier, time runs from before the first worker is created
//   end      the last worker's last operation
//   idle     every block freed, workers alive at a barrier, 50 ms later
//   after    workers joined, harness memory unmapped, 50 ms later
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "ring/churn.hpp"
#include "ring/lanes.hpp"
#include "ring/options.hpp"
#include "ring/spsc_ring.hpp"
#include "support/mapping.hpp"
#include "support/probe.hpp"
#include "support/process.hpp"

#ifndef HZ_BENCH_FLAGS
#define HZ_BENCH_FLAGS "unknown"
#endif

namespace hz::bench {
namespace {

constexpr long kSettleMs = 50;
constexpr std::size_t kStackBytes = 2 * 1024 * 1024;  // address space; an allocator may put much thread-local data here

struct SystemAllocator {
  static void* allocate(std::size_t size) { return std::malloc(size); }
  static void release(void* p) { std::free(p); }
};

struct Gates {
  pthread_barrier_t start;    // workers and main; fair only
  pthread_barrier_t ended;    // workers; upstream only: leftovers are freed after everybody's time has stopped
  pthread_barrier_t parked;   // workers and main: everything is freed
  pthread_barrier_t release;  // workers and main: workers may exit

  explicit Gates(unsigned workers) {
    pthread_barrier_init(&start, nullptr, workers + 1);
    pthread_barrier_init(&ended, nullptr, workers);
    pthread_barrier_init(&parked, nullptr, workers + 1);
    pthread_barrier_init(&release, nullptr, workers + 1);
  }
};

struct alignas(64) Worker {
  Churn<SystemAllocator> churn;
  Gates& gates;
  const Options& options;
  unsigned index;
  pthread_t thread{};
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  Counts counts{};  // as they stood at the end of the timed region

  void run_fair() {
    pthread_barrier_wait(&gates.start);
    started_ns = now_ns();
    churn.iterate(make_random<Mode::kFair>(options.seed, index));
    churn.finish();
    churn.drain_to_end();
    ended_ns = now_ns();
    counts = churn.counts();
  }

  void run_upstream() {
    churn.iterate(make_random<Mode::kUpstream>(options.seed, index));
    ended_ns = now_ns();
    counts = churn.counts();
    pthread_barrier_wait(&gates.ended);
    churn.finish();
    churn.drain_to_end();
  }

  static void* entry(void* self) {
    Worker& worker = *static_cast<Worker*>(self);
    if (worker.options.mode == Mode::kFair) {
      worker.run_fair();
    } else {
      worker.run_upstream();
    }
    pthread_barrier_wait(&worker.gates.parked);
    pthread_barrier_wait(&worker.gates.release);
    return nullptr;
  }
};

// Hands out the harness's memory from one mapping; nothing is ever given back one by one.
class Carver {
 public:
  explicit Carver(const Mapping& mapping) : at_(mapping.data()) {}
  template <class T>
  T* take(std::size_t count) {
    T* result = reinterpret_cast<T*>(at_);
    at_ += padded<T>(count);
    return result;
  }
  template <class T>
  static std::size_t padded(std::size_t count) {
    return (count * sizeof(T) + 63) / 64 * 64;
  }

 private:
  std::byte* at_;
};

struct Result {
  Counts counts;
  double seconds = 0;
  std::uint64_t high_water = 0;
  std::uint64_t empty_kib = 0;
  std::uint64_t idle_kib = 0;
  std::uint64_t after_kib = 0;
  std::uint64_t peak_kib = 0;
  std::uint64_t harness_kib = 0;
  std::uint64_t stacks_kib = 0;
  Usage usage{};
};

void create(Worker& worker, std::byte* stack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Stacks of ours, because the C library keeps those it made after the join, which would count as `after`.
  int error = pthread_attr_setstack(&attributes, stack, kStackBytes);
  if (error == 0) error = pthread_create(&worker.thread, &attributes, Worker::entry, &worker);
  if (error != 0) {
    std::fprintf(stderr, "ring: cannot create thread %u (error %d)\n", worker.index, error);
    std::exit(3);
  }
  pthread_attr_destroy(&attributes);
}

Result run(const Options& options) {
  Result result;
  result.empty_kib = rss_kib();
  const unsigned threads = options.threads;
  const Lane& lane = options.lane;

  const std::size_t bytes = Carver::padded<Gates>(1) + Carver::padded<Worker>(threads) +
                            Carver::padded<SpscRing>(threads) +
                            threads * (Carver::padded<void*>(lane.slots) + Carver::padded<void*>(lane.ring));
  Mapping memory(bytes, true);
  Mapping stacks(threads * kStackBytes, false);
  Carver carver(memory);
  Gates& gates = *new (carver.take<Gates>(1)) Gates(threads);
  Worker* workers = carver.take<Worker>(threads);
  SpscRing* rings = carver.take<SpscRing>(threads);
  for (unsigned i = 0; i < threads; ++i) new (rings + i) SpscRing(carver.take<void*>(lane.ring), lane.ring);
  for (unsigned i = 0; i < threads; ++i) {
    SpscRing& receive = rings[(i + threads - 1) % threads];
    new (workers + i)
        Worker{Churn<SystemAllocator>(lane, options.touch, carver.take<void*>(lane.slots), rings[i], receive), gates,
               options, i};
  }

  const bool fair = options.mode == Mode::kFair;
  Usage before = Usage::now();
  std::uint64_t start = now_ns();
  for (unsigned i = 0; i < threads; ++i) create(workers[i], stacks.data() + i * kStackBytes);
  if (fair) {
    before = Usage::now();
    pthread_barrier_wait(&gates.start);
  }
  pthread_barrier_wait(&gates.parked);
  result.usage = Usage::now().since(before);

  sleep_ms(kSettleMs);
  result.idle_kib = rss_kib();
  result.harness_kib = memory.resident_kib();
  result.stacks_kib = stacks.resident_kib();

  pthread_barrier_wait(&gates.release);
  for (unsigned i = 0; i < threads; ++i) pthread_join(workers[i].thread, nullptr);
  if (fair) start = UINT64_MAX;
  std::uint64_t end = 0;
  for (unsigned i = 0; i < threads; ++i) {
    if (fair) start = std::min(start, workers[i].started_ns);
    end = std::max(end, workers[i].ended_ns);
    result.counts += workers[i].counts;
    result.high_water = std::max(result.high_water, rings[i].high_water());
  }
  result.seconds = static_cast<double>(end - start) * 1e-9;
  memory.release();
  stacks.release();
  sleep_ms(kSettleMs);
  result.after_kib = rss_kib();
  // The kernel's peak comes from counters that lag by some pages; what was read exactly is a lower bound.
  result.peak_kib = std::max({peak_rss_kib(), result.idle_kib, result.after_kib});
  return result;
}

void print(const Options& options, const Result& result) {
  using Number = unsigned long long;
  const Lane& lane = options.lane;
  const Counts& counts = result.counts;
  const AllocatorProbe allocator = probe_allocator();
  const std::uint64_t ops = counts.ops(options.mode);
  std::printf("{\"lane\":\"%.*s\",\"mode\":\"%s\",\"threads\":%u,\"iterations\":%llu,\"remote_percent\":%u,",
              static_cast<int>(lane.name.size()), lane.name.data(), options.mode == Mode::kFair ? "fair" : "upstream",
              options.threads, static_cast<Number>(lane.iterations), lane.remote_percent);
  std::printf("\"touched\":%s,\"seed\":%llu,\"ops\":%llu,\"seconds\":%.9f,\"ops_per_s\":%.0f,",
              options.touch ? "true" : "false", static_cast<Number>(options.seed), static_cast<Number>(ops),
              result.seconds, static_cast<double>(ops) / result.seconds);
  std::printf("\"rss_peak_kib\":%llu,\"rss_idle_kib\":%llu,\"rss_after_kib\":%llu,\"rss_empty_kib\":%llu,",
              static_cast<Number>(result.peak_kib), static_cast<Number>(result.idle_kib),
              static_cast<Number>(result.after_kib), static_cast<Number>(result.empty_kib));
  std::printf("\"harness_kib\":%llu,\"stacks_kib\":%llu,\"ring_high_water\":%llu,\"sends\":%llu,\"fallbacks\":%llu,",
              static_cast<Number>(result.harness_kib), static_cast<Number>(result.stacks_kib),
              static_cast<Number>(result.high_water), static_cast<Number>(counts.sent),
              static_cast<Number>(counts.fallbacks));
  std::printf("\"dirty\":%s,\"minor_faults\":%ld,\"major_faults\":%ld,", counts.dirty() ? "true" : "false",
              result.usage.minor_faults, result.usage.major_faults);
  std::printf("\"voluntary_switches\":%ld,\"involuntary_switches\":%ld,\"cpu_seconds\":%.6f,",
              result.usage.voluntary_switches, result.usage.involuntary_switches, result.usage.cpu_seconds);
  std::printf("\"allocator\":\"%s\",\"allocator_file\":\"%s\",\"flags\":\"%s\",\"pid\":%ld}\n", allocator.name,
              allocator.file, HZ_BENCH_FLAGS, static_cast<long>(getpid()));
}

}  // namespace
}  // namespace hz::bench

int main(int argc, char** argv) {
  const hz::bench::Options options = hz::bench::parse_options(argc, argv);
  hz::bench::print(options, hz::bench::run(options));
  return 0;
}
