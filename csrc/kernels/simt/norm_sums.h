// SPDX-License-Identifier: BSD-3-Clause
// What the gradients of norms sum up over planes, the neighbouring elements of one channel: the
// gradient that comes in, and its products with the input, which is centred and scaled.
#pragma once

#include <cstdint>

#include "kernels/simt/rows.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// to[plane] and to[planes + plane] become the sums.
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
  Normal normals; // of a plane: what x is diminished by, and then multiplied with
  T* to;
};

} // namespace puone::kernels::PUONE_ISA
