// SPDX-License-Identifier: Apache-2.0
//
// The demonstration: threads churn through blocks of mixed sizes, hand some of them to each other to be freed
// there, and at the end free everything and stay alive. Run by `hz run` without a program, with and without
// us in turn:
//   hz-demo system|LINE [SECONDS]
// The first argument says which allocator must be serving the process; under any other it refuses to run, so
// that no result can carry the wrong name. Prints one line: ops_per_s=… peak_kib=… after_kib=…
#include <dlfcn.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.h"

namespace {

constexpr unsigned kBlocksPerThread = 4096;
constexpr unsigned kMailboxSlots = 256;
constexpr unsigned kHandOverPercent = 25;
constexpr unsigned kOpsPerClockLook = 256;
constexpr std::size_t kPage = 4096;

// A block tells its size and carries a mark at both ends, so that an allocator that mixes up blocks is found
// out.
struct Block {
  std::size_t size;
  std::uintptr_t mark;
};

struct Mailbox {
  std::atomic<Block*> slot[kMailboxSlots];
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint32_t below(std::uint32_t n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<std::uint32_t>((state_ >> 32) * n >> 32);
  }

 private:
  std::uint64_t state_;
};

// Many small, few large, as in most programs; the mean is about 1.6 KiB.
std::size_t random_size(Random& random) {
  const std::uint32_t percentile = random.below(1000);
  if (percentile < 400) return 16 + random.below(48);
  if (percentile < 800) return 64 + random.below(448);
  if (percentile < 950) return 512 + random.below(3584);
  if (percentile < 998) return 4096 + random.below(28672);
  return 65536 + random.below(262144);
}

unsigned char* last_byte(Block* block) { return reinterpret_cast<unsigned char*>(block) + block->size - 1; }

Block* make_block(std::size_t size) {
  auto* block = static_cast<Block*>(std::malloc(size));
  if (block == nullptr) std::abort();
  // One write per page: memory that a program asks for, it uses.
  for (std::size_t at = 0; at < size; at += kPage) reinterpret_cast<unsigned char*>(block)[at] = 1;
  block->size = size;
  block->mark = ~reinterpret_cast<std::uintptr_t>(block);
  if (size > sizeof(Block)) *last_byte(block) = static_cast<unsigned char>(size);
  return block;
}

void free_block(Block* block) {
  if (block == nullptr) return;
  const bool intact =
      block->mark == ~reinterpret_cast<std::uintptr_t>(block) &&
      (block->size <= sizeof(Block) || *last_byte(block) == static_cast<unsigned char>(block->size));
  if (!intact) {
    std::fputs("hz-demo: a block was overwritten by somebody else\n", stderr);
    std::abort();
  }
  std::free(block);
}

// Churns until the deadline; returns the number of calls of malloc and free. Everything is freed at the end
// but for what the neighbours may still put into the mailbox.
std::uint64_t churn(unsigned me, std::vector<Mailbox>& mailboxes,
                    std::chrono::steady_clock::time_point deadline) {
  Random random(me + 1);
  std::vector<Block*> blocks(kBlocksPerThread, nullptr);
  Mailbox& own = mailboxes[me];
  Mailbox& neighbour = mailboxes[(me + 1) % mailboxes.size()];
  std::uint64_t ops = 0;
  while (std::chrono::steady_clock::now() < deadline) {
    for (unsigned i = 0; i < kOpsPerClockLook; ++i) {
      Block*& place = blocks[random.below(kBlocksPerThread)];
      Block* leaving = place;
      place = make_block(random_size(random));
      if (leaving != nullptr && random.below(100) < kHandOverPercent) {
        leaving = neighbour.slot[random.below(kMailboxSlots)].exchange(leaving, std::memory_order_acq_rel);
        free_block(own.slot[random.below(kMailboxSlots)].exchange(nullptr, std::memory_order_acq_rel));
      }
      free_block(leaving);
    }
    ops += 2 * kOpsPerClockLook;
  }
  for (Block* block : blocks) free_block(block);
  return ops;
}

// A line "Name:   123 kB" of /proc/self/status.
long status_kib(const char* name) {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return -1;
  char row[256];
  long kib = -1;
  const std::size_t length = std::strlen(name);
  while (std::fgets(row, sizeof row, status) != nullptr) {
    if (std::strncmp(row, name, length) == 0) kib = std::strtol(row + length, nullptr, 10);
  }
  std::fclose(status);
  return kib;
}

// Who serves malloc: "system" if nobody of us is in the process, the line's name if malloc really is the
// line's, and otherwise words that match nothing.
std::string serving_allocator() {
  void* const line_address = dlsym(RTLD_DEFAULT, "hz_line");
  void* const owns_address = dlsym(RTLD_DEFAULT, "hz_owns");
  Dl_info of_malloc = {}, of_abort = {};
  dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc);
  dladdr(dlsym(RTLD_DEFAULT, "abort"), &of_abort);
  if (line_address == nullptr) {
    const bool from_libc = of_malloc.dli_fbase != nullptr && of_malloc.dli_fbase == of_abort.dli_fbase;
    return from_libc ? "system" : std::string("another allocator: ") + of_malloc.dli_fname;
  }
  void* const probe = std::malloc(100);
  const bool ours = owns_address != nullptr && reinterpret_cast<decltype(&hz_owns)>(owns_address)(probe) != 0;
  std::free(probe);
  return ours ? reinterpret_cast<decltype(&hz_line)>(line_address)()
              : "another allocator, although we are loaded";
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 3 ? std::strtod(argv[2], nullptr) : 1.5;
  if (argc < 2 || argc > 3 || !(seconds > 0)) {
    std::fputs("usage: hz-demo system|LINE [SECONDS]\n", stderr);
    return 2;
  }
  if (const std::string serving = serving_allocator(); serving != argv[1]) {
    std::fprintf(stderr, "hz-demo: refused: expected %s, but malloc is served by %s\n", argv[1],
                 serving.c_str());
    return 3;
  }

  const unsigned cpus = std::thread::hardware_concurrency();
  const unsigned thread_count = cpus < 1 ? 2 : cpus > 8 ? 16 : 2 * cpus;
  std::vector<Mailbox> mailboxes(thread_count);
  std::atomic<std::uint64_t> ops{0};
  std::barrier all_freed(thread_count + 1), measured(thread_count + 1), emptied(thread_count);
  const auto start = std::chrono::steady_clock::now();
  const auto deadline =
      start + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));

  std::vector<std::thread> threads;
  for (unsigned me = 0; me < thread_count; ++me) {
    threads.emplace_back([&, me] {
      ops.fetch_add(churn(me, mailboxes, deadline), std::memory_order_relaxed);
      emptied.arrive_and_wait();
      for (std::atomic<Block*>& slot : mailboxes[me].slot)
        free_block(slot.exchange(nullptr, std::memory_order_acq_rel));
      all_freed.arrive_and_wait();
      measured.arrive_and_wait();
    });
  }
  all_freed.arrive_and_wait();
  const long peak = status_kib("VmHWM:");
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const long after = status_kib("VmRSS:");
  measured.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();

  std::printf("ops_per_s=%.0f peak_kib=%ld after_kib=%ld\n", static_cast<double>(ops.load()) / seconds, peak,
              after);
  return 0;
}
