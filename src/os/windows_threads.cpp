// SPDX-License-Identifier: Apache-2.0
//
// Windows: the ends of threads, a thread of ours, waits, and a memory barrier on all threads of the process.
// See os.hpp for the contract; called when threads begin and end, by threads that wait for a lock, by the
// purger, and by threads that revoke caches of others.
#define WIN32_LEAN_AND_MEAN
#include <errno.h>
#include <windows.h>

#include <atomic>
#include <utility>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/windows.hpp"

extern "C" BOOLEAN NTAPI RtlDllShutdownInProgress();

namespace hz::os {
namespace {

// --- the ends of threads: a callback that the loader calls in each thread, for programs and DLLs alike. (A
// fibre-local value would be asked about at the end of each fibre, in whatever thread that is.)

constexpr unsigned kHooks = 16;  // more than there are lines
void (*hooks[kHooks])(void*) = {};
std::atomic<unsigned> hook_count{0};
thread_local void* armed[kHooks] = {};

void NTAPI on_thread(void*, DWORD reason, void*) {
  if (reason != DLL_THREAD_DETACH) return;
  constexpr int kRounds = 4;                                          // as POSIX has them at least
  const unsigned count = hook_count.load(std::memory_order_acquire);  // pairs with create_exit_hook()
  for (int round = 0; round < kRounds; ++round)
    for (unsigned key = 0; key < count; ++key)
      if (void* const state = std::exchange(armed[key], nullptr)) hooks[key](state);
}

// After the C runtime's own, which call the destructors of thread_local objects.
__attribute__((section(".CRT$XLY"), used)) void (*const callback)(void*, DWORD, void*) = &on_thread;

DWORD WINAPI begin(void* run) {
  reinterpret_cast<void (*)()>(run)();
  return 0;
}

}  // namespace

bool create_exit_hook(void (*at_thread_exit)(void*), unsigned* key) {
  const unsigned next = hook_count.load(std::memory_order_relaxed);
  if (next == kHooks) return false;
  hooks[next] = at_thread_exit;
  hook_count.store(next + 1, std::memory_order_release);  // pairs with on_thread()
  *key = next;
  return true;
}

bool arm_exit_hook(unsigned key, void* state) {
  armed[key] = state;
  return true;
}

bool start_thread(const OwnThread& thread) {
  const KeepLastError keep;
  constexpr std::size_t kStack = 128 * kKiB;
  const HANDLE handle = CreateThread(nullptr, kStack, &begin, reinterpret_cast<void*>(thread.run),
                                     STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  if (handle == nullptr) return false;
  CloseHandle(handle);
  return true;
}

void note_process() {}
bool is_noted_process() { return true; }
bool has_one_thread() { return false; }
bool may_have_threads() { return false; }

void prepare_barrier() {}

bool barrier_on_all_threads() {
  const KeepLastError keep;
  FlushProcessWriteBuffers();
  return true;
}

bool is_process_ending() { return RtlDllShutdownInProgress() != FALSE; }

// When a process ends, Windows ends its other threads wherever they are, and calls DLLs then. A thread that
// waits now would wait for one of them, and deadlock. The process ends here, as it would at a lock of
// Windows.
void wait_on(const std::uint32_t* word, std::uint32_t while_value) {
  constexpr UINT kLikeWindows = 0xC000004B;  // STATUS_THREAD_IS_TERMINATING
  if (is_process_ending()) TerminateProcess(GetCurrentProcess(), kLikeWindows);
  wait_at_most(word, while_value, INFINITE);
}

void wait_at_most(const std::uint32_t* word, std::uint32_t while_value, unsigned milliseconds) {
  const KeepLastError keep;
  WaitOnAddress(const_cast<std::uint32_t*>(word), &while_value, sizeof while_value, milliseconds);
}

void wake_one(const std::uint32_t* word) { WakeByAddressSingle(const_cast<std::uint32_t*>(word)); }

void give_way() { SwitchToThread(); }

// Files are the process's, and there are no control sockets.
int leave_files() { return 0; }
int open_control() { return ENOTSUP; }
void serve_control(unsigned, std::size_t (*)(const Request&, char*, std::size_t)) {}
bool are_last_threads(unsigned) { return false; }

}  // namespace hz::os
