// SPDX-License-Identifier: Apache-2.0
//
// Everything that a program does with a heap, on stacks of 16 KiB that end at a page which cannot be touched:
// as a coroutine, as a signal handler on a stack of its own, as a thread of the least size that there is.
// Each call is made with the stack below it painted, so that it shows how deep it went. Preloaded by CTest:
//
//   small_stacks SCENE BYTES     fails if a call took more than BYTES, or if the scene did not do what it is
//   for
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

namespace {

constexpr std::size_t kPage = 4096, kGuard = 64 * 1024;

// What runs with a stack that is to be measured.
struct Stack {
  char* low = nullptr;
  std::size_t deepest = 0;
  const char* what = "nothing";
  unsigned long calls = 0;
};
thread_local Stack stack;

char* Below() {
  char* at;
#if defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(at));
#elif defined(__aarch64__)
  __asm__ volatile("mov %0, sp" : "=r"(at));
#else
#error "how to ask for the stack pointer?"
#endif
  return at;
}

[[noreturn]] void Fail(const char* why) {
  std::fprintf(stderr, "FAILED: %s\n", why);
  std::fflush(stderr);
  _exit(1);
}

// Makes the call, and notes how far below our own frame it wrote. Nothing is called while the paint is fresh.
template <class Call>
__attribute__((noinline)) void Measured(const char* what, Call call) {
  constexpr std::uint64_t kPaint = 0x5A17ED57AC4BED00;
  constexpr std::size_t kRedZone = 128, kPainted = 6 * 1024;
  char* const here = Below();
  char* const end = here - stack.low > static_cast<std::ptrdiff_t>(kPainted) ? here - kPainted : stack.low;
  auto* const low =
      reinterpret_cast<volatile std::uint64_t*>(reinterpret_cast<std::uintptr_t>(end + 7) & ~7UL);
  auto* const high =
      reinterpret_cast<volatile std::uint64_t*>(reinterpret_cast<std::uintptr_t>(here - kRedZone) & ~7UL);
  for (volatile std::uint64_t* at = low; at < high; ++at) *at = kPaint;
  call();
  volatile std::uint64_t* at = low;
  while (at < high && *at == kPaint) ++at;
  const auto depth = static_cast<std::size_t>(here - reinterpret_cast<volatile char*>(at));
  ++stack.calls;
  if (depth > stack.deepest) {
    stack.deepest = depth;
    stack.what = what;
  }
}

// A stack of `bytes` between two pages that cannot be touched.
char* NewStack(std::size_t bytes) {
  void* at = mmap(nullptr, bytes + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(static_cast<char*>(at) + kGuard, bytes, PROT_READ | PROT_WRITE) != 0)
    Fail("no memory for a stack");
  return static_cast<char*>(at) + kGuard;
}

// --- what is done

void Use(void* block, std::size_t size) {
  if (block == nullptr) Fail("no memory");
  std::memset(block, 1, size < 64 ? size : 64);
}

// Sizes of every kind, each once a class: small steps, then eight a doubling.
std::size_t NextSize(std::size_t size) { return size < 128 ? size + 16 : size + size / 8; }
constexpr std::size_t kMostBlocks = 700, kMostBytes = std::size_t{12} << 20, kLargest = std::size_t{24} << 20;

void* blocks[kMostBlocks];

// Enough of each class to fill bins and to empty them, and spans with them.
void EveryClass() {
  for (std::size_t size = 1; size <= kLargest; size = NextSize(size)) {
    std::size_t count = kMostBytes / size;
    if (count > kMostBlocks) count = kMostBlocks;
    for (std::size_t i = 0; i < count; ++i) {
      Measured("malloc", [&] { blocks[i] = std::malloc(size); });
      Use(blocks[i], size);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 16 == 0) {
        Measured("realloc", [&] { blocks[i] = std::realloc(blocks[i], size + size / 2 + 1); });
        Use(blocks[i], size);
      }
      Measured("free", [&] { std::free(blocks[i]); });
    }
    Measured("calloc", [&] { blocks[0] = std::calloc(1, size); });
    Measured("free", [&] { std::free(blocks[0]); });
    Measured("aligned_alloc", [&] { blocks[0] = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096); });
    Use(blocks[0], size);
    Measured("free", [&] { std::free(blocks[0]); });
    Measured("operator new", [&] { blocks[0] = ::operator new(size); });
    Measured("operator delete", [&] { ::operator delete(blocks[0]); });
    Measured("sized operator delete", [&] {
      blocks[0] = ::operator new(size);
      ::operator delete(blocks[0], size);
    });
  }
  void* huge = nullptr;
  for (std::size_t size = std::size_t{5} << 20; size < std::size_t{200} << 20; size *= 2) {
    Measured("realloc of a huge block", [&] { huge = std::realloc(huge, size); });
    Use(huge, size);
  }
  Measured("free of a huge block", [&] { std::free(huge); });
}

// Blocks that another thread has allocated, of many classes at once.
constexpr std::size_t kForeign = 60000;
void* foreign[kForeign];

std::size_t MixedSize(std::size_t i) {
  const std::size_t spread = (i * 2654435761U >> 8) % 100;
  return 16 + spread * spread / (i % 50 == 0 ? 1 : 8);
}
void* AllocateForeign(void*) {
  for (std::size_t i = 0; i < kForeign; ++i) Use(foreign[i] = std::malloc(MixedSize(i)), 16);
  return nullptr;
}
void FreeForeign() {
  for (std::size_t i = 0; i < kForeign; ++i)
    Measured("free of another thread's", [&] { std::free(foreign[i]); });
}

// With HZ_LIMIT_HARD: caches are returned, other threads' too, and then there is none.
void RunOut() {
  struct Block {
    Block* next;
  };
  unsigned refused = 0;
  for (std::size_t size : {std::size_t{1000}, std::size_t{100000}, std::size_t{8} << 20}) {
    Block* all = nullptr;
    for (;;) {
      void* got = nullptr;
      Measured("malloc at the limit", [&] { got = std::malloc(size); });
      if (got == nullptr) break;
      auto* block = static_cast<Block*>(got);
      block->next = all;
      all = block;
    }
    ++refused;
    while (all != nullptr) {
      Block* block = all;
      all = block->next;
      Measured("free at the limit", [&] { std::free(block); });
    }
  }
  if (refused != 3) Fail("nothing was refused");
}

void ForkAndUse() {
  pid_t child = -1;
  child = fork();
  if (child == 0) {
    for (std::size_t size = 16; size < 100000; size = NextSize(size)) {
      void* block = nullptr;
      Measured("malloc in a child", [&] { block = std::malloc(size); });
      Use(block, size);
      Measured("free in a child", [&] { std::free(block); });
    }
    _exit(0);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) Fail("the child of a fork");
}

// --- where it is done

std::size_t limit = 0;

void Judge(const char* where) {
  std::printf("%s: %lu calls, the deepest %zu bytes: %s\n", where, stack.calls, stack.deepest, stack.what);
  if (stack.calls == 0) Fail("nothing was measured");
  if (stack.deepest > limit) Fail("that is more than it may take");
}

constexpr std::size_t kSmall = 16 * 1024;
void (*job)();

#if defined(__GLIBC__)
ucontext_t back, there;

void OnCoroutine(void (*what)()) {
  char* const low = NewStack(kSmall);
  stack = {};
  stack.low = low;
  job = what;
  getcontext(&there);
  there.uc_stack.ss_sp = low;
  there.uc_stack.ss_size = kSmall;
  there.uc_link = &back;
  makecontext(
      &there, [] { job(); }, 0);
  swapcontext(&back, &there);
  Judge("coroutine");
}
#else
void OnCoroutine(void (*)()) {}  // musl has none
#endif

void OnSignalStack(void (*what)()) {
  // What the system lays there for a handler is not ours to bound.
  constexpr unsigned long kLeastSignalStack = 51;  // AT_MINSIGSTKSZ
  const std::size_t bytes = kSmall + getauxval(kLeastSignalStack);
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  stack = {};
  stack.low = NewStack(whole);
  job = what;
  stack_t alternative = {};
  alternative.ss_sp = stack.low;
  alternative.ss_size = whole;
  struct sigaction action = {};
  action.sa_handler = [](int) { job(); };
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&alternative, nullptr) != 0 || sigaction(SIGUSR1, &action, nullptr) != 0)
    Fail("no signal stack");
  raise(SIGUSR1);
  Judge("signal stack");
}

void* Thread(void* low) {
  stack.low = static_cast<char*>(low);
  job();
  Judge("thread");
  return nullptr;
}
// The least that a thread may have, where that is not less than what we promise to do with.
std::size_t LeastThread() { return std::max(static_cast<std::size_t>(PTHREAD_STACK_MIN), kSmall); }
void OnThread(void (*what)()) {
  job = what;
  char* const low = NewStack(LeastThread());
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstack(&attributes, low, LeastThread()) != 0 ||
      pthread_create(&thread, &attributes, &Thread, low) != 0 || pthread_join(thread, nullptr) != 0)
    Fail("no thread");
}

void Everywhere(void (*what)()) {
  OnCoroutine(what);
  OnSignalStack(what);
  OnThread(what);
}

// Threads that end with full bins and a full outbox.
void Fill() {
  for (std::size_t size = 16; size < 200000; size = NextSize(size)) {
    for (std::size_t i = 0; i < 40; ++i) blocks[i] = std::malloc(size);
    for (std::size_t i = 0; i < 40; ++i) std::free(blocks[i]);
  }
  static std::size_t next = 0;
  for (std::size_t end = next + 700; next < end && next < kForeign; ++next)
    Measured("free of another thread's", [&] { std::free(foreign[next]); });
}

void Foreign(void (*where)(void (*)()), void (*what)()) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &AllocateForeign, nullptr) != 0) Fail("no thread");
  pthread_join(thread, nullptr);
  where(what);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  limit = std::strtoul(argv[2], nullptr, 10);
  const auto is = [&](const char* scene) { return std::strcmp(argv[1], scene) == 0; };
  if (is("classes")) {
    Everywhere(&EveryClass);
  } else if (is("foreign")) {
    Foreign(&OnCoroutine, &FreeForeign);
    Foreign(&OnThread, &FreeForeign);
  } else if (is("limit")) {
    Everywhere(&RunOut);
  } else if (is("ends")) {
    Foreign(
        [](void (*what)()) {
          for (int i = 0; i < 40; ++i) OnThread(what);
        },
        &Fill);
  } else if (is("fork")) {
    Everywhere([] {
      ForkAndUse();
      Measured("nothing", [] {});
    });
  } else {
    return 2;
  }
  return 0;
}
