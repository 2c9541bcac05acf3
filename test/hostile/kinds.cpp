// SPDX-License-Identifier: Apache-2.0
//
// The kinds of kinds.hpp. Each does what a program does that is wrong, or attacked, and nothing to be found
// out; the compiler is kept from knowing.
#include "hostile/kinds.hpp"

#include <alloca.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "support/opaque.hpp"

namespace hz_test {
namespace {

constexpr unsigned char kSecret = 0xA5;
constexpr std::size_t kMega = 1024 * 1024;

unsigned char* Take(std::size_t size) {
  return static_cast<unsigned char*>(Opaque(std::malloc(Opaque(size))));
}
// No fence looks like it: that is one byte again and again.
constexpr unsigned char SecretAt(std::size_t i) {
  return static_cast<unsigned char>(i % 2 == 0 ? kSecret : ~kSecret);
}
unsigned char* Filled(std::size_t size) {
  unsigned char* block = Take(size);
  for (std::size_t i = 0; i < size; ++i) block[i] = SecretAt(i);
  return Opaque(block);
}
void Give(void* block) { std::free(Opaque(block)); }
// Of somebody who writes what is not what was there.
void Touch(volatile unsigned char* at) { *at = static_cast<unsigned char>(*at ^ 0x41); }
void Differ(unsigned char* written, const volatile unsigned char* there) {
  *written = static_cast<unsigned char>(*there ^ 0x41);
}

bool HasSecret(const volatile unsigned char* at, std::size_t size) {
  unsigned in_turn = 0;
  for (std::size_t i = 0; i < size && in_turn < 3; ++i)
    in_turn = at[i] == SecretAt(in_turn) ? in_turn + 1 : 0;
  return in_turn == 3;
}
End UnlessSecret(const volatile unsigned char* at, std::size_t size) {
  return HasSecret(at, size) ? End::kUnseen : End::kThwarted;
}

// --- out of bounds

template <std::size_t kBy>
End Over(std::size_t size) {
  unsigned char* block = Take(size);
  Touch(block + size - 1 + kBy);
  Give(block);
  return End::kUnseen;
}
template <std::size_t kBy>
End Under(std::size_t size) {
  unsigned char* block = Take(size);
  Touch(block - kBy);
  Give(block);
  return End::kUnseen;
}
unsigned char* Much(std::size_t size) {
  void* got = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(got, 0x41, size);
  return Opaque(static_cast<unsigned char*>(got));
}
template <std::size_t kBy>
End OverByCopy(std::size_t size) {
  unsigned char* from = Much(size + kBy);
  unsigned char* block = Take(size);
  if (kBy == 1) Differ(from + size, block + size);
  std::memcpy(block, from, Opaque(size + kBy));
  Give(block);
  return End::kUnseen;
}
template <std::size_t kBy>
End UnderByCopy(std::size_t size) {
  unsigned char* from = Much(size + kBy);
  unsigned char* block = Take(size);
  if (kBy == 1) Differ(from, block - kBy);
  std::memcpy(block - kBy, from, Opaque(size + kBy));
  Give(block);
  return End::kUnseen;
}
// A string that is one byte too long.
template <std::size_t kSize>
End OverByZero(std::size_t) {
  unsigned char* block = Take(kSize);
  std::memset(block, 'x', kSize);
  *Opaque(block + kSize) = 0;
  Give(block);
  return End::kUnseen;
}
End OverThenRealloc(std::size_t size) {
  unsigned char* block = Take(size);
  Touch(block + size);
  block = static_cast<unsigned char*>(Opaque(std::realloc(block, Opaque(3 * size))));
  return block == nullptr ? End::kThwarted : End::kUnseen;
}
End OverThenAsk(std::size_t size) {
  unsigned char* block = Take(size);
  Touch(block + size);
  return malloc_usable_size(Opaque(block)) == 0 ? End::kThwarted : End::kUnseen;
}
End OverNeverFreed(std::size_t size) {
  Touch(Take(size) + size);
  return End::kUnseen;
}
End ReadOver(std::size_t size) {
  constexpr std::size_t kCount = 64;
  unsigned char* blocks[kCount];
  for (unsigned char*& block : blocks) block = Filled(size);
  for (std::size_t i = 1; i < kCount; ++i) Give(blocks[i]);
  return UnlessSecret(blocks[0] + size, size);
}

// --- double frees

End TwiceAtOnce(std::size_t size) {
  void* block = Take(size);
  Give(block);
  Give(block);
  return End::kUnseen;
}
End TwiceInterleaved(std::size_t size) {
  void *one = Take(size), *other = Take(size);
  Give(one);
  Give(other);
  Give(one);
  return End::kUnseen;
}
End TwiceLater(std::size_t size) {
  void* block = Take(size);
  Give(block);
  for (int i = 0; i < 1024; ++i) Give(Take(size));
  Give(block);
  return End::kUnseen;
}
End TwiceThenUsed(std::size_t size) {
  void* block = Take(size);
  Give(block);
  Give(block);
  for (int i = 0; i < 2048; ++i) Give(Take(size));
  return End::kUnseen;
}
End TwiceAfterReuse(std::size_t size) {
  void* block = Take(size);
  Give(block);
  void* other = Take(size);
  Give(block);
  Give(other);
  return End::kUnseen;
}
End TwiceAligned(std::size_t size) {
  void* block = Opaque(std::aligned_alloc(64, (size + 63) / 64 * 64));
  Give(block);
  Give(Take(size));
  Give(block);
  return End::kUnseen;
}
End TwiceAfterMany(std::size_t size) {
  constexpr std::size_t kCount = 200;
  void* blocks[kCount];
  for (void*& block : blocks) block = Take(size);
  for (void* block : blocks) Give(block);
  Give(blocks[7]);
  return End::kUnseen;
}
End FreedAfterItMoved(std::size_t size) {
  void* block = Take(size);
  void* moved = Opaque(std::realloc(Opaque(block), 4 * size));
  if (moved == Opaque(block)) return End::kThwarted;
  Give(block);
  return End::kUnseen;
}
End TwiceByDelete(std::size_t size) {
  void* block = Take(size);
  Give(block);
  ::operator delete(Opaque(block));
  return End::kUnseen;
}
End TwiceByAnother(std::size_t size) {
  void* block = Take(size);
  const auto free_it = [](void* it) -> void* {
    Give(it);
    return nullptr;
  };
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, free_it, block) != 0) return End::kThwarted;
    pthread_join(thread, nullptr);
  }
  return End::kUnseen;
}

// --- frees of what is no block

End FreeOfOne(std::size_t) {
  Give(reinterpret_cast<void*>(1));
  return End::kUnseen;
}
End FreeOfAlloca(std::size_t size) {
  Give(alloca(size));
  return End::kUnseen;
}
End FreeOfStack(std::size_t size) {
  Take(size);
  unsigned char here[64] = {};
  Give(here);
  return End::kUnseen;
}
End FreeOfGlobal(std::size_t size) {
  static unsigned char here[64];
  Take(size);
  Give(here + 16);
  return End::kUnseen;
}
End FreeOfMapping(std::size_t size) {
  Give(Much(size + 4096) + 16);
  return End::kUnseen;
}
template <std::ptrdiff_t kBy>
End FreeBeside(std::size_t size) {
  Give(Take(size) + kBy);
  return End::kUnseen;
}
End ForgedChunk(std::size_t size) {
  alignas(16) static std::uint64_t chunk[512];
  Take(size);
  chunk[1] = size | 1;  // as of another allocator
  Give(chunk + 2);
  return End::kUnseen;
}

// --- realloc and questions

End ReallocOfFreed(std::size_t size) {
  void* block = Take(size);
  Give(block);
  return Opaque(std::realloc(Opaque(block), size / 2 + 1)) == nullptr ? End::kThwarted : End::kUnseen;
}
End ReallocOfInside(std::size_t size) {
  return Opaque(std::realloc(Opaque(Take(size) + 4), size)) == nullptr ? End::kThwarted : End::kUnseen;
}
End AskOfFreed(std::size_t size) {
  void* block = Take(size);
  Give(block);
  return malloc_usable_size(Opaque(block)) == 0 ? End::kThwarted : End::kUnseen;
}

// --- after free

End WriteAfter(std::size_t size) {
  unsigned char* block = Take(size);
  Give(block);
  std::memset(Opaque(block), 'A', size);
  return End::kUnseen;
}
End WriteAfterThenUsed(std::size_t size) {
  unsigned char* block = Take(size);
  Give(block);
  std::memset(Opaque(block), 'A', size);
  for (int i = 0; i < 4096; ++i) Give(Take(size));
  return End::kUnseen;
}
End LastByteAfterThenUsed(std::size_t size) {
  unsigned char* block = Take(size);
  Give(block);
  Touch(Opaque(block) + size - 1);
  for (int i = 0; i < 4096; ++i) Give(Take(size));
  return End::kUnseen;
}
End MiddleAfter(std::size_t size) {
  unsigned char* block = Take(size);
  Give(block);
  Touch(Opaque(block) + size / 2);
  return End::kUnseen;
}
End ReadAfter(std::size_t size) {
  unsigned char* block = Filled(size);
  Give(block);
  return UnlessSecret(Opaque(block), size);
}
End ReadLastAfter(std::size_t size) {
  unsigned char* block = Filled(size);
  Give(block);
  return UnlessSecret(Opaque(block) + size - 4, 4);
}
End SecretOfBefore(std::size_t size) {
  constexpr std::size_t kCount = 256;
  unsigned char* blocks[kCount];
  for (unsigned char*& block : blocks) block = Filled(size);
  for (unsigned char* block : blocks) Give(block);
  for (unsigned char*& block : blocks) {
    block = Take(size);
    for (std::size_t i = 0; i < size; ++i)
      if (block[i] != 0) return End::kUnseen;
  }
  return End::kThwarted;
}
End ReusedAtOnce(std::size_t size) {
  void* block = Take(size);
  Give(block);
  return Take(size) == block ? End::kUnseen : End::kThwarted;
}
End ReusedForLess(std::size_t size) {
  void* block = Take(size);
  Give(block);
  return Take(size / 2) == block ? End::kUnseen : End::kThwarted;
}
// What is allocated after a free of several lies where they lay, one after the other.
End ReusedInOrder(std::size_t size) {
  constexpr int kCount = 12;
  void* blocks[kCount];
  for (void*& block : blocks) block = Take(size);
  for (void* block : blocks) Give(block);
  int same = 0;
  for (int i = kCount; i-- > 0;) same += Take(size) == blocks[i] ? 1 : 0;
  return same > kCount / 2 ? End::kUnseen : End::kThwarted;
}
// What is allocated in a row lies in a row.
End Neighbours(std::size_t size) {
  constexpr int kCount = 64;
  std::uintptr_t before = 0;
  int in_a_row = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(Take(size));
    in_a_row += at > before && at - before < 2 * size + 64 ? 1 : 0;
    before = at;
  }
  return in_a_row > kCount / 2 ? End::kUnseen : End::kThwarted;
}

// --- sizes

End Impossible(std::size_t size) {
  return Take(SIZE_MAX - size / 8) == nullptr ? End::kThwarted : End::kUnseen;
}
End ImpossibleProduct(std::size_t size) {
  return Opaque(std::calloc(Opaque(SIZE_MAX / size + 2), size)) == nullptr ? End::kThwarted : End::kUnseen;
}
End ImpossibleRealloc(std::size_t size) {
  return Opaque(std::realloc(Take(size), Opaque(SIZE_MAX - 7))) == nullptr ? End::kThwarted : End::kUnseen;
}
End ImpossibleAligned(std::size_t size) {
  return Opaque(std::aligned_alloc(64, Opaque(SIZE_MAX - size / 8))) == nullptr ? End::kThwarted
                                                                                : End::kUnseen;
}
End ReadOfNothing(std::size_t) {
  const volatile unsigned char* block = Take(0);
  if (block == nullptr) return End::kThwarted;
  return Opaque(*block) == kSecret ? End::kUnseen : Opaque(End::kUnseen);
}
End ReadOfNothingFreed(std::size_t) {
  unsigned char* block = Take(0);
  if (block == nullptr) return End::kThwarted;
  const unsigned char seen = *static_cast<volatile unsigned char*>(block);
  Give(block);
  return Opaque(seen) == kSecret ? End::kUnseen : Opaque(End::kUnseen);
}
End WriteToNothing(std::size_t) {
  unsigned char* block = Take(0);
  if (block == nullptr) return End::kThwarted;
  *static_cast<volatile unsigned char*>(block) = 'A';
  return End::kUnseen;
}
End WriteToNothingFreed(std::size_t) {
  unsigned char* block = Take(0);
  if (block == nullptr) return End::kThwarted;
  *static_cast<volatile unsigned char*>(block) = 'A';
  Give(block);
  return End::kUnseen;
}

// --- new and delete

struct Nine {
  std::size_t of[9];
};
End DeletedAsLarger(std::size_t) {
  delete static_cast<Nine*>(Opaque(static_cast<void*>(new char)));
  return End::kUnseen;
}
End DeletedAsSmaller(std::size_t) {
  delete static_cast<char*>(Opaque(static_cast<void*>(new Nine)));
  return End::kUnseen;
}
template <std::size_t kSaid>
End DeletedAsSized(std::size_t size) {
  ::operator delete(Opaque(::operator new(size)), Opaque(size + kSaid));
  return End::kUnseen;
}
End DeletedAsAligned(std::size_t size) {
  ::operator delete(Opaque(::operator new(size)), Opaque(size + 64), std::align_val_t(64));
  return End::kUnseen;
}
End ArrayDeletedChar(std::size_t) {
  delete[] Opaque(new char);
  return End::kUnseen;
}
End DeletedArrayChar(std::size_t) {
  delete Opaque(new char[16]);
  return End::kUnseen;
}
End ArrayDeletedString(std::size_t) {
  delete[] Opaque(new std::string("a"));
  return End::kUnseen;
}
End DeletedArrayString(std::size_t) {
  delete Opaque(new std::string[4]);
  return End::kUnseen;
}

// --- attempts on what the allocator knows

// Words that another allocator would follow as links.
End ForgedLink(std::size_t size) {
  alignas(16) static unsigned char target[4096];
  void* first = Take(size);
  void* second = Take(size);
  Give(first);
  Give(second);
  for (std::size_t i = 0; i < size / sizeof(void*); ++i) static_cast<void**>(Opaque(second))[i] = target;
  for (int i = 0; i < 2048; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(Take(size));
    if (at - reinterpret_cast<std::uintptr_t>(target) < sizeof target) return End::kUnseen;
  }
  return End::kThwarted;
}
// Somebody writes downwards, or upwards, until something happens.
End WrittenDown(std::size_t size) {
  unsigned char* block = Take(size);
  for (std::size_t i = 0; i < 64 * kMega; i += 64) block[-static_cast<std::ptrdiff_t>(i)] = 'A';
  return End::kUnseen;
}
End WrittenUp(std::size_t size) {
  unsigned char* block = Take(size);
  for (std::size_t i = 0; i < 64 * kMega; i += 64) block[i] = 'A';
  return End::kUnseen;
}
// All that lies between two blocks, as it lay there, in the other order; and nothing in place of it.
End MovedSeal(std::size_t size) {
  constexpr int kCount = 64;
  unsigned char* blocks[kCount];
  for (unsigned char*& block : blocks) block = Take(size);
  unsigned char* const one = blocks[3];
  for (unsigned char* other : blocks)
    if (other != one) std::memcpy(one + size, other + size, size == kSizes[0] ? 8 : 512);
  Give(one);
  return End::kUnseen;
}
End WipedSeal(std::size_t size) {
  unsigned char* block = Take(size);
  std::memset(block + size, 0, 8);
  Give(block);
  return End::kUnseen;
}
End Executed(std::size_t size) {
  unsigned char* block = Take(size);
#if defined(__x86_64__)
  std::memcpy(block, "\xc3", 1);
#else
  std::memcpy(block, "\xc0\x03\x5f\xd6", 4);
#endif
  reinterpret_cast<void (*)()>(reinterpret_cast<std::uintptr_t>(Opaque(block)))();
  return End::kUnseen;
}

#define ANY \
  { "*", "", "" }
#define NONE \
  { "none", "", "" }
#define THWARTED \
  { "thwarted", "", "" }

}  // namespace

const Family kFamilies[] = {
    // Of a single byte far from the block nobody asks before somebody comes to where it lies; a mega away
    // that is
    // nobody's memory as a rule, and at times a block of somebody else's.
    {"over_1", Over<1>, 3, true, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_8", Over<8>, 3, false, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_32", Over<32>, 3, true, false, {{"E06@exit|E09@exit|SEGV", "E09", "SEGV"}}, {ANY}},
    {"over_page", Over<4096>, 3, false, false, {{"E06@exit|E09@exit|SEGV", "", "SEGV"}}, {ANY}},
    {"over_mega", Over<kMega>, 3, true, false, {{"SEGV|E06@exit|E09@exit|none", "", ""}}, {ANY}},
    {"over_1_copy", OverByCopy<1>, 3, true, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_8_copy", OverByCopy<8>, 3, false, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_32_copy", OverByCopy<32>, 3, true, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_page_copy", OverByCopy<4096>, 3, false, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"over_mega_copy", OverByCopy<kMega>, 3, true, false, {{"SEGV", "", ""}}, {ANY}},
    {"under_1", Under<1>, 3, true, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"under_8", Under<8>, 3, false, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"under_32", Under<32>, 3, true, false, {{"E06@exit|E09@exit|SEGV", "", "SEGV"}}, {ANY}},
    {"under_page", Under<4096>, 3, false, false, {{"E06@exit|E09@exit|SEGV", "", "SEGV"}}, {ANY}},
    {"under_mega", Under<kMega>, 3, true, false, {{"SEGV|E06@exit|E09@exit|none", "", ""}}, {ANY}},
    {"under_1_copy", UnderByCopy<1>, 3, true, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"under_8_copy", UnderByCopy<8>, 3, false, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"under_32_copy", UnderByCopy<32>, 3, true, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"under_page_copy", UnderByCopy<4096>, 3, false, false, {{"E09|SEGV", "", "SEGV"}}, {ANY}},
    {"under_mega_copy", UnderByCopy<kMega>, 3, true, false, {{"SEGV", "", ""}}, {ANY}},
    {"over_by_zero_8", OverByZero<8>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_by_zero_13", OverByZero<13>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_by_zero_24", OverByZero<24>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_by_zero_100", OverByZero<100>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_by_zero_1000", OverByZero<1000>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_by_zero_5001", OverByZero<5001>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_by_zero_100001", OverByZero<100001>, 1, false, false, {{"E09"}}, {ANY}},
    {"over_then_realloc", OverThenRealloc, 3, false, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_then_asked", OverThenAsk, 3, false, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"over_never_freed", OverNeverFreed, 3, false, false, {{"E09@exit", "", "SEGV"}}, {ANY}},
    {"read_over", ReadOver, 3, false, false, {{"thwarted|SEGV", "", "SEGV"}}, {ANY}},

    {"twice_at_once", TwiceAtOnce, 3, true, true, {{"E03", "", "E02"}}, {{"E03", "", "E03|E03@exit"}}},
    {"twice_interleaved",
     TwiceInterleaved,
     3,
     true,
     true,
     {{"E03", "", "E02"}},
     {{"E03@exit", "", "E03|E03@exit"}}},
    {"twice_later", TwiceLater, 3, true, true, {{"E03", "", "E02"}}, {{"E03|E03@exit", "", "E03|E03@exit"}}},
    {"twice_then_used", TwiceThenUsed, 3, true, true, {{"E03", "", "E02"}}, {{"E03", "", "E03|E03@exit"}}},
    {"twice_after_reuse",
     TwiceAfterReuse,
     3,
     true,
     true,
     {{"E03", "", "E02"}},
     {{"E03|E03@exit", "", "E03|E03@exit"}}},
    {"twice_aligned",
     TwiceAligned,
     3,
     false,
     true,
     {{"E03", "", "E02"}},
     {{"E03|E03@exit", "", "E03|E03@exit"}}},
    {"twice_after_many",
     TwiceAfterMany,
     3,
     false,
     true,
     {{"E03", "", "E02"}},
     {{"E03|E03@exit", "", "E02|E03|E03@exit"}}},
    {"freed_after_it_moved",
     FreedAfterItMoved,
     3,
     false,
     true,
     {{"E03", "", "E02"}},
     {{"E03|E03@exit", "", "thwarted|E02|E03"}}},
    {"twice_by_delete", TwiceByDelete, 3, false, true, {{"E03", "", "E02"}}, {{"E03", "", "E03|E03@exit"}}},
    {"twice_by_another",
     TwiceByAnother,
     3,
     false,
     true,
     {{"E03", "", "E02"}},
     {{"E03|E03@exit", "", "E03|E03@exit"}}},

    {"free_of_one", FreeOfOne, 3, true, true, {{"E01", "", ""}}, {{"E01", "", ""}}},
    {"free_of_alloca", FreeOfAlloca, 3, true, true, {{"E01", "", ""}}, {{"E01", "", ""}}},
    {"free_of_stack", FreeOfStack, 3, true, true, {{"E01", "", ""}}, {{"E01", "", ""}}},
    {"free_beside_1", FreeBeside<1>, 3, true, true, {{"E04", "", ""}}, {{"E04", "", ""}}},
    {"free_beside_8", FreeBeside<8>, 3, true, true, {{"E04", "", ""}}, {{"E04", "", ""}}},
    {"free_beside_page",
     FreeBeside<4096>,
     3,
     true,
     true,
     {{"E02|E03|E04", "E04|E02", "E04"}},
     {{"E02|E02@exit|E03@exit|E04", "", "E04"}}},
    {"free_beside_giga", FreeBeside<(1 << 30)>, 3, true, true, {{"E01|E02", "", ""}}, {{"E01|E02", "", ""}}},
    {"free_below_16", FreeBeside<-16>, 3, false, true, {{"E02|E03|E04", "", ""}}, {{"*", "", "E02|E04"}}},
    {"free_of_global", FreeOfGlobal, 1, false, true, {{"E01"}}, {{"E01"}}},
    {"free_of_mapping", FreeOfMapping, 1, false, true, {{"E01"}}, {{"E01"}}},
    {"free_of_forged_chunk", ForgedChunk, 1, false, true, {{"E01"}}, {{"E01"}}},

    {"realloc_of_freed", ReallocOfFreed, 3, false, true, {{"E03", "", "E02"}}, {{"E03", "", ""}}},
    {"realloc_of_inside", ReallocOfInside, 3, false, true, {{"E04", "", ""}}, {{"E04", "", ""}}},
    {"asked_of_freed", AskOfFreed, 3, false, true, {{"E03", "", "E02"}}, {{"E03", "", ""}}},

    {"write_after", WriteAfter, 3, true, false, {{"E06@exit", "", "SEGV"}}, {ANY}},
    {"write_after_then_used", WriteAfterThenUsed, 3, true, false, {{"E06", "", "SEGV"}}, {ANY}},
    {"last_byte_after", LastByteAfterThenUsed, 3, false, false, {{"E06", "", "SEGV"}}, {ANY}},
    {"middle_after", MiddleAfter, 3, false, false, {{"E06@exit", "", "SEGV"}}, {ANY}},
    {"read_after", ReadAfter, 3, true, false, {{"thwarted", "", "SEGV"}}, {ANY}},
    {"read_last_after", ReadLastAfter, 3, false, false, {{"thwarted", "", "SEGV"}}, {ANY}},
    {"secret_of_before", SecretOfBefore, 3, true, false, {THWARTED}, {ANY}},
    {"reused_at_once", ReusedAtOnce, 3, true, false, {THWARTED}, {ANY}},
    {"reused_for_less", ReusedForLess, 3, true, false, {THWARTED}, {ANY}},
    {"reused_in_order", ReusedInOrder, 3, false, false, {THWARTED}, {ANY}},
    {"neighbours", Neighbours, 2, false, false, {THWARTED}, {ANY}},

    {"impossible", Impossible, 3, true, false, {THWARTED}, {THWARTED}},
    {"impossible_product", ImpossibleProduct, 3, false, false, {THWARTED}, {THWARTED}},
    {"impossible_realloc", ImpossibleRealloc, 3, false, false, {THWARTED}, {THWARTED}},
    {"impossible_aligned", ImpossibleAligned, 3, false, false, {THWARTED}, {THWARTED}},
    {"read_of_nothing", ReadOfNothing, 3, true, false, {{"SEGV", "", ""}}, {ANY}},
    {"read_of_nothing_freed", ReadOfNothingFreed, 3, true, false, {{"SEGV", "", ""}}, {ANY}},
    {"write_to_nothing", WriteToNothing, 3, true, false, {{"SEGV", "", ""}}, {ANY}},
    {"write_to_nothing_freed", WriteToNothingFreed, 3, true, false, {{"SEGV", "", ""}}, {ANY}},

    {"deleted_as_larger", DeletedAsLarger, 1, true, false, {{"E05"}}, {{"E05"}}},
    {"deleted_as_smaller", DeletedAsSmaller, 1, false, false, {{"E05"}}, {{"E05"}}},
    {"deleted_a_byte_larger", DeletedAsSized<1>, 3, false, false, {{"E05", "", ""}}, {ANY}},
    {"deleted_a_page_larger", DeletedAsSized<4096>, 3, false, false, {{"E05", "", ""}}, {ANY}},
    {"deleted_as_aligned", DeletedAsAligned, 3, false, false, {{"E05", "", ""}}, {ANY}},
    // The two operators free alike, and nobody is hurt.
    {"array_deleted_char", ArrayDeletedChar, 1, true, false, {NONE}, {NONE}},
    {"deleted_array_char", DeletedArrayChar, 1, true, false, {{"none|E05"}}, {{"none|E05"}}},
    {"array_deleted_string", ArrayDeletedString, 1, true, false, {{"E02|E03|E04|E09|SEGV"}}, {ANY}},
    {"deleted_array_string", DeletedArrayString, 1, true, false, {{"E02|E03|E04|E05|E09|SEGV"}}, {ANY}},

    {"forged_link", ForgedLink, 3, false, false, {{"E06", "", "SEGV"}}, {{"thwarted", "", "*"}}},
    {"written_down", WrittenDown, 3, false, false, {{"SEGV", "", ""}}, {{"SEGV", "", ""}}},
    {"written_up", WrittenUp, 3, false, false, {{"SEGV", "", ""}}, {{"SEGV", "", ""}}},
    {"moved_seal", MovedSeal, 3, false, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"wiped_seal", WipedSeal, 3, false, false, {{"E09", "", "SEGV"}}, {ANY}},
    {"executed", Executed, 3, true, false, {{"SEGV", "", ""}}, {{"SEGV", "", ""}}},
};
const std::size_t kFamilyCount = sizeof kFamilies / sizeof *kFamilies;

}  // namespace hz_test
