// SPDX-License-Identifier: BSD-3-Clause
// Random permutations on a device: one thread per position finds the number that the shuffle leaves
// there.
//
// No step before i changes position i. So step i moves number i to its partner, and moves to
// position i what the partner held: the number of the last step before i with the same partner, or,
// if there is none, the number that the partner's own step moved there. In the end a position holds
// the number of the last step that had it as its partner, or else what its own step moved there.
// Each position has an unordered list of the steps that had it as their partner; its average length
// is at most log n.
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/permutation.h"
#include "kernels/philox.h"
#include "kernels/random.h"
#include "kernels/simt/map.h"

namespace puone::kernels::PUONE_ISA {
namespace detail {

class Shuffle {
 public:
  using Link =
      unsigned long long; // the number of a step + 1, or 0; a type that atomicExch supports

  Shuffle(Launch& launch, const puone_randperm_args& args)
      : position_(launch, args),
        heads_(static_cast<Link*>(launch.scratch(static_cast<size_t>(args.n) * sizeof(Link)))),
        next_(static_cast<Link*>(launch.scratch(static_cast<size_t>(args.n) * sizeof(Link)))) {}

  PUONE_DEVICE void clear(int64_t place) const {
    heads_[place] = 0;
  }

  PUONE_DEVICE void enlist(int64_t step) const {
    const int64_t with = partnerOf(step);
    if (with != step) next_[step] = atomicExch(&heads_[with], static_cast<Link>(step) + 1);
  }

  PUONE_DEVICE int64_t numberAt(int64_t place) const {
    const int64_t last = lastBefore(place, INT64_MAX);
    return last >= 0 ? last : broughtTo(place);
  }

 private:
  PUONE_DEVICE int64_t partnerOf(int64_t step) const {
    uint64_t bits[2];
    drawing::split(
        philox(position_.counter(), static_cast<uint64_t>(step) / 2, position_.seed()), bits);
    return partner(bits[step % 2], step);
  }

  /// The last step before `end` that had `place` as a partner, or -1.
  PUONE_DEVICE int64_t lastBefore(int64_t place, int64_t end) const {
    int64_t last = -1;
    for (Link link = heads_[place]; link != 0; link = next_[link - 1]) {
      const auto step = static_cast<int64_t>(link - 1);
      if (step < end && step > last) last = step;
    }
    return last;
  }

  /// The number that a position's own step moves there.
  PUONE_DEVICE int64_t broughtTo(int64_t place) const {
    for (;;) {
      const int64_t with = partnerOf(place);
      if (with == place) return place;
      const int64_t last = lastBefore(with, place);
      if (last >= 0) return last;
      place = with;
    }
  }

  Position position_;
  Link *heads_, *next_;
};

} // namespace detail

inline void permute(Launch& launch, const puone_randperm_args& args, int64_t* out) {
  if (args.n == 0) return;
  const detail::Shuffle shuffle(launch, args);
  map(launch, args.n, [=] PUONE_DEVICE(int64_t place) { shuffle.clear(place); });
  map(launch, args.n, [=] PUONE_DEVICE(int64_t step) { shuffle.enlist(step); });
  map(launch, args.n, [=] PUONE_DEVICE(int64_t place) { out[place] = shuffle.numberAt(place); });
}

} // namespace puone::kernels::PUONE_ISA
