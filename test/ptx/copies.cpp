// SPDX-License-Identifier: BSD-3-Clause
#include "copies.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "operations.h"
#include "violation.h"
#include "warp.h"

namespace puone::ptx {
namespace {

using Copy = Copies::Copy;

/// The bytes that are read now.
std::array<std::byte, 16> source(const Warp& warp, uint32_t lane, const Copy& copy) {
  std::array<std::byte, 16> bytes{};
  GlobalMemory& memory = warp.block.grid.memory;
  if (copy.read == copy.bytes) {
    const auto* const from =
        memory.access(warp.accessor(lane), copy.from, copy.read, Access::kRead, ~0ull, nullptr);
    std::memcpy(bytes.data(), from, copy.read);
    return bytes;
  }
  for (uint32_t i = 0; i < copy.read; ++i) {
    bytes[i] = *memory.access(warp.accessor(lane), copy.from + i, 1, Access::kRead, ~0ull, nullptr);
  }
  return bytes;
}

/// cp.async [to], [from], bytes, read: operands 0 and 1 are the addresses, 2 is `read`; the option
/// is the offset of `from`.
void begin(Warp& warp, const Instruction& in, uint32_t mask) {
  for (uint32_t i = 0; i < 3; ++i) warp.demand(in.source(i), mask);
  Traffic* const traffic = warp.block.grid.traffic;
  if (traffic != nullptr) traffic->begin();
  forNamedLanes(mask, [&](uint32_t lane) {
    Copies& copies = warp.copies[lane];
    Copy copy{
        warp.get(in.source(0), lane) + static_cast<uint64_t>(in.offset),
        warp.get(in.source(1), lane) + in.option,
        in.bytes,
        static_cast<uint32_t>(warp.get(in.source(2), lane)),
        copies.group,
        {}};
    if (copy.read > copy.bytes) {
      throw Violation(
          Kind::kOutOfBounds,
          "reads " + std::to_string(copy.read) + " bytes of a copy of " +
              std::to_string(copy.bytes));
    }
    demandAligned(copy.from, copy.bytes);
    copy.source = source(warp, lane, copy);
    warp.block.shared.beginCopy(warp.accessor(lane), copy.to, copy.bytes);
    copies.under_way.push_back(copy);
    if (traffic != nullptr && copy.read > 0) traffic->note(copy.from, copy.read);
  });
  if (traffic != nullptr) traffic->end(traffic->loaded);
}

void commit(Warp& warp, const Instruction& /*in*/, uint32_t mask) {
  forLanes(mask, [&](uint32_t lane) { ++warp.copies[lane].group; });
}

/// Ends a lane's copies of the groups before `end`.
void await(Warp& warp, uint32_t lane, uint32_t end) {
  auto& under_way = warp.copies[lane].under_way;
  auto next = under_way.begin();
  for (; next != under_way.end() && next->group < end; ++next) {
    if (source(warp, lane, *next) != next->source) {
      throw Violation(Kind::kRace, "what a cp.async reads was changed before it was waited for");
    }
    warp.block.shared.endCopy(warp.accessor(lane), next->to, next->bytes, next->source.data());
  }
  under_way.erase(under_way.begin(), next);
}

void awaitGroups(Warp& warp, const Instruction& in, uint32_t mask) {
  forNamedLanes(mask, [&](uint32_t lane) {
    const uint64_t newest = warp.get(in.source(0), lane);
    const uint32_t groups = warp.copies[lane].group;
    await(warp, lane, newest < groups ? groups - static_cast<uint32_t>(newest) : 0);
  });
}

void awaitAll(Warp& warp, const Instruction& /*in*/, uint32_t mask) {
  forNamedLanes(mask, [&](uint32_t lane) { await(warp, lane, ++warp.copies[lane].group); });
}

} // namespace

bool decodeCopy(const std::string& word, Instruction& in) {
  const bool is_copy = word.starts_with("cp.async.ca.") || word.starts_with("cp.async.cg.");
  if (!is_copy) return false;
  const std::string spaces = word.substr(std::strlen("cp.async.ca."));
  if (spaces != "shared.global" && spaces != "shared::cta.global") {
    throw Violation(Kind::kUnknown, word);
  }
  in.run = begin;
  in.known = Known::kItself;
  return true;
}

void addCopies(Operations& table) {
  table["cp.async.commit_group"] = {commit, Flow::kNext, ":"};
  table["cp.async.wait_group"] = {awaitGroups, Flow::kNext, ":w"};
  table["cp.async.wait_all"] = {awaitAll, Flow::kNext, ":"};
}

} // namespace puone::ptx
