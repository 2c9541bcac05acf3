// SPDX-License-Identifier: Apache-2.0
//
// What cores.cpp uses of QEMU's interface for plugins, version 1 (QEMU 4.2 to 8.2). The functions are in the
// program that loads the plugin; https://www.qemu.org/docs/master/devel/tcg-plugins.html describes them.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct qemu_info_t;
struct qemu_plugin_tb;    // a piece of code that QEMU is about to translate ...
struct qemu_plugin_insn;  // ... and an instruction of it

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;

inline constexpr int kNoRegisters = 0;     // that a callback looks at
inline constexpr int kReadsAndWrites = 3;  // it is called for both
inline constexpr int kAdd = 0;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(qemu_plugin_tb*, int operation, void* counter,
                                              std::uint64_t operand);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, void (*)(unsigned vcpu, void* data),
                                            int registers, void* data);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*,
                                      void (*)(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address,
                                               void* data),
                                      int registers, int accesses, void* data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
                                          void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number,
                                                   std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                                   std::uint64_t, std::uint64_t, std::uint64_t,
                                                   std::uint64_t));

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
}
