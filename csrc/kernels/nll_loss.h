// SPDX-License-Identifier: BSD-3-Clause
// The negative log likelihood of one target's class.
#pragma once

#include <cstdint>

#include "kernels/args/normalization.h"
#include "kernels/cast.h"
#include "kernels/index_check.h"
#include "kernels/isa.h"
#include "kernels/launch.h"
#include "kernels/row_math.h"
#include "kernels/target.h"
#include "kernels/types.h"

namespace puone::kernels::PUONE_ISA {
namespace nll {

enum Reduction {
  kNone = 0,
  kMean = 1,
  kSum = 2
};

template <class X>
struct NllLoss {
  using T = RowType<X>;

  NllLoss(Launch& launch, const puone_nll_loss_args& args)
      : args(args),
        check(launch, "nll_loss: target"),
        in(elementsAt<X>(launch, args.in)),
        weight(elementsAt<X>(launch, args.weight)),
        output(elementsAt<X>(launch, args.output)),
        total_weight(elementsAt<X>(launch, args.total_weight)),
        target(elementsAt<unsigned char>(launch, args.target)),
        count(args.batch * args.inner) {}

  /// The class of target i, or -1 if the target is ignored.
  PUONE_FN int64_t classOf(int64_t i) const {
    const int64_t t = args.target_dtype == PUONE_INT64 ? reinterpret_cast<const int64_t*>(target)[i]
                                                       : int64_t{target[i]};
    return t != args.ignore_index && check(t, args.classes) ? t : -1;
  }
  PUONE_FN T weightOf(int64_t t) const {
    return weight ? cast<T>(weight[t]) : T(1);
  }
  /// The index in the input of class t of target i.
  PUONE_FN int64_t place(int64_t i, int64_t t) const {
    return (i / args.inner * args.classes + t) * args.inner + i % args.inner;
  }
  /// Stores the result, given the sums over all targets.
  PUONE_FN void keep(double losses, double weights) const {
    output[0] = cast<X>(static_cast<T>(args.reduction == kMean ? losses / weights : losses));
    total_weight[0] = cast<X>(static_cast<T>(weights));
  }
  PUONE_FN T lossOf(int64_t i, int64_t t) const {
    return -weightOf(t) * cast<T>(in[place(i, t)]);
  }

  puone_nll_loss_args args;
  IndexCheck check;
  X *in, *weight, *output, *total_weight;
  const unsigned char* target;
  int64_t count;
};

} // namespace nll
} // namespace puone::kernels::PUONE_ISA
