/* SPDX-License-Identifier: Apache-2.0
 *
 * A DLL of functions as compilers make them, or might: what can be redirected and what cannot. Each returns a
 * number of its own. Loaded by code_test.cpp.
 */
#define FUNCTION(name, body) \
  __asm__(".text\n.p2align 4\n.globl " #name "\n" #name ":\n" body "int3\nint3\nint3\nint3\nint3\n")
#define WITH_TABLE(name, prologue, body) \
  FUNCTION(name, ".seh_proc " #name "\n" prologue ".seh_endprologue\n" body ".seh_endproc\n")
#define FRAME "sub $0x28, %rsp\n.seh_stackalloc 0x28\n"

/* As most are. */
WITH_TABLE(odd_plain, FRAME, "mov $1, %eax\nadd $0x28, %rsp\nret\n");
WITH_TABLE(odd_other, FRAME, "mov $2, %eax\nadd $0x28, %rsp\nret\n");
/* Nothing but a jump; the same function under another name. */
FUNCTION(odd_jump, ".byte 0xe9\n.long odd_other - . - 4\n");
__asm__(".globl odd_twin\n.set odd_twin, odd_plain\n.globl _o_odd_other\n.set _o_odd_other, odd_jump\n");
/* Too short for a jump. */
WITH_TABLE(odd_short, "", "xor %eax, %eax\nret\n");
/* Loops whose heads are among the first five bytes: by a short jump, and by a long one. */
WITH_TABLE(odd_loop, FRAME, "1: dec %ecx\njg 1b\nmov $4, %eax\nadd $0x28, %rsp\nret\n");
WITH_TABLE(odd_long_loop, "",
           "nop\n1: dec %ecx\nnop\nnop\n.byte 0x0f, 0x8f\n.long 1b - . - 4\nmov $5, %eax\nret\n");
/* A loop behind them. */
WITH_TABLE(odd_later_loop, "", "mov $6, %eax\n1: dec %ecx\njg 1b\nret\n");
/* Without a table: as compilers make what ends by a jump; one with a loop; and what lies anywhere. */
FUNCTION(odd_leaf, "xor %r8d, %r8d\n.byte 0xe9\n.long odd_plain - . - 4\n");
FUNCTION(odd_leaf_loop, "nop\n1: dec %ecx\nnop\nnop\njg 1b\nmov $7, %eax\nret\n");
FUNCTION(odd_middle_, ".skip 8, 0x90\n.globl odd_middle\nodd_middle:\nmov $8, %eax\nret\n");
FUNCTION(odd_address_, ".skip 4, 0x90\n.globl odd_address\nodd_address:\nmov $9, %eax\nret\n");

int DllMain(void* module, unsigned long reason, void* reserved);
int DllMain(void* module, unsigned long reason, void* reserved) {
  (void)module;
  (void)reason;
  (void)reserved;
  return 1;
}
