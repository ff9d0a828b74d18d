// SPDX-License-Identifier: BSD-3-Clause
// The negative log likelihood of classes.
#include "kernels/nll_loss.h"

#include <stdexcept>

#include "kernels/args/normalization.h"
#include "kernels/families/nll_loss.h"
#include "kernels/map.h"
#include "kernels/target.h"

#ifdef PUONE_SIMT
#include "kernels/simt/nll_loss.h"
#else
#include "kernels/host/nll_loss.h"
#endif

namespace puone::kernels::PUONE_ISA {
namespace {

using nll::NllLoss;

template <class X>
struct Each {
  PUONE_DEVICE void operator()(int64_t i) const {
    using T = RowType<X>;
    const int64_t t = loss.classOf(i);
    loss.output[i] = cast<X>(t < 0 ? T(0) : loss.lossOf(i, t));
  }
  NllLoss<X> loss;
};

template <class X>
struct ClearWeight {
  PUONE_DEVICE void operator()(int64_t i) const {
    total_weight[i] = cast<X>(0.0f);
  }
  X* total_weight;
};

template <class X>
struct Backward {
  PUONE_DEVICE void operator()(int64_t i) const {
    using T = RowType<X>;
    const int64_t t = loss.classOf(i);
    if (t < 0) return;
    const puone_nll_loss_args& args = loss.args;
    const int64_t b = i / args.inner, j = i % args.inner;
    const int64_t at =
        args.reduction == nll::kNone ? b * args.grad_strides[0] + j * args.grad_strides[1] : 0;
    const T grad = -loss.weightOf(t) * cast<T>(loss.in[at]);
    loss.output[loss.place(i, t)] =
        cast<X>(args.reduction == nll::kMean ? grad / cast<T>(loss.total_weight[0]) : grad);
  }
  NllLoss<X> loss;
};

template <class Body>
void withType(Launch& launch, const puone_nll_loss_args& args, const Body& body) {
  switch (args.dtype) {
    case PUONE_FLOAT32:
      return body(NllLoss<float>(launch, args));
    case PUONE_FLOAT64:
      return body(NllLoss<double>(launch, args));
    case PUONE_FLOAT16:
      return body(NllLoss<Half>(launch, args));
    case PUONE_BFLOAT16:
      return body(NllLoss<BFloat16>(launch, args));
  }
  throw std::invalid_argument("nll_loss does not compute in this dtype");
}

void nllLoss(Launch& launch, const puone_nll_loss_args& args) {
  withType(launch, args, [&]<class X>(const NllLoss<X>& loss) {
    if (args.reduction == nll::kNone) {
      map(launch, loss.count, Each<X>{loss});
      map(launch, 1, ClearWeight<X>{loss.total_weight});
    } else {
      nll::sumUp(launch, loss);
    }
  });
}

void nllLossBackward(Launch& launch, const puone_nll_loss_args& args) {
  withType(launch, args, [&]<class X>(const NllLoss<X>& loss) {
    map(launch, loss.count, Backward<X>{loss});
  });
}

} // namespace

PUONE_KERNEL(nll_loss) = nllLoss;
PUONE_KERNEL(nll_loss_backward) = nllLossBackward;

} // namespace puone::kernels::PUONE_ISA
