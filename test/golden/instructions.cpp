// SPDX-License-Identifier: Apache-2.0
//
// A plugin of QEMU's user mode: how many instructions a program executes in one file that it has loaded.
// Built for the machine that QEMU runs on, and loaded by golden_emulated.sh:
//
//   qemu-aarch64 -plugin instructions.so,object=LIBRARY,out=FILE …
#include <cstdio>
#include <cstring>
#include <string>

#include "../../bench/scale/qemu_plugin.hpp"

extern "C" {
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
}

namespace {

std::string object, out;
std::uint64_t begin = 0, end = 0, executed = 0;

// Of a guest of 64 bits, addresses are those of QEMU itself.
bool is_in_object(std::uint64_t address) {
  if (end == 0) {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[4096];
    while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
      unsigned long low = 0, high = 0;
      if (std::strstr(line, object.c_str()) == nullptr || std::sscanf(line, "%lx-%lx", &low, &high) != 2)
        continue;
      if (begin == 0) begin = low;
      if (high > end) end = high;
    }
    if (maps != nullptr) std::fclose(maps);
  }
  return begin <= address && address < end;
}

void translated(qemu_plugin_id_t, qemu_plugin_tb* block) {
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  if (count == 0 || !is_in_object(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0)))) return;
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &executed, count);
}

void ended(qemu_plugin_id_t, void*) {
  if (std::FILE* file = std::fopen(out.c_str(), "w")) {
    std::fprintf(file, "%llu\n", static_cast<unsigned long long>(executed));
    std::fclose(file);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                                          const qemu_info_t*, int argc,
                                                                          char** argv) {
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("object=", 0) == 0) object = word.substr(7);
    if (word.rfind("out=", 0) == 0) out = word.substr(4);
  }
  if (object.empty() || out.empty()) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, nullptr);
  return 0;
}
