// SPDX-License-Identifier: Apache-2.0
//
// See figures.hpp. What each of them means here:
//
//   allocated  live blocks, by the sizes of their classes (bytes_live of hz_stats_t)
//   active     pages of spans that are in use, and of huge blocks
//   metadata   the heap's own (bytes_metadata)
//   resident   active + metadata + dirty: the most that can be resident, for not all of it was ever touched
//   mapped     granules of spans that are in use and of huge blocks, and metadata
//   retained   addresses of the arena that are free and have no memory
#include "export/jemalloc/figures.hpp"

#include <algorithm>
#include <atomic>

#include "export/line.hpp"
#include "heap/views/census.hpp"

namespace hz::jemalloc {

namespace {

constexpr auto kFigures = static_cast<unsigned>(Figure::kCount);
constinit std::atomic<std::uint64_t> epochs{0}, counted{0};  // counted: of that epoch
constinit std::atomic<std::size_t> figures[kFigures] = {}, spans_of[kBins] = {}, slots_of[kBins] = {};

void note(Figure figure, std::size_t value) {
  figures[static_cast<unsigned>(figure)].store(value, std::memory_order_relaxed);
}

void note_all(std::atomic<std::size_t>* words, const std::size_t* values) {
  for (Bin bin = 1; bin < kBins; ++bin) words[bin].store(values[bin], std::memory_order_relaxed);
}

void count_slots() {
  std::size_t slots[kBins] = {};
  Census<ThisLine>::slots_out([&](Bin bin, unsigned count) { slots[bin] += count; });
  note_all(slots_of, slots);
}

}  // namespace

void Figures::begin_epoch() {
  hz_stats_t now;
  hz_stats(&now, sizeof now);
  std::size_t spans[kBins] = {};
  Census<ThisLine>::spans([&](Bin bin) { ++spans[bin]; });
  const std::size_t huge = ThisLibrary::huge_bytes(), reached = Census<ThisLine>::reached_bytes();
  // A recorded sample has a run, of which it touches as many pages as it needs.
  const std::size_t samples = align_up(Extensions::sample_bytes(), kPage) + Extensions::samples() * kPage;
  std::size_t active = huge + samples, granules = huge + Extensions::sample_bytes();
  for (Bin bin = 1; bin < kBins; ++bin) {
    active += spans[bin] * align_up(bin_slots(bin) * bin_size(bin), kPage);
    granules += spans[bin] * bin_granules(bin) << kGranuleShift;
  }
  active = std::max<std::size_t>(active, now.bytes_live);  // others may go on meanwhile
  note(Figure::kAllocated, now.bytes_live);
  note(Figure::kActive, active);
  note(Figure::kMetadata, now.bytes_metadata);
  note(Figure::kResident, active + now.bytes_metadata + now.bytes_dirty);
  note(Figure::kMapped, granules + now.bytes_metadata);
  note(Figure::kRetained, reached - std::min<std::size_t>(reached, granules + now.bytes_dirty));
  note(Figure::kDirty, now.bytes_dirty);
  note(Figure::kHuge, huge);
  note(Figure::kThreads, now.threads);
  note_all(spans_of, spans);
  // Release: a thread that reads the number sees the figures.
  epochs.fetch_add(1, std::memory_order_release);
}

std::uint64_t Figures::epoch() {
  if (epochs.load(std::memory_order_acquire) == 0) begin_epoch();  // acquire: pairs with begin_epoch()
  return epochs.load(std::memory_order_acquire);
}

std::size_t Figures::of(Figure figure) {
  epoch();
  return figures[static_cast<unsigned>(figure)].load(std::memory_order_relaxed);
}
std::size_t Figures::spans(Bin bin) {
  epoch();
  return spans_of[bin].load(std::memory_order_relaxed);
}
std::size_t Figures::slots(Bin bin) {
  const std::uint64_t now = epoch();
  // Acquire: a thread that sees that they were counted sees the counts.
  if (counted.load(std::memory_order_acquire) != now) {
    count_slots();
    counted.store(now, std::memory_order_release);
  }
  return slots_of[bin].load(std::memory_order_relaxed);
}
std::size_t Figures::slot_bytes(Bin first, Bin last) {
  std::size_t bytes = 0;
  for (Bin bin = first; bin <= last; ++bin) bytes += slots(bin) * bin_size(bin);
  return bytes;
}

}  // namespace hz::jemalloc
