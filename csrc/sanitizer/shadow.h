// SPDX-License-Identifier: BSD-3-Clause
// Shadow memory: for every byte the last accesses, and whether it was ever written.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <map>
#include <optional>

#include "sanitizer/work.h"

namespace puone::sanitizer {

// Two accesses to the same bytes, at least one of which writes, that nothing orders.
struct Conflict {
  Access first; // as it was issued
  Access then;
  Range bytes;
};

// Read although never written.
struct Uninitialized {
  Access read;
  Range bytes;
};

struct Findings {
  std::optional<Conflict> conflict;
  std::optional<Uninitialized> uninitialized;
};

// Ranges of bytes with equal history. Not thread-safe.
class Shadow {
 public:
  // An access to the bytes of `operand`, the argument that it names. `copies`: it only moves bytes,
  // so that uninitialised ones are no error in it. Gives the first conflict.
  Findings access(const Access& access, const Operand& operand, bool copies);

  // The memory was handed out: its contents mean nothing.
  void allocate(Range bytes);

  // The bytes at `to` are as initialised as the ones at `from`, the first `count` of them.
  void copyState(uintptr_t to, uintptr_t from, uintptr_t count);

  // Whether no byte of the operand was ever written, and it is known.
  bool isUninitialized(const Operand& operand) const;
  void setUninitialized(const Operand& operand);

  // The memory is gone.
  void forget(Range bytes);
  void clear() {
    cells_.clear();
  }

 private:
  struct Cell {
    uintptr_t end;
    bool initialized = true;
    c10::SmallVector<Access, 2> accesses;
  };
  using Cells = std::map<uintptr_t, Cell>; // by their first byte

  // Above this number of ranges an operand is not followed: it would cost more than the work.
  static constexpr int64_t kMaxRanges = 1 << 16;

  void split(uintptr_t at);
  void cover(Range bytes);
  void merge(Range bytes);
  template <class F>
  void forEach(Range bytes, const F& f) const;
  template <class F>
  void forEachCell(Range bytes, const F& f);

  Cells cells_;
};

} // namespace puone::sanitizer
