// SPDX-License-Identifier: Apache-2.0
//
// A profiler's signal may come at any instruction of ours, and its handler walks the stack. Here it comes at
// every one: the processor stops after each instruction (trap flag), and where that was in our library the
// walk must reach the function that called it. Hot and slow paths, birth and end of a thread. x86-64 only.
#include <gtest/gtest.h>
#include <link.h>
#include <sys/ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <csignal>
#include <cstdint>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"

namespace hz_test {
namespace {

#if defined(__x86_64__)

struct Range {
  std::uintptr_t low = 0, high = 0;
};

// Where the code of our library lies.
Range LibraryCode() {
  Range range;
  range.low = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "hz_malloc"));
  const auto visit = [](dl_phdr_info* object, std::size_t, void* data) {
    auto* found = static_cast<Range*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      const std::uintptr_t low = object->dlpi_addr + segment.p_vaddr;
      if (segment.p_type != PT_LOAD || found->low < low || found->low >= low + segment.p_memsz) continue;
      *found = {low, low + segment.p_memsz};
      return 1;
    }
    return 0;
  };
  EXPECT_EQ(1, dl_iterate_phdr(visit, &range));
  return range;
}

Range library;
std::uintptr_t target = 0;  // the function that the walk must reach
std::uint64_t walks = 0, instructions = 0, lost = 0;
constexpr std::uint8_t kEnough = 40;  // walks from one instruction
std::uint8_t seen_at[1 << 20] = {};
std::uintptr_t lost_at[8] = {};

_Unwind_Reason_Code Visit(_Unwind_Context* context, void* reached) {
  if (_Unwind_GetRegionStart(context) != target) return _URC_NO_REASON;
  *static_cast<bool*>(reached) = true;
  return _URC_END_OF_STACK;
}

// A breakpoint starts the stepping; the first step after it is no longer wanted ends it.
volatile bool stepping = false;
void OnTrap(int, siginfo_t* info, void* data) {
  constexpr greg_t kTrapFlag = 0x100;
  auto& registers = static_cast<ucontext_t*>(data)->uc_mcontext.gregs;
  if (!stepping) {
    registers[REG_EFL] &= ~kTrapFlag;
    return;
  }
  if (info->si_code != TRAP_TRACE) {
    registers[REG_EFL] |= kTrapFlag;
    return;
  }
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (at < library.low || at >= library.high) return;
  std::uint8_t& seen = seen_at[(at - library.low) % sizeof seen_at];
  if (seen == kEnough) return;
  if (seen++ == 0) ++instructions;
  bool reached = false;
  _Unwind_Backtrace(&Visit, &reached);
  ++walks;
  if (reached) return;
  if (lost < 8) lost_at[lost] = at;
  ++lost;
}

__attribute__((noinline)) void StartStepping() {
  stepping = true;
  asm volatile("int3" ::: "memory");
}
void StopStepping() { stepping = false; }

__attribute__((noinline)) void PathsOfOneThread() {
  std::vector<void*> blocks(400);
  StartStepping();
  for (std::size_t size : {16, 1000, 5000, 200000}) {
    const std::size_t count = size <= 100 ? 400 : size <= 5000 ? 150 : 4;
    for (std::size_t i = 0; i < count; ++i) blocks[i] = api::Malloc(size);
    for (std::size_t i = 0; i < count; ++i) api::Free(blocks[i]);
    api::Free(api::AlignedAlloc(4096, size));
    if (size > 5000) continue;  // bytes that are cleared or copied cost a trap each
    void* block = Opaque(std::calloc(1, size));
    block = api::Realloc(block, size * 2);
    block = api::Realloc(block, size / 2);
    api::Free(block);
  }
  api::Trim();  // pages move to where there are none; bytes would cost a trap each
  void* huge = api::Malloc(std::size_t{5} << 20);
  void* behind = api::Malloc(std::size_t{5} << 20);
  huge = api::Realloc(huge, std::size_t{16} << 20);  // it has to move
  api::Free(behind);
  api::Free(huge);
  api::Trim();
  StopStepping();
}

// The first malloc of a thread, blocks of a stranger, and the thread's end.
__attribute__((noinline)) void PathsOfAnother(void** blocks, std::size_t count) {
  StartStepping();
  for (std::size_t i = 0; i < count; ++i) {
    api::Free(blocks[i]);
    blocks[i] = api::Malloc(100);
  }
  StopStepping();
}

void* InAnother(void* data) {
  PathsOfAnother(static_cast<void**>(data), 600);
  return nullptr;
}

template <class Function>
std::uintptr_t StartOf(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

void Report() {
  std::printf("%zu walks from %zu instructions\n", std::size_t{walks}, std::size_t{instructions});
  EXPECT_EQ(0U, lost) << "of " << walks << " walks from " << instructions << " instructions";
  for (std::size_t i = 0; i < lost && i < 8; ++i) {
    ADD_FAILURE() << "lost at library offset 0x" << std::hex << lost_at[i] - library.low;
  }
}

class Unwinding : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kGlibc) GTEST_SKIP() << "no walk leaves a signal handler: musl's return from one has no tables";
    walks = instructions = lost = 0;
    std::fill(std::begin(seen_at), std::end(seen_at), std::uint8_t{0});
    library = LibraryCode();
    struct sigaction action = {};
    action.sa_sigaction = &OnTrap;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(0, sigaction(SIGTRAP, &action, nullptr));
  }
};

TEST_F(Unwinding, AtEveryInstruction) {
  const Watchdog watchdog;
  target = StartOf(&PathsOfOneThread);
  PathsOfOneThread();
  EXPECT_GT(instructions, IsTiny() ? 1000U : 2000U) << "our library was hardly seen";
  Report();
}

TEST_F(Unwinding, AtEveryInstructionOfAYoungThread) {
  const Watchdog watchdog;
  void* blocks[600];
  for (void*& block : blocks) block = api::Malloc(200);
  target = StartOf(&PathsOfAnother);
  pthread_t thread;
  ASSERT_EQ(0, pthread_create(&thread, nullptr, &InAnother, blocks));
  ASSERT_EQ(0, pthread_join(thread, nullptr));
  for (void* block : blocks) api::Free(block);
  EXPECT_GT(instructions, IsTiny() ? 400U : 800U) << "our library was hardly seen";
  Report();
}

#else

TEST(Unwinding, AtEveryInstruction) {
  GTEST_SKIP() << "only x86-64 can stop after every instruction by itself";
}

#endif

}  // namespace
}  // namespace hz_test
