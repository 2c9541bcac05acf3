// SPDX-License-Identifier: Apache-2.0
//
// A plugin of QEMU that runs a program's threads as cores of a machine and counts the cache lines that pass
// between them, and what code asked for them. One thread is one core; one of them runs at a time (turns.hpp).
// Counting begins at each core's `warm`th call of malloc, free and their kind, and ends `count` calls later;
// when `cores` of them are done it writes one JSON object and ends the program.
//
//   qemu-x86_64 -plugin cores.so,out=FILE,cores=8,warm=4000,count=4000 -E LD_PRELOAD=machine.so:ALLOCATOR.so
//   PROGRAM
//
// Virtual time: an instruction is a sixth of a nanosecond, a line from another core 60 of them. No caches of
// limited size, page faults or kernel: speeds are an order and no prediction, counts are exact for the
// schedule that was run.
#include <cinttypes>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scale/directory.hpp"
#include "scale/page.hpp"
#include "scale/qemu_plugin.hpp"
#include "scale/turns.hpp"

extern "C" {
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
}

namespace hz::scale {
namespace {

constexpr std::uint64_t kAtomic = std::uint64_t{1} << 63;  // beside the address of an instruction
constexpr std::uint64_t kAtomicCosts = 30;
constexpr std::uint64_t kSystemCallNanoseconds = 150, kSlowCallNanoseconds = 1000;

using ByCode =
    std::unordered_map<std::uint64_t, std::uint64_t>;  // instruction: how often it made a line pass

struct Tally {
  std::uint64_t line = 0;
  ByCode code;
};

struct Counting {
  std::uint64_t operations = 0;
  bool on = false;
  std::uint64_t began = 0, took = 0, ran = 0;  // virtual time; instructions
};

struct Machine {
  Costs costs;
  Directory directory{costs};
  Turns turns;
  Counting counting[kMostCores];
  std::vector<Tally> tallies{1};  // the first is no line's
  ByCode code;
  const char* out = nullptr;
  unsigned cores = 1, done = 0;
  std::uint64_t warm = 0, count = 0;
};
Machine* machine = nullptr;

Page& page() { return *reinterpret_cast<Page*>(Page::kAt); }
bool guest_is_ready = false;  // the page is there

void note(unsigned core, Directory::Line& line, std::uint64_t instruction) {
  if (!machine->counting[core].on) return;
  ++machine->code[instruction];
  if (line.tally == 0) {
    line.tally = static_cast<std::uint32_t>(machine->tallies.size());
    machine->tallies.emplace_back().line = line.number;
  }
  ++machine->tallies[line.tally].code[instruction];
}

__attribute__((noinline)) void fetch(unsigned core, std::uint64_t number, bool to_write,
                                     std::uint64_t instruction) {
  Turns& turns = machine->turns;
  Directory::Line& line = machine->directory.line(number);
  if (machine->directory.has(line, core, to_write)) return;
  const std::uint64_t now = turns.now(core);
  const bool goes_on = to_write && (instruction & kAtomic) == 0;
  const Directory::Wait wait = machine->directory.ask(line, core, to_write, goes_on, now);
  turns.spend(core, wait.begins - now);
  if (turns.is_past(core)) turns.pass(core);
  const bool passed = machine->directory.arrive(line, core, to_write);
  turns.spend(core, wait.done - wait.begins);
  if (passed) note(core, line, instruction & ~kAtomic);
}

void touch(unsigned core, std::uint64_t line, bool to_write, std::uint64_t instruction) {
  if (!machine->directory.near(core).has(line, to_write)) fetch(core, line, to_write, instruction);
}

void on_access(unsigned core, qemu_plugin_meminfo_t info, std::uint64_t address, void* data) {
  Turns& turns = machine->turns;
  if (!turns.is_turn_of(core)) turns.wait_for(core);
  if (address / 4096 == Page::kAt / 4096) {
    guest_is_ready = true;  // it is the guest that touched it
    return;
  }
  const auto instruction = reinterpret_cast<std::uint64_t>(data);
  const bool to_write = qemu_plugin_mem_is_store(info);
  const std::uint64_t line = address >> kLineShift;
  const std::uint64_t last =
      (address + (std::uint64_t{1} << qemu_plugin_mem_size_shift(info)) - 1) >> kLineShift;
  touch(core, line, to_write, instruction);
  if (last != line) touch(core, last, to_write, instruction);
  if ((instruction & kAtomic) != 0) turns.spend(core, kAtomicCosts);
  if (!turns.is_past(core)) return;
  turns.pass(core);
  if (!guest_is_ready) return;
  page().nanoseconds = turns.now(core) / machine->costs.per_nanosecond;
}

void write_results();

void on_operation(unsigned core, void*) {
  Turns& turns = machine->turns;
  if (!turns.is_turn_of(core)) turns.wait_for(core);
  Counting& mine = machine->counting[core];
  ++mine.operations;
  if (mine.operations == machine->warm) {
    mine = {.operations = mine.operations, .on = true, .began = turns.now(core), .ran = turns.ran(core)};
  } else if (mine.operations == machine->warm + machine->count) {
    mine.on = false;
    mine.took = turns.now(core) - mine.began;
    mine.ran = turns.ran(core) - mine.ran;
    if (++machine->done != machine->cores) return;
    write_results();
    std::_Exit(0);
  }
}

void on_system_call(qemu_plugin_id_t, unsigned core, std::int64_t number, std::uint64_t,
                    std::uint64_t operation, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                    std::uint64_t, std::uint64_t) {
  Turns& turns = machine->turns;
  if (number == SYS_exit) return turns.leave(core);
  bool waits = false, slow = false;
  switch (number) {
    case SYS_futex: {
      const auto command = static_cast<int>(operation & FUTEX_CMD_MASK);
      waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI;
      slow = true;
      break;
    }
    // QEMU itself waits for the new thread; the others wait for what happens outside.
    case SYS_clone:
    case SYS_clone3:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_pause:
    case SYS_membarrier: waits = true; break;
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_madvise: slow = true; break;
    default: break;
  }
  if (turns.is_turn_of(core))
    turns.spend(core, (slow ? kSlowCallNanoseconds : kSystemCallNanoseconds) * machine->costs.per_nanosecond);
  if (waits) turns.leave(core);
}

// A locked instruction, or an exchange with memory.
bool is_atomic(const unsigned char* byte, const unsigned char* end) {
  for (; byte != end &&
         std::string_view("\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67").find(static_cast<char>(*byte)) !=
             std::string_view::npos;
       ++byte) {
  }
  if (byte != end && *byte == 0xf0) return true;
  if (byte != end && (*byte & 0xf0) == 0x40) ++byte;
  return byte != end && (*byte == 0x86 || *byte == 0x87);
}

bool is_operation(std::uint64_t instruction) {
  if (!guest_is_ready || page().ready == 0) return false;
  for (const std::uint64_t known : page().operations)
    if (known == instruction) return true;
  return false;
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  const std::size_t length = qemu_plugin_tb_n_insns(block);
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, machine->turns.instructions(), length);
  for (std::size_t i = 0; i < length; ++i) {
    qemu_plugin_insn* const instruction = qemu_plugin_tb_get_insn(block, i);
    std::uint64_t data = qemu_plugin_insn_vaddr(instruction);
    if (is_operation(data))
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, &on_operation, kNoRegisters, nullptr);
    const auto* bytes = static_cast<const unsigned char*>(qemu_plugin_insn_data(instruction));
    if (is_atomic(bytes, bytes + qemu_plugin_insn_size(instruction))) data |= kAtomic;
    qemu_plugin_register_vcpu_mem_cb(instruction, &on_access, kNoRegisters, kReadsAndWrites,
                                     reinterpret_cast<void*>(data));
  }
}

// Addresses as texts: JSON's numbers do not hold them.
void write_code(std::FILE* out, const ByCode& code) {
  const char* comma = "";
  std::fputs("\"code\":{", out);
  for (const auto& [instruction, passed] : code) {
    std::fprintf(out, "%s\"%" PRIx64 "\":%" PRIu64, comma, instruction, passed);
    comma = ",";
  }
  std::fputs("}", out);
}

void write_results() {
  std::FILE* out = std::fopen(machine->out, "w");
  if (out == nullptr) return std::perror(machine->out);
  std::fprintf(out, "{\"count\":%" PRIu64 ",\"per_nanosecond\":%" PRIu64 ",\"cores\":[", machine->count,
               machine->costs.per_nanosecond);
  const char* comma = "";
  for (const Counting& core : machine->counting) {
    if (core.took == 0) continue;
    std::fprintf(out, "%s{\"time\":%" PRIu64 ",\"instructions\":%" PRIu64 "}", comma, core.took, core.ran);
    comma = ",";
  }
  std::fputs("],\n", out);
  write_code(out, machine->code);
  std::fputs(",\n\"lines\":[", out);
  comma = "";
  for (const Tally& tally : machine->tallies) {
    std::fprintf(out, "%s\n{\"at\":\"%" PRIx64 "\",", comma, tally.line << kLineShift);
    write_code(out, tally.code);
    std::fputs("}", out);
    comma = ",";
  }
  std::fputs("]}\n", out);
  std::fclose(out);
}

bool take_option(std::string_view key, const char* value) {
  const std::uint64_t number = std::strtoull(value, nullptr, 10);
  if (key == "out") {
    machine->out = value;
  } else if (key == "cores") {
    machine->cores = static_cast<unsigned>(number);
  } else if (key == "warm") {
    machine->warm = number;
  } else if (key == "count") {
    machine->count = number;
  } else {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace hz::scale

extern "C" __attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                                          const qemu_info_t*, int count,
                                                                          char** options) {
  using namespace hz::scale;
  machine = new Machine;
  for (int i = 0; i < count; ++i) {
    const char* const equals = std::strchr(options[i], '=');
    const bool known = equals != nullptr && take_option({options[i], equals}, strdup(equals + 1));
    if (!known) return std::fprintf(stderr, "scale: unknown option %s\n", options[i]), 1;
  }
  if (machine->out == nullptr || machine->cores > kMostCores / 2 || machine->warm == 0) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, &on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, &on_system_call);
  return 0;
}
