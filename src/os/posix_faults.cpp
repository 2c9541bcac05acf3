// SPDX-License-Identifier: Apache-2.0
//
// POSIX: handlers of SIGSEGV and SIGBUS in front of those that the program has by then. See os.hpp for the
// contract; called when the heap opens, if blocks lie on guarded pages, and by the system.
#include <errno.h>
#include <signal.h>
#if defined(__linux__)
#include <ucontext.h>
#endif

#include <atomic>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
constinit struct sigaction before[2] = {};
constinit std::atomic<bool> is_spent[2] = {};  // a handler that was for one time
constinit struct sigaction alone = {};         // ours, in the place of the default action
constinit std::atomic<bool> is_installed{false}, gives_way{false};
using Told = bool (*)(std::uintptr_t at, std::uintptr_t code);
constinit Told is_told = nullptr;

std::uintptr_t code_of([[maybe_unused]] const void* context) {
#if defined(__linux__) && defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  return 0;
#endif
}

// Acts as if our handler were absent. By default the system ends the process when the access faults again, so
// that a core shows its place. A signal that a process sent does not come again by itself.
void hand_on(int signal, siginfo_t* what, void* context, const struct sigaction& to) {
  if (to.sa_handler != SIG_DFL && to.sa_handler != SIG_IGN)
    return (to.sa_flags & SA_SIGINFO) != 0 ? to.sa_sigaction(signal, what, context) : to.sa_handler(signal);
  const bool sent = what->si_code <= 0;
  if (sent && to.sa_handler == SIG_IGN) return;
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  gives_way.store(true, std::memory_order_relaxed);
  sigaction(signal, &usual, nullptr);
  gives_way.store(false, std::memory_order_relaxed);
  if (sent) raise(signal);
}

bool is_ours_to_tell(const siginfo_t* what, const void* context) {
  return what->si_code > 0 && is_told(address(what->si_addr), code_of(context));
}

unsigned index_of(int signal) { return signal == kSignals[0] ? 0 : 1; }

void handle(int signal, siginfo_t* what, void* context) {
  const KeepErrno keep;
  if (is_ours_to_tell(what, context)) return;
  const unsigned which = index_of(signal);
  struct sigaction to = before[which];
  if ((to.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 &&
      is_spent[which].exchange(true, std::memory_order_relaxed)) {
    to = {};
    to.sa_handler = SIG_DFL;
  }
  hand_on(signal, what, context, to);
}

void handle_alone(int signal, siginfo_t* what, void* context) {
  const KeepErrno keep;
  if (is_ours_to_tell(what, context)) return;
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  hand_on(signal, what, context, usual);
}

}  // namespace

// On the handler's own stack where the thread has one: a stack that has run over is no place for it.
bool on_access_fault(bool (*told)(std::uintptr_t at, std::uintptr_t code)) {
  const KeepErrno keep;
  is_told = told;
  for (unsigned i = 0; i < 2; ++i) {
    struct sigaction ours;
    if (sigaction(kSignals[i], nullptr, &ours) != 0) return false;
    if ((ours.sa_flags & SA_SIGINFO) != 0 && ours.sa_sigaction == &handle) continue;
    before[i] = ours;
    ours.sa_flags = (before[i].sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO | SA_ONSTACK;
    ours.sa_sigaction = &handle;
    if (sigaction(kSignals[i], &ours, nullptr) != 0) return false;
  }
  alone.sa_flags = SA_SIGINFO | SA_ONSTACK;
  alone.sa_sigaction = &handle_alone;
  is_installed.store(true, std::memory_order_release);  // pairs with access_action()
  return true;
}

const struct sigaction* access_action(int signal) {
  const bool is_access = signal == kSignals[0] || signal == kSignals[1];
  if (!is_access || gives_way.load(std::memory_order_relaxed)) return nullptr;
  return is_installed.load(std::memory_order_acquire) ? &alone : nullptr;  // acquire: as above
}

void (*behind_access(int signal, void (*handler)(int)))(int) {
  struct sigaction ours = {};
  ours.sa_handler = handler;
  if (ours.sa_sigaction == &handle_alone) return SIG_DFL;
  if (ours.sa_sigaction != &handle) return handler;
  const unsigned which = index_of(signal);
  return is_spent[which].load(std::memory_order_relaxed) ? SIG_DFL : before[which].sa_handler;
}

}  // namespace hz::os
