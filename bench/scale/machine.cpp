// SPDX-License-Identifier: Apache-2.0
//
// The machine that a program on simulated cores sees: preloaded into the guest, before the allocator. Each
// thread runs on a processor of its own, of SCALE_CORES that there are; clocks show virtual time; waiting
// with a timeout has none, since virtual time is a thousand times slower than that of the kernel. Who asks
// the kernel instead of the C library is answered by functions of the vDSO, which this library passes itself
// off as. Tells the plugin where malloc and free are, and writes to SCALE_MAP where each file lies and which
// one has malloc.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "scale/page.hpp"

namespace {

using hz::scale::Page;

constexpr long kBillion = 1'000'000'000;

Page* page = nullptr;
long first_nanoseconds = 0;

long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

int cores() {
  static int known = 0;
  if (known == 0) {
    const char* text = getenv("SCALE_CORES");
    known = text != nullptr ? atoi(text) : 1;
  }
  return known;
}

// In the order in which threads ask.
int this_core() {
  static std::atomic<int> asked{0};
  static thread_local int mine = -1;
  if (mine < 0) mine = asked.fetch_add(1, std::memory_order_relaxed) % cores();
  return mine;
}

void all_cores(std::size_t bytes, void* set) {
  memset(set, 0, bytes);
  auto* const words = static_cast<unsigned char*>(set);
  for (int core = 0; core < cores() && static_cast<std::size_t>(core) < bytes * 8; ++core)
    words[core / 8] = static_cast<unsigned char>(words[core / 8] | 1U << core % 8);
}

// QEMU has translated the code already, without a call of the plugin's: pages that come to be writable it
// forgets.
void forget_translation(std::uint64_t code) {
  const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  void* const at = reinterpret_cast<void*>(code & ~(size - 1));
  mprotect(at, size, PROT_READ | PROT_WRITE | PROT_EXEC);
  mprotect(at, size, PROT_READ | PROT_EXEC);
}

int write_file(dl_phdr_info* file, std::size_t, void* to) {
  std::uint64_t end = 0;
  for (int i = 0; i < file->dlpi_phnum; ++i) {
    const auto& part = file->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > end) end = part.p_vaddr + part.p_memsz;
  }
  return dprintf(*static_cast<int*>(to), "%lx %lx %s\n", static_cast<long>(file->dlpi_addr),
                 static_cast<long>(file->dlpi_addr + end), file->dlpi_name) < 0;
}

void write_map() {
  const char* const path = getenv("SCALE_MAP");
  if (path == nullptr) return;
  int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dl_iterate_phdr(&write_file, &to);
  Dl_info has = {};
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &has) != 0) dprintf(to, "malloc %s\n", has.dli_fname);
  close(to);
}

extern "C" const ElfW(Ehdr) __ehdr_start;  // by the linker

// In the place of an entry that the C library has read by now. Before other constructors: an allocator may
// ask as soon as it is called.
void pass_off_as_vdso(char** environment) {
  while (*environment != nullptr) ++environment;
  auto* entry = reinterpret_cast<ElfW(auxv_t)*>(environment + 1);
  while (entry->a_type != AT_NULL && entry->a_type != AT_SYSINFO_EHDR && entry->a_type != AT_CLKTCK) ++entry;
  if (entry->a_type == AT_NULL) abort();
  *entry = {AT_SYSINFO_EHDR, {reinterpret_cast<std::uint64_t>(&__ehdr_start)}};
}

__attribute__((constructor)) void begin(int, char**, char** environment) {
  environ = environment;  // the C library's own constructor comes later
  pass_off_as_vdso(environment);
  write_map();
  void* const at = mmap(reinterpret_cast<void*>(Page::kAt), sizeof(Page), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (at == MAP_FAILED) abort();
  timespec now = {};
  raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&now), 0, 0, 0, 0);
  first_nanoseconds = now.tv_sec * kBillion + now.tv_nsec;
  auto* const shared = static_cast<Page*>(at);
  unsigned known = 0;
  for (const char* name :
       {"malloc", "free", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"})
    if (void* const code = dlsym(RTLD_DEFAULT, name))
      shared->operations[known++] = reinterpret_cast<std::uint64_t>(code);
  shared->ready = 1;
  for (unsigned i = 0; i < known; ++i) forget_translation(shared->operations[i]);
  page = shared;
}

}  // namespace

extern "C" {

long __sysconf(int name);
int get_nprocs(void) noexcept { return cores(); }
int get_nprocs_conf(void) noexcept { return cores(); }
long sysconf(int name) noexcept {
  return name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN ? cores() : __sysconf(name);
}
int sched_getaffinity(pid_t, std::size_t bytes, cpu_set_t* set) noexcept { return all_cores(bytes, set), 0; }
int pthread_getaffinity_np(pthread_t, std::size_t bytes, cpu_set_t* set) noexcept {
  return all_cores(bytes, set), 0;
}
int sched_getcpu(void) noexcept { return this_core(); }
int getcpu(unsigned* core, unsigned* node) noexcept {
  if (core != nullptr) *core = static_cast<unsigned>(this_core());
  if (node != nullptr) *node = 0;
  return 0;
}

long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  if (number == SYS_getcpu) return getcpu(reinterpret_cast<unsigned*>(a[0]), nullptr);
  if (number == SYS_sched_getaffinity) {
    all_cores(static_cast<std::size_t>(a[1]), reinterpret_cast<void*>(a[2]));
    return a[1];
  }
  timespec an_hour = {3600, 0};
  if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && a[3] != 0)
    a[3] = reinterpret_cast<long>(&an_hour);
  const long result = raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (page == nullptr)
    return static_cast<int>(raw_syscall(SYS_clock_gettime, clock, reinterpret_cast<long>(time), 0, 0, 0, 0));
  const long now =
      first_nanoseconds + static_cast<long>(__atomic_load_n(&page->nanoseconds, __ATOMIC_RELAXED));
  *time = {now / kBillion, now % kBillion};
  return 0;
}

int __vdso_getcpu(unsigned* core, unsigned* node, void*) noexcept { return getcpu(core, node); }
int __vdso_clock_gettime(clockid_t clock, timespec* time) noexcept { return clock_gettime(clock, time); }
}
