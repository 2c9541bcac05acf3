// SPDX-License-Identifier: Apache-2.0
//
// Linux: one report at a time, and its call stack, a line for each frame, with names from symbol tables. See
// os.hpp for the contract; called by FaultReport::send.
//
// A walk may come to harm: the C library loads its unwinder for it, which allocates from the heap that was
// just found broken, and waits for the loader's lock, which may never come. So a copy of the process walks,
// made by fork. The process waits for it, and ends it if it takes too long.
// Cost: a fork, a fraction of a microsecond a frame, and a few milliseconds for a file with many symbols.
//
// A name comes from dladdr(), else from the file's own symbol table, which also has functions that are not
// exported. The file's first bytes are compared with the loaded ones: a file that was replaced gives no
// names.
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/text.hpp"
#include "base/units.hpp"
#include "os/calls.hpp"
#include "os/lock.hpp"
#include "os/message.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

// By the linker: the first byte of the library or program that we are in, and the end of its code.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char etext[];
// Weak: before glibc 2.34 it lives in libdl, which we must not need. In a static program it knows nothing.
extern "C" __attribute__((weak)) decltype(dladdr) dladdr;

namespace hz::os {
namespace {

constexpr unsigned kOwnFrames = 12, kTold = 16;
constexpr unsigned kMostStacks = 8;   // for each process, so that a program that goes on floods no log
constexpr unsigned kPatience = 3000;  // milliseconds, for a copy that walks
constexpr std::size_t kLongestName = 200, kLongestPath = 400;
constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};
constexpr const char* kProgram = "/proc/self/exe";

constinit Turn turn;
constinit bool is_copy = false;
// Lock: `turn`.
constinit std::uint64_t told_by = 0;  // the process that `told` counts for
constinit unsigned told = 0;          // stacks so far

// Buffers that are too large for a stack, mapped by the copy.
struct Room {
  ElfW(Sym) symbols[128];
  char name[kLongestName];
  char program[kLongestPath];
};
constinit Room* room = nullptr;

// Searches the symbol table of a file, which it reads piece by piece. The file's contents are not trusted.
class FileSymbols {
 public:
  // `image`: where the file's first byte was loaded.
  FileSymbols(const char* path, const char* image)
      : file_(call::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)), image_(image) {}
  FileSymbols(const FileSymbols&) = delete;
  FileSymbols& operator=(const FileSymbols&) = delete;
  ~FileSymbols() {
    if (file_ >= 0) call::close(file_);
  }

  // Returns the name of the function around an address, or null; `behind` becomes the offset in the function.
  const char* name_at(std::uintptr_t at, std::size_t& behind) {
    ElfW(Shdr) table, names;
    if (!read(&header_, sizeof header_, 0) || !is_loaded() || !find(table, names)) return nullptr;
    const std::uintptr_t value = at - address(image_) + first_page();
    const std::size_t count = table.sh_size / sizeof(ElfW(Sym));
    constexpr std::size_t kAtOnce = sizeof room->symbols / sizeof room->symbols[0];
    for (std::size_t i = 0; i < count; i += kAtOnce) {
      const std::size_t here = count - i < kAtOnce ? count - i : kAtOnce;
      if (!read(room->symbols, here * sizeof(ElfW(Sym)), table.sh_offset + i * sizeof(ElfW(Sym))))
        return nullptr;
      for (std::size_t k = 0; k < here; ++k) {
        const ElfW(Sym)& symbol = room->symbols[k];
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || value - symbol.st_value >= symbol.st_size) continue;
        behind = value - symbol.st_value;
        return read_text(names.sh_offset + symbol.st_name) ? room->name : nullptr;
      }
    }
    return nullptr;
  }

 private:
  static constexpr unsigned kMostSections = 4096;

  bool read(void* out, std::size_t bytes, std::uint64_t from) const {
    return file_ >= 0 && call::pread(file_, out, bytes, from) == static_cast<long>(bytes);
  }
  bool read_text(std::uint64_t from) const {
    const long bytes = call::pread(file_, room->name, kLongestName - 1, from);
    if (bytes <= 0) return false;
    room->name[bytes] = 0;
    return room->name[0] != 0;
  }
  bool is_loaded() const {
    const auto* file = reinterpret_cast<const char*>(&header_);
    for (std::size_t i = 0; i < sizeof header_; ++i)
      if (file[i] != image_[i]) return false;
    return header_.e_phentsize == sizeof(ElfW(Phdr)) && header_.e_shentsize == sizeof(ElfW(Shdr)) &&
           header_.e_phoff == sizeof header_;
  }
  bool find(ElfW(Shdr) & table, ElfW(Shdr) & names) const {
    if (header_.e_shnum > kMostSections) return false;
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      if (!read(&table, sizeof table, header_.e_shoff + i * sizeof table)) return false;
      if (table.sh_type == SHT_SYMTAB && table.sh_link < header_.e_shnum)
        return read(&names, sizeof names, header_.e_shoff + table.sh_link * sizeof names);
    }
    return false;
  }
  // Returns the address that the file has for the first page that was loaded.
  std::uintptr_t first_page() const {
    const auto* part = reinterpret_cast<const ElfW(Phdr)*>(image_ + header_.e_phoff);
    for (unsigned i = 0; i < header_.e_phnum; ++i)
      if (part[i].p_type == PT_LOAD) return part[i].p_vaddr & ~(page_bytes() - 1);
    return 0;
  }

  const long file_;
  const char* const image_;
  ElfW(Ehdr) header_;
};

struct Place {
  const char* path = "";        // of the file; empty: it is not known
  const char* image = nullptr;  // its first byte; null: there is no file
  const char* name = nullptr;   // of the function; null: it is not known
  std::size_t behind = 0;       // the function's beginning
};

// The loader knows the program by the word that it was started by, which may be meant from elsewhere.
const char* path_of_program() {
  const std::size_t bytes = program_path(room->program, sizeof room->program - 1);
  room->program[bytes] = 0;
  return bytes != 0 ? room->program : kProgram;
}
bool is_program(const char* image) { return auxiliary_value(AT_PHDR) - address(image) == sizeof(ElfW(Ehdr)); }

Place place_of(std::uintptr_t at) {
  Place place;
  Dl_info found = {};
  if (dladdr == nullptr || dladdr(pointer(at), &found) == 0) {
    if (at - address(__ehdr_start) < address(etext) - address(__ehdr_start)) place.image = __ehdr_start;
  } else if (found.dli_fname != nullptr) {
    place.path = found.dli_fname;
    place.image = static_cast<const char*>(found.dli_fbase);
    place.name = found.dli_sname;
    place.behind = at - address(found.dli_saddr);
  }
  if (place.image == nullptr) return place;
  const bool of_program = is_program(place.image);
  if (of_program) place.path = path_of_program();
  if (place.name == nullptr)
    place.name = FileSymbols(of_program ? kProgram : place.path, place.image).name_at(at, place.behind);
  return place;
}

// In a program that we are linked into our frames are the program's; they have our names.
bool is_ours(const void* frame) {
  const Code ours = own_code();
  const std::uintptr_t at = address(frame) - 1;
  if (ours.end != 0) return at >= ours.begin && at < ours.end;
  const Place place = place_of(at);
  return place.name != nullptr && begins_with(place.name, "_ZN2hz");
}
// The first frame that is the program's. A sanitizer's backtrace() may stand before ours.
unsigned first_of_program(void* const* frames, unsigned count) {
  constexpr unsigned kBefore = 3;
  unsigned first = 0;
  while (first < count && first < kBefore && !is_ours(frames[first])) ++first;
  if (first == count || first == kBefore) return 0;
  while (first < count && is_ours(frames[first])) ++first;
  return first;
}

void text_up_to(Message& message, const char* text, std::size_t most) {
  const TextView all(text);
  message.part(text, all.size() < most ? all.size() : most).text(all.size() < most ? "" : "...");
}

// A return address lies behind the call. A separate function: a message takes 700 bytes of the stack.
HZ_SLOW void tell_frame(const char* what, const Place& place, std::uintptr_t at) {
  Message message;
  message.text("hz: ").text(what).text(" ");
  if (place.name != nullptr) {
    text_up_to(message, place.name, kLongestName);
    message.text("+0x").hex(place.behind + 1).text(" ");
  }
  message.text("(");
  if (place.image != nullptr) text_up_to(message, place.path, kLongestPath);
  message.text(place.image != nullptr ? "+0x" : "0x").hex(at + 1 - address(place.image)).text(")\n");
  message.send();
}

HZ_SLOW void tell_frames(const char* what) {
  void* frames[kOwnFrames + kTold];
  const unsigned count = walk_stack(frames, kOwnFrames + kTold);
  const unsigned first = first_of_program(frames, count);
  for (unsigned i = first; i < count && i < first + kTold; ++i) {
    const std::uintptr_t at = address(frames[i]) - 1;
    if (frames[i] == nullptr) return;
    const Place place = place_of(at);
    tell_frame(what, place, at);
    if (place.name != nullptr && TextView(place.name) == "main") return;  // its callers are the C library's
  }
}

void nap() {
  constexpr timespec kMillisecond = {0, 1'000'000};
  constexpr std::uint32_t kNobodyWakes = 0;
  call::futex(&kNobodyWakes, FUTEX_WAIT_PRIVATE, 0, &kMillisecond);
}

// Returns true if the child ended by itself, or by its own fault. `status` stays 0 if another thread of the
// program has waited for it.
bool has_ended(long child, int& status) {
  for (unsigned i = 0; i < kPatience; ++i) {
    if (call::wait4(child, &status, WNOHANG) != 0) return true;
    nap();
  }
  call::kill(child, SIGKILL);
  call::wait4(child, &status, 0);
  return false;
}

[[noreturn]] void tell_in_copy(const char* what) {
  is_copy = true;
  const long at = call::mmap(nullptr, sizeof(Room), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (at > 0) room = static_cast<Room*>(pointer(static_cast<std::uintptr_t>(at))), tell_frames(what);
  call::exit_group(0);
  __builtin_unreachable();
}

}  // namespace

HZ_COLD Report::Report(bool in_turn) : in_turn_(in_turn) {
  if (is_copy) call::exit_group(1);  // the walk has found the heap as broken as the report says
  if (!in_turn) return;
  call::rt_sigprocmask(SIG_SETMASK, &kAllSignals, &signals_);
  for (unsigned i = 0; i < 2 * kPatience && !has_turn_; ++i) {
    has_turn_ = turn.take();
    if (!has_turn_) nap();
  }
}

HZ_COLD bool Report::is_in_copy() { return is_copy; }

HZ_COLD Report::~Report() {
  if (has_turn_) turn.leave();
  if (in_turn_) call::rt_sigprocmask(SIG_SETMASK, &signals_, nullptr);
}

HZ_COLD void Report::tell_calls(const char* what) {
  if (!has_turn_) return;
  if (told_by != process_id()) told_by = process_id(), told = 0;
  if (told == kMostStacks) return;
  ++told;
  // Another thread may have been about to change the heap when the copy was made, so that the walk ends by a
  // fault. It is hardly there a moment later.
  constexpr unsigned kCopies = 4;
  int status = 0;
  for (unsigned i = 0; i < kCopies && (i == 0 || status != 0); ++i) {
    const long copy = call::fork();
    if (copy == 0) tell_in_copy(what);
    if (copy < 0) return;
    status = 0;
    if (!has_ended(copy, status)) return void(told = kMostStacks);  // nor would the next ones
  }
}

}  // namespace hz::os
