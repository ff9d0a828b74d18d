// SPDX-License-Identifier: BSD-3-Clause
// The scheduler of a warp: of the lanes that can go on, those with the lowest program counter do,
// so that lanes which took different ways meet where the ways do. Lanes at an exchange or a barrier
// wait for those that it names.
#include "warp.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "violation.h"

namespace puone::ptx {

uint64_t Warp::get(const Operand& operand, uint32_t lane) const {
  switch (operand.width) {
    case Width::kPredicate:
      return lanes<bool>(operand).get(lane) ? 1 : 0;
    case Width::k16:
      return lanes<uint16_t>(operand).get(lane);
    case Width::k32:
      return lanes<uint32_t>(operand).get(lane);
    case Width::k64:
      break;
  }
  return lanes<uint64_t>(operand).get(lane);
}

void Warp::set(const Operand& operand, uint32_t lane, uint64_t value) const {
  switch (operand.width) {
    case Width::kPredicate:
      return lanes<bool>(operand).set(lane, value != 0);
    case Width::k16:
      return lanes<uint16_t>(operand).set(lane, static_cast<uint16_t>(value));
    case Width::k32:
      return lanes<uint32_t>(operand).set(lane, static_cast<uint32_t>(value));
    case Width::k64:
      return lanes<uint64_t>(operand).set(lane, value);
  }
}

void Warp::demand(const Operand& operand, uint32_t mask) const {
  const uint32_t missing = mask & ~defined[operand.number];
  if (missing == 0) return;
  throw Violation(Kind::kUninitialised, "a register without a value", std::countr_zero(missing));
}

Dim3 Warp::thread(uint32_t lane) const {
  const uint32_t number = first_thread + lane;
  const Dim3& size = block.grid.threads;
  return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

namespace {

int32_t lowest(uint32_t lanes) {
  return lanes == 0 ? -1 : std::countr_zero(lanes);
}

/// The lanes in which the results of an instruction have values.
uint32_t knownLanes(const Warp& warp, const Instruction& in, uint32_t lanes) {
  const auto known = [&](uint32_t i) { return warp.defined[in.source(i).number]; };
  const auto bits = [&](uint32_t i) { return *warp.lanes<bool>(in.source(i)).values; };
  switch (in.known) {
    case Known::kIfChosen:
      return lanes & known(2) & ((bits(2) & known(0)) | (~bits(2) & known(1)));
    case Known::kAnd:
      return lanes & ((known(0) & known(1)) | (known(0) & ~bits(0)) | (known(1) & ~bits(1)));
    case Known::kOr:
      return lanes & ((known(0) & known(1)) | (known(0) & bits(0)) | (known(1) & bits(1)));
    default:
      for (uint32_t i = 0; i + in.dests < in.operands; ++i) lanes &= known(i);
      return lanes;
  }
}

void execute(Warp& warp, const Instruction& in, uint32_t lanes) {
  if (in.known == Known::kItself) return in.run(warp, in, lanes);
  const uint32_t known = knownLanes(warp, in, lanes);
  in.run(warp, in, lanes);
  for (uint32_t i = 0; i < in.dests; ++i) {
    uint32_t& defined = warp.defined[in.operand[i].number];
    defined = (defined & ~lanes) | known;
  }
}

/// The lanes of `group` for which the instruction's guard holds.
uint32_t guarded(const Warp& warp, const Instruction& in, uint32_t lanes) {
  if (!in.guarded) return lanes;
  warp.demand(in.guard, lanes);
  const uint32_t holds = *warp.lanes<bool>(in.guard).values;
  return lanes & (in.unless ? ~holds : holds);
}

/// Whether all lanes are there that the exchange names; else the group has to wait.
bool isComplete(const Warp& warp, const Instruction& in, uint32_t lanes) {
  const Operand& named = in.operand[in.operands - 1u];
  warp.demand(named, lanes);
  const auto masks = warp.lanes<uint32_t>(named);
  uint32_t all = 0;
  forLanes(lanes, [&](uint32_t lane) {
    if ((masks.get(lane) >> lane & 1) == 0) {
      throw Violation(Kind::kBarrier, "the lane is not in its own mask", int32_t(lane));
    }
    all |= masks.get(lane);
  });
  const uint32_t gone = all & (warp.exited | ~warp.present);
  if (gone != 0) {
    throw Violation(
        Kind::kBarrier,
        "waits for lane " + std::to_string(lowest(gone)) + ", which has ended or is no thread",
        lowest(lanes));
  }
  if ((all & ~lanes) != 0) return false;
  forLanes(lanes, [&](uint32_t lane) {
    if (masks.get(lane) != lanes) {
      throw Violation(
          Kind::kBarrier, "lanes that are together name different masks", int32_t(lane));
    }
  });
  return true;
}

/// Adds a group, to one that is at the same place if there is one.
void add(std::vector<Group>& groups, const Group& group) {
  for (Group& other : groups) {
    if (other.pc == group.pc) {
      other.lanes |= group.lanes;
      other.waiting = other.waiting && group.waiting;
      return;
    }
  }
  groups.push_back(group);
}

/// The lowest place from `pc` on at which other lanes are.
uint32_t nextMeeting(const std::vector<Group>& groups, uint32_t pc) {
  uint32_t next = ~0u;
  for (const Group& group : groups) {
    if (group.pc >= pc) next = std::min(next, group.pc);
  }
  return next;
}

/// Whether lanes that can go on are at a lower place.
bool isOvertaken(const std::vector<Group>& groups, uint32_t pc) {
  return std::ranges::any_of(
      groups, [&](const Group& group) { return !group.waiting && group.pc < pc; });
}

/// Runs one group until it has ended, or has to wait, or meets or must let others go first.
void run(Warp& warp, Group group, const Instruction*& at) {
  Grid& grid = warp.block.grid;
  std::vector<Group>& groups = warp.groups; // the others
  const Instruction* const code = grid.program.code.data();
  uint32_t meeting = nextMeeting(groups, group.pc);
  while (group.pc != meeting) {
    const Instruction& in = code[group.pc];
    at = &in;
    ++*in.count;
    if (++grid.steps > grid.limit) {
      throw Violation(Kind::kLimit, std::to_string(grid.limit), lowest(group.lanes));
    }
    const uint32_t lanes = guarded(warp, in, group.lanes);
    switch (in.flow) {
      case Flow::kNext:
        if (lanes != 0) execute(warp, in, lanes);
        ++group.pc;
        break;
      case Flow::kBranch:
        if (lanes == group.lanes) {
          group.pc = in.target;
        } else {
          ++group.pc;
          if (lanes == 0) break;
          group.lanes &= ~lanes;
          add(groups, {in.target, lanes});
        }
        if (!groups.empty()) {
          if (isOvertaken(groups, group.pc)) return add(groups, group);
          meeting = nextMeeting(groups, group.pc);
        }
        break;
      case Flow::kExit:
        warp.exited |= lanes;
        group.lanes &= ~lanes;
        if (group.lanes == 0) return;
        ++group.pc;
        break;
      case Flow::kExchange:
        if (lanes != 0) {
          if (!isComplete(warp, in, lanes)) {
            group.waiting = true;
            return groups.push_back(group);
          }
          execute(warp, in, lanes);
        }
        ++group.pc;
        break;
      case Flow::kBarrier:
        if (lanes != group.lanes) {
          throw Violation(
              Kind::kBarrier, "not all threads take part", lowest(group.lanes & ~lanes));
        }
        group.waiting = true;
        return groups.push_back(group);
      case Flow::kTrap:
        throw Violation(Kind::kBarrier, "a trap", lowest(lanes));
    }
  }
  add(groups, group);
}

} // namespace

const Instruction& barrierOf(const Warp& warp) {
  return warp.block.grid.program.code[warp.groups[0].pc];
}

void passBarrier(Warp& warp) {
  warp.groups[0].waiting = false;
  ++warp.groups[0].pc;
}

bool advance(Warp& warp, const Instruction*& at) {
  std::vector<Group>& groups = warp.groups;
  for (;;) {
    auto next = groups.end();
    for (auto each = groups.begin(); each != groups.end(); ++each) {
      if (!each->waiting && (next == groups.end() || each->pc < next->pc)) next = each;
    }
    if (next == groups.end()) break;
    const Group group = *next;
    groups.erase(next);
    run(warp, group, at);
  }
  if (groups.empty()) return false;
  const Group& first = groups[0];
  at = &warp.block.grid.program.code[first.pc];
  if (groups.size() == 1 && at->flow == Flow::kBarrier && first.lanes == warp.present) return true;
  const uint32_t elsewhere = warp.present & ~first.lanes;
  throw Violation(
      Kind::kBarrier,
      "waits for lane " + std::to_string(lowest(elsewhere)) + ", which " +
          ((warp.exited & elsewhere) == elsewhere ? "has ended" : "waits elsewhere"),
      lowest(first.lanes));
}

} // namespace puone::ptx
