// SPDX-License-Identifier: BSD-3-Clause
// The negative log likelihood of classes.
#include <stdexcept>

#include "kernels/args/normalization.h"
#include "kernels/blocks.h"
#include "kernels/cast.h"
#include "kernels/entry.h"
#include "kernels/families.h"
#include "kernels/index_check.h"
#include "kernels/map.h"
#include "kernels/row_math.h"

namespace puone::kernels::PUONE_ISA {
namespace {

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

  /// The class of target i, or -1 where there is nothing to do.
  PUONE_FN int64_t classOf(int64_t i) const {
    const int64_t t = args.target_dtype == PUONE_INT64 ? reinterpret_cast<const int64_t*>(target)[i]
                                                       : int64_t{target[i]};
    return t != args.ignore_index && check(t, args.classes) ? t : -1;
  }
  PUONE_FN T weightOf(int64_t t) const {
    return weight ? cast<T>(weight[t]) : T(1);
  }
  /// Where class t of target i lies in the input.
  PUONE_FN int64_t place(int64_t i, int64_t t) const {
    return (i / args.inner * args.classes + t) * args.inner + i % args.inner;
  }

  void each(Launch& launch) const {
    map(launch, count, [&, this](int64_t i) {
      const int64_t t = classOf(i);
      output[i] = cast<X>(t < 0 ? T(0) : -weightOf(t) * cast<T>(in[place(i, t)]));
    });
    map(launch, 1, [this](int64_t i) { total_weight[i] = cast<X>(T(0)); });
  }

  void all(Launch& launch) const {
    blocks(launch, 1, count, [&, this](const Block& block, int64_t) {
      const auto add = [](double a, double b) { return a + b; };
      const double weights = block.reduce(
          count,
          0.0,
          [&, this](int64_t i) {
            const int64_t t = classOf(i);
            return t < 0 ? 0.0 : static_cast<double>(weightOf(t));
          },
          add);
      const double losses = block.reduce(
          count,
          0.0,
          [&, this](int64_t i) {
            const int64_t t = classOf(i);
            return t < 0 ? 0.0 : static_cast<double>(-weightOf(t) * cast<T>(in[place(i, t)]));
          },
          add);
      block.once([&, this] {
        output[0] = cast<X>(static_cast<T>(args.reduction == kMean ? losses / weights : losses));
        total_weight[0] = cast<X>(static_cast<T>(weights));
      });
    });
  }

  void backward(Launch& launch) const {
    map(launch, count, [&, this](int64_t i) {
      const int64_t t = classOf(i);
      if (t < 0) return;
      const int64_t b = i / args.inner, j = i % args.inner;
      const int64_t at =
          args.reduction == kNone ? b * args.grad_strides[0] + j * args.grad_strides[1] : 0;
      const T grad = -weightOf(t) * cast<T>(in[at]);
      output[place(i, t)] =
          cast<X>(args.reduction == kMean ? grad / cast<T>(total_weight[0]) : grad);
    });
  }

  const puone_nll_loss_args& args;
  IndexCheck check;
  X *in, *weight, *output, *total_weight;
  const unsigned char* target;
  int64_t count;
};

template <class Body>
void withType(Launch& launch, const puone_nll_loss_args& args, const Body& body) {
  switch (args.dtype) {
    case PUONE_FLOAT32:
      body(NllLoss<float>(launch, args));
      break;
    case PUONE_FLOAT64:
      body(NllLoss<double>(launch, args));
      break;
    case PUONE_FLOAT16:
      body(NllLoss<Half>(launch, args));
      break;
    case PUONE_BFLOAT16:
      body(NllLoss<BFloat16>(launch, args));
      break;
    default:
      throw std::invalid_argument("nll_loss does not compute in this dtype");
  }
}

void nllLoss(Launch& launch, const puone_nll_loss_args& args) {
  withType(launch, args, [&](const auto& loss) {
    args.reduction == kNone ? loss.each(launch) : loss.all(launch);
  });
}

void nllLossBackward(Launch& launch, const puone_nll_loss_args& args) {
  withType(launch, args, [&](const auto& loss) { loss.backward(launch); });
}

constexpr Kernel kKernels[] = {
    entry<puone_nll_loss_args, nllLoss>("nll_loss"),
    entry<puone_nll_loss_args, nllLossBackward>("nll_loss_backward"),
};

} // namespace

std::span<const Kernel> nllLossKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
