// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "violation.h"

namespace puone::ptx {
namespace {

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string threadText(uint32_t block, uint32_t thread) {
  return "block " + std::to_string(block) + ", thread " + std::to_string(thread);
}

} // namespace

void demandAligned(uint64_t address, uint32_t bytes) {
  if (address % bytes == 0) return;
  throw Violation(
      Kind::kMisaligned, hex(address) + " is not a multiple of " + std::to_string(bytes));
}

// ---- races ----

/// Whether an earlier access of this grid is ordered before one by `who`.
bool Track::ordered(const Record& before, const Accessor& who) {
  if (before.grid != who.grid) return true;
  if (before.block != who.block) return false;
  if (before.epoch != who.epoch || before.thread == who.thread) return true;
  return before.thread / 32 == who.thread / 32 && before.warp_epoch != who.warp_epoch;
}

void Track::noteRead(const Accessor& who, bool atomic) {
  const bool same_grid = read_.grid == who.grid;
  const bool same_block = same_grid && read_.block == who.block;
  const bool same_epoch =
      same_block && read_.epoch == who.epoch && read_.warp_epoch == who.warp_epoch;
  Record next{who.grid, who.block, who.thread, who.epoch, who.warp_epoch, atomic, false, false};
  next.of_blocks = same_grid && (read_.of_blocks || !same_block);
  // Of another warp epoch of this epoch: other warps' accesses are still unordered.
  const bool this_epoch = same_block && read_.epoch == who.epoch;
  next.of_threads = this_epoch && (read_.of_threads || read_.thread != who.thread);
  if (same_epoch || this_epoch) next.atomic = atomic && read_.atomic;
  read_ = next;
}

void Track::note(const Accessor& who, Access how, bool same) {
  const bool atomic = isStrong(how);
  if (!ordered(write_, who) && !(atomic && write_.atomic) && !(writesOnly(how) && same)) {
    throw Violation(
        Kind::kRace,
        std::string(writes(how) ? "written" : "read") + " while " +
            threadText(write_.block, write_.thread) + " writes it");
  }
  if (writes(how) && read_.grid == who.grid && !(atomic && read_.atomic)) {
    const bool others = read_.of_blocks || read_.block != who.block ||
                        (read_.epoch == who.epoch && (read_.of_threads || !ordered(read_, who)));
    if (others) {
      throw Violation(
          Kind::kRace, "written while " + threadText(read_.block, read_.thread) + " reads it");
    }
  }
  if (reads(how)) noteRead(who, atomic);
  if (writes(how)) {
    write_ = {who.grid, who.block, who.thread, who.epoch, who.warp_epoch, atomic, false, false};
  }
}

// ---- global memory ----

void GlobalMemory::setRanges(std::vector<Range> ranges) {
  ranges_ = std::move(ranges);
  std::ranges::sort(ranges_, {}, &Range::begin);
  last_ = {0, 0, false};
}

GlobalMemory::Page& GlobalMemory::page(uint64_t address) {
  const uint64_t number = address / kPage;
  if (number != last_number_) {
    last_page_ = &pages_[number]; // whose address stays
    last_number_ = number;
  }
  return *last_page_;
}

void GlobalMemory::mark(uint64_t begin, uint64_t bytes, bool written) {
  while (bytes > 0) {
    const uint64_t at = begin % kPage;
    const uint64_t n = std::min(bytes, kPage - at);
    Page& here = page(begin);
    if (n == kPage) {
      here.all = written;
      here.some.reset();
    } else if (here.all != written) {
      if (here.some == nullptr) {
        here.some = std::make_unique<std::array<bool, kPage>>();
        here.some->fill(here.all);
        here.all = false;
      }
      std::fill_n(here.some->begin() + static_cast<ptrdiff_t>(at), n, written);
    } else if (here.some != nullptr) {
      std::fill_n(here.some->begin() + static_cast<ptrdiff_t>(at), n, written);
    }
    begin += n;
    bytes -= n;
  }
}

/// Pages that nobody knows are without values: of a block of which little is used, a few are known.
void GlobalMemory::forget(uint64_t begin, uint64_t bytes) {
  if (bytes / kPage <= pages_.size()) return mark(begin, bytes, false);
  const uint64_t end = begin + bytes;
  for (auto& [number, page] : pages_) {
    const uint64_t from = std::max(begin, number * kPage);
    const uint64_t to = std::min(end, (number + 1) * kPage);
    if (from < to) mark(from, to - from, false);
  }
}

void GlobalMemory::written(uint64_t begin, uint64_t bytes) {
  mark(begin, bytes, true);
}

void GlobalMemory::copied(uint64_t to, uint64_t from, uint64_t bytes) {
  while (bytes > 0) {
    const Page& source = page(from);
    const uint64_t at = from % kPage;
    uint64_t n = 1; // bytes that are alike
    if (source.all || source.some == nullptr) {
      n = std::min(bytes, kPage - at);
    }
    mark(to, n, source.isWritten(at));
    to += n;
    from += n;
    bytes -= n;
  }
}

const GlobalMemory::Range& GlobalMemory::rangeOf(uint64_t address, uint32_t bytes) {
  if (address >= last_.begin && address + bytes <= last_.end) return last_;
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
  if (after != ranges_.begin()) {
    const Range& found = *std::prev(after);
    if (address + bytes <= found.end) return last_ = found;
    if (address < found.end + 65536) {
      throw Violation(
          Kind::kOutOfBounds,
          std::to_string(bytes) + " bytes at " + hex(address) + ", " +
              std::to_string(address - found.begin) + " bytes from the start of a block of " +
              std::to_string(found.end - found.begin));
    }
  }
  throw Violation(
      Kind::kOutOfBounds, std::to_string(bytes) + " bytes at " + hex(address) + ", in no block");
}

std::byte* GlobalMemory::access(
    const Accessor& who,
    uint64_t address,
    uint32_t bytes,
    Access how,
    uint64_t used,
    const void* value) {
  demandAligned(address, bytes);
  const Range& range = rangeOf(address, bytes);
  if (writes(how) && range.constant) {
    throw Violation(Kind::kOutOfBounds, "a write to constant memory at " + hex(address));
  }
  // An aligned access is on one page.
  Page& here = page(address);
  const uint64_t at = address % kPage;
  auto* const data = reinterpret_cast<std::byte*>(address);
  if (reads(how) && !here.all) {
    for (uint32_t i = 0; i < bytes; ++i) {
      if ((used >> i & 1) != 0 && !here.isWritten(at + i)) {
        throw Violation(
            Kind::kUninitialised,
            "byte " + std::to_string(address + i - range.begin) + " of a block of " +
                std::to_string(range.end - range.begin) + " was never written");
      }
    }
  }
  if (!range.constant) {
    if (here.tracks == nullptr) here.tracks = std::make_unique<std::array<Track, kPage>>();
    for (uint32_t i = 0; i < bytes; ++i) {
      const bool same = writesOnly(how) && data[i] == static_cast<const std::byte*>(value)[i];
      (*here.tracks)[at + i].note(who, how, same);
    }
  }
  if (writes(how) && !here.all) mark(address, bytes, true);
  return data;
}

// ---- shared memory ----

SharedMemory::SharedMemory(std::vector<Place> places) : places_(std::move(places)) {
  uint32_t end = 0;
  for (const Place& place : places_) end = std::max(end, place.end);
  bytes_.resize(end);
  copied_for_.resize(end);
  tracks_.resize(end);
}

void SharedMemory::begin(uint32_t block) {
  block_ = block;
  std::ranges::fill(copied_for_, uint16_t{0});
}

void SharedMemory::demandInside(uint64_t address, uint32_t bytes) const {
  demandAligned(address, bytes);
  const bool inside = std::ranges::any_of(places_, [&](const Place& place) {
    return address >= place.begin && address + bytes <= place.end;
  });
  if (inside) return;
  throw Violation(
      Kind::kOutOfBounds,
      std::to_string(bytes) + " bytes at " + hex(address) + " of shared memory");
}

void SharedMemory::demandAtRest(uint64_t address) const {
  if (copied_for_[address] == 0) return;
  throw Violation(
      Kind::kRace,
      "shared memory at " + hex(address) + " while a cp.async of thread " +
          std::to_string(copied_for_[address] - 1) + " writes it, which has not waited for it");
}

std::byte* SharedMemory::access(
    Accessor who, uint64_t address, uint32_t bytes, Access how, const void* value) {
  demandInside(address, bytes);
  who.grid = block_; // what an earlier block left is undefined
  std::byte* const data = bytes_.data() + address;
  for (uint32_t i = 0; i < bytes; ++i) {
    demandAtRest(address + i);
    Track& track = tracks_[address + i];
    if (reads(how) && !track.isWrittenIn(block_)) {
      throw Violation(
          Kind::kUninitialised, "shared memory at " + hex(address + i) + " was never written");
    }
    const bool same = writesOnly(how) && track.isWrittenIn(block_) &&
                      data[i] == static_cast<const std::byte*>(value)[i];
    track.note(who, how, same);
  }
  return data;
}

void SharedMemory::beginCopy(Accessor who, uint64_t address, uint32_t bytes) {
  demandInside(address, bytes);
  who.grid = block_;
  for (uint32_t i = 0; i < bytes; ++i) {
    demandAtRest(address + i);
    tracks_[address + i].note(who, Access::kWrite, false);
    copied_for_[address + i] = static_cast<uint16_t>(who.thread + 1);
  }
}

void SharedMemory::endCopy(Accessor who, uint64_t address, uint32_t bytes, const std::byte* data) {
  who.grid = block_;
  for (uint32_t i = 0; i < bytes; ++i) {
    copied_for_[address + i] = 0;
    tracks_[address + i].note(who, Access::kWrite, false);
  }
  std::memcpy(bytes_.data() + address, data, bytes);
}

} // namespace puone::ptx
