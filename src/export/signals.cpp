// SPDX-License-Identifier: Apache-2.0
//
// sigaction, signal and the older functions beside them, which show the default action where SIGTERM has
// ours. With HZ_STATS and profiles a handler of ours writes them before SIGTERM ends the process; a program
// that saves the action, sets its own and restores what it saved would find a handler that it did not set,
// which Python's signal module, for one, cannot restore. A program that asks for the default action gets
// ours; of SIGSEGV and SIGBUS, too, where blocks lie on guarded pages: a crash handler that puts the default
// back and returns is followed by our report. sigaction shows ours of these two as they are, for handlers
// hand on to them. signal shows what stands behind ours. Called by programs in place of the C library's;
// costs a load more than these.
#include <errno.h>
#include <signal.h>

#include <atomic>

#include "export/line.hpp"
#include "os/linux_symbols.hpp"
#include "os/posix.hpp"

// The C library's own, for a program without a dynamic linker, which has no next one.
extern "C" int __sigaction(int number, const struct sigaction* wanted, struct sigaction* before) noexcept;

namespace {

using Handler = void (*)(int);

// The next function of that name; looked up once.
template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function get() {
    const Function known = known_.load(std::memory_order_relaxed);
    return HZ_LIKELY(known != nullptr) ? known : find();
  }

 private:
  HZ_COLD Function find() {
    const auto found = reinterpret_cast<Function>(hz::os::next_function(name_));
    known_.store(found, std::memory_order_relaxed);
    return found;
  }
  const char* const name_;
  std::atomic<Function> known_{nullptr};
};
using Act = int (*)(int, const struct sigaction*, struct sigaction*);
constinit Next<Act> next_sigaction("sigaction");
using SetHandler = Handler (*)(int, Handler);
constinit Next<SetHandler> next_signal("signal"), next_sysv_signal("__sysv_signal"), next_sigset("sigset");

int act(int number, const struct sigaction* wanted, struct sigaction* before) {
  const Act next = next_sigaction.get();
  return next != nullptr ? next(number, wanted, before) : __sigaction(number, wanted, before);
}

// What stands for the default action.
const struct sigaction* ours(int number) {
  return number == SIGTERM ? hz::os::termination_action() : hz::os::access_action(number);
}
Handler shown(Handler handler) {
  const struct sigaction* const chosen = hz::os::termination_action();
  return chosen != nullptr && handler == chosen->sa_handler ? SIG_DFL : handler;
}
Handler behind(int number, Handler handler) { return hz::os::behind_access(number, shown(handler)); }

// `flags`: those of the action where the C library's function is not to be had.
Handler set_handler(SetHandler next, int number, Handler handler, int flags) {
  const struct sigaction* wanted = handler == SIG_DFL ? ours(number) : nullptr;
  if (wanted == nullptr && next != nullptr) return behind(number, next(number, handler));
  struct sigaction other = {}, before = {};
  other.sa_handler = handler;
  other.sa_flags = flags;
  return act(number, wanted != nullptr ? wanted : &other, &before) == 0 ? behind(number, before.sa_handler)
                                                                        : SIG_ERR;
}

// While there is one thread: a signal handler may come to these at any time.
__attribute__((constructor)) void at_load() {
  next_sigaction.get();
  next_signal.get();
  next_sysv_signal.get();
  next_sigset.get();
}

}  // namespace

HZ_EXPORT int sigaction(int number, const struct sigaction* wanted, struct sigaction* before) noexcept {
  if (wanted != nullptr && wanted->sa_handler == SIG_DFL) {
    const struct sigaction* const chosen = ours(number);
    if (chosen != nullptr) wanted = chosen;
  }
  if (act(number, wanted, before) != 0) return -1;
  if (before != nullptr && before->sa_handler != SIG_DFL && shown(before->sa_handler) == SIG_DFL) {
    *before = {};
    before->sa_handler = SIG_DFL;
  }
  return 0;
}
HZ_EXPORT Handler signal(int number, Handler handler) noexcept {
  return set_handler(next_signal.get(), number, handler, SA_RESTART);
}
// The C library's other names for signal. They are functions that its headers may not declare.
HZ_EXPORT Handler bsd_signal(int number, Handler handler) noexcept {
  return set_handler(next_signal.get(), number, handler, SA_RESTART);
}
HZ_EXPORT Handler ssignal(int number, Handler handler) noexcept {
  return set_handler(next_signal.get(), number, handler, SA_RESTART);
}
HZ_EXPORT Handler __sysv_signal(int number, Handler handler) noexcept {
  return set_handler(next_sysv_signal.get(), number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}
// Also unblocks the signal, or with SIG_HOLD blocks it. Returns SIG_HOLD if it was blocked.
HZ_EXPORT Handler sigset(int number, Handler handler) noexcept {
  const struct sigaction* const wanted = handler == SIG_DFL ? ours(number) : nullptr;
  const SetHandler next = next_sigset.get();
  if (wanted == nullptr && next != nullptr) {
    const Handler before = next(number, handler);
    return before == SIG_HOLD ? before : behind(number, before);
  }
  sigset_t only, blocked;
  sigemptyset(&only);
  if (sigaddset(&only, number) != 0) return SIG_ERR;
  struct sigaction other = {}, before = {};
  other.sa_handler = handler;
  if (act(number,
          wanted != nullptr     ? wanted
          : handler == SIG_HOLD ? nullptr
                                : &other,
          &before) != 0 ||
      sigprocmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &only, &blocked) != 0)
    return SIG_ERR;
  return sigismember(&blocked, number) == 1 ? SIG_HOLD : behind(number, before.sa_handler);
}
