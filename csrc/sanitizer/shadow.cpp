// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/shadow.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace puone::sanitizer {
namespace {

bool conflicts(const Access& a, const Access& b) {
  return a.work != b.work && (a.to().flags.writes || b.to().flags.writes) &&
         !happensBefore(*a.work, *b.work) && !happensBefore(*b.work, *a.work);
}

bool contains(Range outer, Range inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

// Whether whatever conflicts with `old` later at this address conflicts with `now` too, or was
// reported with it.
bool supersedes(const Access& now, const Access& old, uintptr_t address) {
  const Flags& by = now.to().flags;
  const Flags& was = old.to().flags;
  if (was.writes && !by.writes) return false;
  if (by.partial &&
      (!was.partial || !contains(old.to().units.at(address), now.to().units.at(address)))) {
    return false;
  }
  if (old.work == now.work || happensBefore(*old.work, *now.work)) return true;
  return by.writes && !happensBefore(*now.work, *old.work);
}

bool same(const c10::SmallVector<Access, 2>& a, const c10::SmallVector<Access, 2>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Access& x, const Access& y) {
    return x.work == y.work && x.argument == y.argument;
  });
}

} // namespace

// A cell that contains `at` ends there, and another one begins.
void Shadow::split(uintptr_t at) {
  auto after = cells_.lower_bound(at);
  if (after == cells_.begin() || (after != cells_.end() && after->first == at)) return;
  Cell& before = std::prev(after)->second;
  if (before.end <= at) return;
  Cell rest = before;
  before.end = at;
  cells_.emplace_hint(after, at, std::move(rest));
}

// Afterwards cells make up exactly these bytes.
void Shadow::cover(Range bytes) {
  split(bytes.begin);
  split(bytes.end);
  auto cell = cells_.lower_bound(bytes.begin);
  for (uintptr_t at = bytes.begin; at < bytes.end;) {
    if (cell == cells_.end() || cell->first > at) {
      const uintptr_t end =
          cell == cells_.end() ? bytes.end : std::min<uintptr_t>(cell->first, bytes.end);
      cell = cells_.emplace_hint(cell, at, Cell{end, true, {}});
    }
    at = cell->second.end;
    ++cell;
  }
}

// Joins neighbours with equal history, also those beside the range.
void Shadow::merge(Range bytes) {
  auto cell = cells_.lower_bound(bytes.begin);
  if (cell != cells_.begin()) --cell;
  while (cell != cells_.end() && cell->first < bytes.end) {
    const auto next = std::next(cell);
    if (next == cells_.end()) return;
    Cell& a = cell->second;
    const Cell& b = next->second;
    if (a.end == next->first && a.initialized == b.initialized && same(a.accesses, b.accesses)) {
      a.end = b.end;
      cells_.erase(next);
    } else {
      cell = next;
    }
  }
}

// Calls f(Range, const Cell*) for the parts of the range; NULL for one without a cell.
template <class F>
void Shadow::forEach(Range bytes, const F& f) const {
  auto cell = cells_.upper_bound(bytes.begin);
  if (cell != cells_.begin()) --cell;
  for (uintptr_t at = bytes.begin; at < bytes.end;) {
    while (cell != cells_.end() && cell->second.end <= at) ++cell;
    const bool known = cell != cells_.end() && cell->first <= at;
    const uintptr_t until = cell == cells_.end() ? bytes.end
                            : known              ? cell->second.end
                                                 : cell->first;
    const uintptr_t end = std::min(until, bytes.end);
    f(Range{at, end}, known ? &cell->second : nullptr);
    at = end;
  }
}

// Calls f(Range, Cell&) for the cells of the range, which are made where there are none.
template <class F>
void Shadow::forEachCell(Range bytes, const F& f) {
  cover(bytes);
  for (auto cell = cells_.lower_bound(bytes.begin); cell != cells_.end() && cell->first < bytes.end;
       ++cell) {
    f(Range{cell->first, cell->second.end}, cell->second);
  }
  merge(bytes);
}

Findings Shadow::access(const Access& access, const Operand& operand, bool copies) {
  Findings found;
  const Flags flags = operand.flags;
  if (operand.count() == 0 || (!flags.reads && !flags.writes)) return found;
  if (operand.count() > kMaxRanges) {
    if (flags.writes) {
      forEachCell(operand.bounds(), [](Range, Cell& cell) { cell.initialized = true; });
    }
    return found;
  }
  const auto conflictsWith = [&](const Cell& cell, Range part, Range run) -> const Access* {
    for (const Access& old : cell.accesses) {
      const bool touched = !old.to().flags.partial || old.to().units.isOneIn(run, part);
      if (touched && conflicts(old, access)) return &old;
    }
    return nullptr;
  };
  if (flags.partial) {
    // It touches something of each unit, so an error is certain where all of one would be one.
    bool all_conflict = true;
    bool all_uninitialized = true;
    std::optional<Conflict> conflict;
    Range unit{};
    int64_t ranges = 0;
    operand.ranges([&](Range run) {
      forEach(run, [&](Range part, const Cell* cell) {
        const Access* old = cell == nullptr ? nullptr : conflictsWith(*cell, part, run);
        all_uninitialized = all_uninitialized && cell != nullptr && !cell->initialized;
        if (old == nullptr) {
          all_conflict = false;
        } else if (!conflict) {
          conflict = Conflict{*old, access, part};
        }
      });
      unit =
          ranges == 0 ? run : Range{std::min(unit.begin, run.begin), std::max(unit.end, run.end)};
      if (++ranges < operand.countOfUnit()) return;
      if (all_conflict && !found.conflict) found.conflict = conflict;
      if (all_uninitialized && flags.reads && !copies && !found.uninitialized) {
        found.uninitialized = Uninitialized{access, unit};
      }
      all_conflict = all_uninitialized = true;
      conflict.reset();
      ranges = 0;
    });
  }
  operand.ranges([&](Range run) {
    forEachCell(run, [&](Range part, Cell& cell) {
      if (!flags.partial) {
        if (const Access* old = found.conflict ? nullptr : conflictsWith(cell, part, run)) {
          found.conflict = Conflict{*old, access, part};
        }
        if (flags.reads && !cell.initialized && !copies && !flags.chosen) {
          if (!found.uninitialized) found.uninitialized = Uninitialized{access, part};
          cell.initialized = true; // an error is reported once
        }
      }
      if (flags.writes && !flags.workspace) cell.initialized = true;
      auto& all = cell.accesses;
      all.erase(
          std::remove_if(
              all.begin(),
              all.end(),
              [&](const Access& old) { return supersedes(access, old, part.begin); }),
          all.end());
      all.push_back(access);
    });
  });
  return found;
}

void Shadow::allocate(Range bytes) {
  forEachCell(bytes, [](Range, Cell& cell) { cell.initialized = false; });
}

void Shadow::copyState(uintptr_t to, uintptr_t from, uintptr_t count) {
  std::vector<Range> unwritten;
  forEach({from, from + count}, [&](Range part, const Cell* cell) {
    if (cell != nullptr && !cell->initialized) {
      unwritten.push_back({part.begin - from + to, part.end - from + to});
    }
  });
  for (const Range& bytes : unwritten) allocate(bytes);
}

bool Shadow::isUninitialized(const Operand& operand) const {
  bool result = operand.count() > 0 && operand.count() <= kMaxRanges;
  if (!result) return false;
  operand.ranges([&](Range run) {
    forEach(run, [&](Range, const Cell* cell) {
      result = result && cell != nullptr && !cell->initialized;
    });
  });
  return result;
}

void Shadow::setUninitialized(const Operand& operand) {
  if (operand.count() > kMaxRanges) return;
  operand.ranges([&](Range run) { allocate(run); });
}

void Shadow::forget(Range bytes) {
  split(bytes.begin);
  split(bytes.end);
  cells_.erase(cells_.lower_bound(bytes.begin), cells_.lower_bound(bytes.end));
}

} // namespace puone::sanitizer
