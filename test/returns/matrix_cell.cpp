// SPDX-License-Identifier: Apache-2.0
//
// One cell of the matrix of memory that comes back: a kind of thread, some bursts of blocks of one kind, a
// circumstance, and which blocks live on. Prints how much more is resident 2 s after the last free than
// before the first malloc, in KiB, the peak, and on how many KiB of pages a block lies that lives; it does
// not wait for so long when what is resident is down to BOUND and 1.1 times those pages. With "works" as the
// last argument it does some work then for up to 6 s, until that is reached. Run by matrix.py, with and
// without a library of ours; allocates nothing else meanwhile.
//
//   matrix_cell THREADS BURSTS BLOCKS CIRCUMSTANCE SURVIVORS BURST-MIB BOUND-KIB sleeps|works
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "returns/patience.hpp"
#include "support/opaque.hpp"
#include "support/rss.hpp"

namespace {

using std::size_t;
constexpr unsigned kWorkers = 4;
constexpr size_t kPage = 4096;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "matrix_cell: %s\n", what);
  _exit(3);
}

// --- the circumstance

// From here on, in all threads, the call fails as in a sandbox that does not know it.
void Refuse(std::initializer_list<unsigned> calls) {
  sock_filter program[16];
  unsigned short n = 0;
  program[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (unsigned call : calls) {
    program[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    program[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1);
  }
  program[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter = {n, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) Fail("no_new_privs");
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0) Fail("seccomp");
}

// --- the load: written in full, freed in another order; its table is not the heap's, and there from the
// start

// Which blocks live on: one in `of`, at random, or the first or the last of those that were made.
struct Survivors {
  enum Which { kAtRandom, kFirst, kLast } which = kAtRandom;
  size_t of = 0;  // 0: none do

  bool has(size_t number, size_t count) const {
    if (of == 0) return false;
    return which == kAtRandom ? number % of == 0
           : which == kFirst  ? number < count / of
                              : number >= count - count / of;
  }
};
Survivors survivors;

struct Load {
  void** blocks = nullptr;
  size_t* pages = nullptr;  // of those that live, a number each
  size_t capacity = 0, count = 0, bytes = 0, size = 0, paged = 0;
  unsigned long long random = 88172645463325252ULL;

  void Open(size_t volume, size_t block, unsigned seed) {
    bytes = volume;
    size = block;
    random += seed * 0x9E3779B97F4A7C15ULL;
    capacity = volume / (size != 0 ? size : 200) + 100;
    blocks = static_cast<void**>(Table(capacity));
    if (survivors.of != 0) pages = static_cast<size_t*>(Table(2 * capacity + volume / kPage));
  }
  static void* Table(size_t words) {
    void* table = mmap(nullptr, words * sizeof(void*), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED) Fail("mmap");
    return table;
  }
  unsigned long long Next() {
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  }
  // Of 0, mixed: 16 bytes to 128 KiB, small ones far more often.
  size_t OneSize() { return size != 0 ? size : 16 + Next() % (size_t{1} << (5 + Next() % 13)); }
  void Make() {
    for (size_t made = 0; made < bytes && count < capacity;) {
      const size_t n = OneSize();
      void* block = hz_test::Opaque(std::malloc(n));
      if (block == nullptr) Fail("malloc");
      std::memset(block, 0xA5, n);
      blocks[count++] = block;
      made += n;
    }
    for (size_t i = count; i > 1 && survivors.which == Survivors::kAtRandom; --i)
      std::swap(blocks[i - 1], blocks[Next() % i]);
  }
  void Free() {
    for (size_t i = 0; i < count; ++i) survivors.has(i, count) ? Note(blocks[i]) : std::free(blocks[i]);
    count = 0;
  }
  void Note(void* block) {
    const auto begin = reinterpret_cast<size_t>(block), end = begin + malloc_usable_size(block);
    for (size_t at = begin / kPage; at <= (end - 1) / kPage; ++at) pages[paged++] = at;
  }
};

// --- the threads

Load loads[kWorkers];
pthread_t threads[kWorkers];
pthread_barrier_t go, made, done;
std::atomic<bool> stop{false};
unsigned bursts = 1;

void* Sleep(void*) {
  for (;;) pause();
}
void* End(void*) { return nullptr; }
// A burst a turn of the barriers; then parked, or gone. All hold their blocks at once: else, on a fast
// machine, one thread's part follows the other's, and the peak is that of one.
template <bool kParks>
void* Work(void* mine) {
  for (unsigned i = 0; i < bursts; ++i) {
    pthread_barrier_wait(&go);
    static_cast<Load*>(mine)->Make();
    pthread_barrier_wait(&made);
    static_cast<Load*>(mine)->Free();
    pthread_barrier_wait(&done);
  }
  if (kParks) Sleep(nullptr);
  return nullptr;
}
void* Churn(void*) {
  void* blocks[64] = {};
  for (unsigned turn = 0; !stop; ++turn) {
    void*& block = blocks[turn % 64];
    std::free(block);
    block = hz_test::Opaque(std::malloc(16 + turn % 97));
    if (turn % 4096 == 0) hz_test::SleepFor(0.0002);  // other cells want a processor, too
  }
  return nullptr;
}

void Start(unsigned count, void* (*work)(void*)) {
  for (unsigned i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], nullptr, work, &loads[i]) != 0) Fail("pthread_create");
  }
}

size_t BlockSize(std::string_view name) {
  if (name == "64") return 64;
  if (name == "100") return 100;
  if (name == "512") return 512;
  if (name == "1000") return 1000;
  if (name == "2048") return 2048;
  if (name == "10000") return 10000;
  if (name == "32768") return 32768;
  if (name == "1M") return hz_test::kMiB;
  if (name == "mixed") return 0;
  Fail("BLOCKS");
}

Survivors WhoLives(std::string_view name) {
  if (name == "none") return {};
  if (name == "thousandth") return {Survivors::kAtRandom, 1000};
  if (name == "twentieth") return {Survivors::kAtRandom, 20};
  if (name == "quarter") return {Survivors::kAtRandom, 4};
  if (name == "first") return {Survivors::kFirst, 20};
  if (name == "last") return {Survivors::kLast, 20};
  Fail("SURVIVORS");
}

void WorkALittle() {
  static void* blocks[2000];
  for (void*& block : blocks) block = hz_test::Opaque(std::malloc(100));
  for (void* block : blocks) std::free(block);
}

// On which a block lies that lives; sorts them, for two blocks may share one.
size_t LivePages() {
  size_t all = 0;
  for (Load& load : loads) {
    std::sort(load.pages, load.pages + load.paged);
    all += static_cast<size_t>(std::unique(load.pages, load.pages + load.paged) - load.pages);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) Fail("usage: THREADS BURSTS BLOCKS CIRCUMSTANCE SURVIVORS BURST-MIB BOUND-KIB sleeps|works");
  const std::string_view kind = argv[1], circumstance = argv[4];
  bursts = static_cast<unsigned>(std::atoi(argv[2]));
  survivors = WhoLives(argv[5]);
  const size_t volume = static_cast<size_t>(std::atoi(argv[6])) * hz_test::kMiB;
  const bool workers = kind == "parked" || kind == "ended";

  const unsigned crew = workers ? kWorkers : 1;
  for (unsigned i = 0; i < crew; ++i) loads[i].Open(volume / crew, BlockSize(argv[3]), i);
  pthread_barrier_init(&go, nullptr, kWorkers + 1);
  pthread_barrier_init(&made, nullptr, kWorkers);
  pthread_barrier_init(&done, nullptr, kWorkers + 1);
  if (kind == "helper") Start(1, &Sleep);
  if (kind == "joined") {
    Start(1, &End);
    pthread_join(threads[0], nullptr);
  }
  if (kind == "busy") Start(1, &Churn);
  if (kind == "parked") Start(kWorkers, &Work<true>);
  if (kind == "ended") Start(kWorkers, &Work<false>);
  if (circumstance == "no-clone") Refuse({SYS_clone, SYS_clone3});
  std::free(hz_test::Opaque(std::malloc(1)));
  hz_test::SleepFor(0.02);  // threads touch their stacks
  const size_t before = hz_test::RssBytes();

  for (unsigned i = 0; i < bursts; ++i) {
    if (workers) {
      pthread_barrier_wait(&go);
      pthread_barrier_wait(&done);
    } else {
      loads[0].Make();
      loads[0].Free();
    }
  }
  for (unsigned i = 0; kind == "ended" && i < kWorkers; ++i) pthread_join(threads[i], nullptr);

  const auto left = [before] {
    const size_t now = hz_test::RssBytes();
    return now > before ? now - before : 0;
  };
  const size_t live = LivePages() * kPage;
  const size_t bound = static_cast<size_t>(std::atoi(argv[7])) * 1024 + live / 10 * 11;
  hz_test::Within(2, [&] { return left() <= bound; });
  if (std::string_view(argv[8]) == "works") {
    hz_test::Within(6, [&] {
      WorkALittle();
      return left() <= bound;
    });
  }
  std::printf("%zu peak %zu live %zu\n", left() / 1024, hz_test::PeakRssBytes() / 1024, live / 1024);
  std::fflush(stdout);
  _exit(0);
}
