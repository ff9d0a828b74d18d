// SPDX-License-Identifier: BSD-3-Clause
// Sums over planes (the contiguous elements of one channel) for the gradients of norms: of the
// incoming gradient, and of its products with the centred and scaled input.
#pragma once

#include <cstdint>

#include "kernels/simt/rows.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Writes the sums to to[plane] and to[planes + plane].
template <class X, class Normal>
struct PlaneSums : RowBody<X, kTwoRows> {
  using Body = RowBody<X, kTwoRows>;
  using T = RowType<X>;
  using Body::kPart;
  template <int kElements>
  using Part = typename Body::template Part<kElements>;

  template <int kElements>
  PUONE_DEVICE void run(const Rows& rows, const RowTeam& team) const {
    Pair<T, T> sums{0, 0};
    const Pair<T, T> normal = team.isThere() ? normals(team.row()) : Pair<T, T>{0, 0};
    for (int64_t first = 0; first < rows.size; first += rows.held()) {
      const Part<kElements> part(rows, team, first);
      T x[kPart], dy[kPart];
      part.read(x, in);
      part.read(dy, gradient);
      part.each([&](int k) {
        sums.first += dy[k];
        sums.second += dy[k] * ((x[k] - normal.first) * normal.second);
      });
    }
    sums = team.all(sums, Plus());
    if (!team.isFirst()) return;
    to[team.row()] = sums.first;
    to[rows.count + team.row()] = sums.second;
  }

  Elements<T> in, gradient;
  Normal normals; // of a plane: the number subtracted from x, then the factor
  T* to;
};

} // namespace puone::kernels::PUONE_ISA
