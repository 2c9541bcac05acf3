// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of base/, of the routes and of a heap's chunks, a function each for arithmetic_test.py,
// which proves what clang makes of them. Compiled, never run.
#include "base/units.hpp"
#include "base/size_classes.hpp"
#include "base/slot_bits.hpp"
#include "base/slot_bytes.hpp"
#include "box/route/byte_tag.hpp"
#include "box/route/page_header.hpp"
#include "box/route/page_tag.hpp"
#include "heap/state/heap_table.hpp"

namespace {
struct Bytes : hz::SlotBytes<int> {
  using SlotBytes::at;
};
using Bits = hz::SlotBits<std::uint64_t>;
}  // namespace

extern "C" {
std::size_t align_up(std::size_t n, std::size_t alignment) { return hz::align_up(n, alignment); }
bool is_power_of_two(std::size_t n) { return hz::is_power_of_two(n); }
unsigned log2_floor(std::size_t n) { return hz::log2_floor(n); }

std::size_t bin_for_size(std::size_t size) { return hz::bin_for_size(size); }
std::size_t scan_bin(std::size_t size) { return hz::scan_bin(size); }
std::size_t bin_size(hz::Bin bin) { return hz::bin_size(bin); }
std::size_t size_of_bin(hz::Bin bin) { return hz::size_of_bin(bin); }
bool is_spare(hz::Bin bin) { return hz::is_spare(bin); }
unsigned bin_slots(hz::Bin bin) { return hz::bin_slots(bin); }
unsigned bin_granules(hz::Bin bin) { return hz::bin_granules(bin); }
std::size_t aligned_bin(std::size_t size, std::size_t alignment) { return hz::aligned_bin(size, alignment); }
std::uint32_t reciprocal_of(std::size_t size) { return hz::SizeClasses::reciprocal_of(size); }
std::uint32_t reciprocal(hz::Bin bin) { return hz::classes.reciprocal(bin); }
unsigned slot_index(hz::Bin bin, unsigned offset) { return hz::slot_index(bin, offset); }
bool is_slot_start(hz::Bin bin, unsigned offset) { return hz::is_slot_start(bin, offset); }
std::size_t last_bin() { return hz::kLastBin; }
std::size_t last_medium_bin() { return hz::kLastMediumBin; }

std::uint64_t* bits_word(const Bits& bits, hz::Bin bin, std::size_t row, std::size_t number) {
  return &bits.of(bin).word(row, number);
}
std::size_t bits_words(hz::Bin bin) { return Bits().of(bin).words; }
std::uint8_t* bytes_at(const void* slot, hz::Bin bin) { return Bytes::at(slot, bin); }

bool covers(const hz::ByteTag::Global& g, std::uintptr_t at) { return hz::ByteTag::covers(g, at); }
std::uint64_t byte_tag(const hz::ByteTag::Global& g, std::uintptr_t at) { return hz::ByteTag::find(g, at); }
std::uint64_t page_tag(const hz::PageTag::Global& g, std::uintptr_t at) { return hz::PageTag::find(g, at); }
std::uint64_t page_header(const hz::PageHeader::Global& g, std::uintptr_t at) {
  return hz::PageHeader::find(g, at);
}
std::uint64_t tag_of(unsigned owner, hz::Bin bin) { return hz::OwnerAndBin::tag(owner, bin); }
hz::Bin tag_bin(std::uint64_t tag) { return hz::OwnerAndBin::bin(tag); }
unsigned tag_owner(std::uint64_t tag) { return hz::OwnerAndBin::owner(tag); }
std::uint64_t tag_local(std::uint64_t tag, unsigned owner) {
  hz::OwnerAndBin::PerThread thread;
  hz::OwnerAndBin::join(thread, owner);
  return hz::OwnerAndBin::local_bin(tag, thread);
}

void* chunk_cut(hz::HeapChunk& chunk, std::size_t bytes, std::size_t alignment) {
  return chunk.cut(bytes, alignment);
}
void* chunk_around(const void* at) { return hz::HeapChunk::around(at); }
unsigned chunk_unit(const void* at) { return hz::HeapChunk::unit(at); }
std::size_t chunk_bytes() { return sizeof(hz::HeapChunk); }
std::size_t chunk_starts() { return offsetof(hz::HeapChunk, starts); }
std::size_t chunk_used() { return offsetof(hz::HeapChunk, used); }
std::uint32_t heap_number(std::uint64_t handle) { return hz::HeapTable::number(handle); }
}
