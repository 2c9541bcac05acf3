// SPDX-License-Identifier: Apache-2.0
//
// Filters on system calls, by name: what is not allowed ends the process, what is refused answers with an
// error. Called by tests of programs that restrict themselves.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hz_test {

struct NamedCall {
  const char* name;
  long number;
};

// All that the tests name.
inline constexpr NamedCall kCalls[] = {
#define HZ_CALL(name) \
  { #name, SYS_##name }
#ifdef SYS_access
    HZ_CALL(access),
    HZ_CALL(arch_prctl),
    HZ_CALL(open),
    HZ_CALL(poll),
    HZ_CALL(readlink),
    HZ_CALL(select),
    HZ_CALL(time),
#endif
    HZ_CALL(accept4),
    HZ_CALL(bind),
    HZ_CALL(brk),
    HZ_CALL(clock_gettime),
    HZ_CALL(clock_nanosleep),
    HZ_CALL(clone),
    HZ_CALL(clone3),
    HZ_CALL(close),
    HZ_CALL(close_range),
    HZ_CALL(execve),
    HZ_CALL(exit),
    HZ_CALL(exit_group),
    HZ_CALL(faccessat),
    HZ_CALL(fcntl),
    HZ_CALL(fstat),
    HZ_CALL(futex),
    HZ_CALL(getcpu),
    HZ_CALL(getcwd),
    HZ_CALL(getdents64),
    HZ_CALL(geteuid),
    HZ_CALL(getpgid),
    HZ_CALL(getpid),
    HZ_CALL(getrandom),
    HZ_CALL(getresuid),
    HZ_CALL(getsockopt),
    HZ_CALL(gettid),
    HZ_CALL(gettimeofday),
    HZ_CALL(getuid),
    HZ_CALL(ioctl),
    HZ_CALL(kill),
    HZ_CALL(listen),
    HZ_CALL(lseek),
    HZ_CALL(madvise),
    HZ_CALL(membarrier),
    HZ_CALL(mmap),
    HZ_CALL(mprotect),
    HZ_CALL(mremap),
    HZ_CALL(munmap),
    HZ_CALL(nanosleep),
    HZ_CALL(newfstatat),
    HZ_CALL(openat),
    HZ_CALL(ppoll),
    HZ_CALL(prctl),
    HZ_CALL(pread64),
    HZ_CALL(prlimit64),
    HZ_CALL(pselect6),
    HZ_CALL(read),
    HZ_CALL(readlinkat),
    HZ_CALL(recvfrom),
    HZ_CALL(renameat),
    HZ_CALL(rseq),
    HZ_CALL(rt_sigaction),
    HZ_CALL(rt_sigpending),
    HZ_CALL(rt_sigprocmask),
    HZ_CALL(rt_sigreturn),
    HZ_CALL(rt_sigtimedwait),
    HZ_CALL(sched_getaffinity),
    HZ_CALL(sched_setaffinity),
    HZ_CALL(sched_setscheduler),
    HZ_CALL(sched_yield),
    HZ_CALL(sendto),
    HZ_CALL(set_robust_list),
    HZ_CALL(set_tid_address),
    HZ_CALL(shutdown),
    HZ_CALL(socket),
    HZ_CALL(sysinfo),
    HZ_CALL(tgkill),
    HZ_CALL(tkill),
    HZ_CALL(unlinkat),
    HZ_CALL(wait4),
    HZ_CALL(write),
    HZ_CALL(writev),
#undef HZ_CALL
};

// -1 if it is not among them.
inline long CallNumber(const std::string& name) {
  for (const NamedCall& call : kCalls)
    if (name == call.name) return call.number;
  return -1;
}

// Words between blanks.
inline std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

// Of all threads of the process, and of what it executes. In order: the first that matches a call decides.
class SyscallFilter {
 public:
  explicit SyscallFilter(unsigned otherwise) : otherwise_(otherwise) {
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  }
  void Decide(long number, unsigned action) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    Add(BPF_STMT(BPF_RET | BPF_K, action));
  }
  // Where the argument's low word, of these bits, has this value.
  void DecideWhere(long number, unsigned argument, unsigned mask, unsigned value, unsigned action) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 5));
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 static_cast<unsigned>(offsetof(seccomp_data, args)) + 8 * argument));
    Add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    Add(BPF_STMT(BPF_RET | BPF_K, action));
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  }
  bool Install() {
    Add(BPF_STMT(BPF_RET | BPF_K, otherwise_));
    const sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  void Add(sock_filter instruction) { code_.push_back(instruction); }

  unsigned otherwise_;
  std::vector<sock_filter> code_;
};

}  // namespace hz_test
