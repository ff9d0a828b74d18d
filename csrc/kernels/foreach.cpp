// SPDX-License-Identifier: BSD-3-Clause
// The optimizers' operators on lists of tensors: elementwise functors over all of them at once.
#include "kernels/families.h"
#include "kernels/functors.h"
#include "kernels/multi_tensor.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// One operand of one tensor as dense elements of the functor's type.
struct Operand {
  unsigned char* data;
  int64_t stride; // 0: one element for all
  int64_t size;   // of the functor's type
  bool direct;
  RowFunction in, out;
};

Operand operandOf(
    Launch& launch, const puone_foreach_args& args, const ElementwiseLoop& loop, int t, int o) {
  const bool immediate = (args.immediate >> o & 1) != 0;
  const bool still = immediate || (args.broadcast >> o & 1) != 0;
  const auto& tensor = args.tensors[t];
  return {
      immediate ? const_cast<unsigned char*>(tensor.immediate) : launch.resolve(tensor.data[o]),
      still ? 0 : elementSize(args.dtypes[o]),
      elementSize(loop.dtypes[o]),
      !still && args.dtypes[o] == loop.dtypes[o],
      castRowOf(loop.dtypes[o], args.dtypes[o]),
      castRowOf(args.dtypes[o], loop.dtypes[o])};
}

void runTensor(
    Launch& launch,
    const puone_foreach_args& args,
    const ElementwiseLoop& loop,
    int t,
    int64_t begin,
    int64_t end) {
  constexpr int64_t kPiece = 256;
  alignas(64) unsigned char buffers[PUONE_MULTI_OPERANDS][kPiece * 16];
  std::array<Operand, PUONE_MULTI_OPERANDS> operands;
  std::array<unsigned char*, PUONE_MULTI_OPERANDS> dense;
  for (int o = 0; o < loop.operands; ++o) {
    operands[o] = operandOf(launch, args, loop, t, o);
    operands[o].data += begin * operands[o].stride;
  }
  for (int64_t done = begin; done < end; done += kPiece) {
    const int64_t n = std::min(kPiece, end - done);
    for (int o = 0; o < loop.operands; ++o) {
      const Operand& operand = operands[o];
      dense[o] = operand.direct ? operand.data : buffers[o];
      const bool read = o >= loop.outputs && !operand.direct;
      if (!read || (operand.stride == 0 && done > begin)) continue;
      operand.in(buffers[o], operand.size, operand.data, operand.stride, n);
    }
    loop.apply(loop.functor, dense.data(), n);
    for (int o = 0; o < loop.operands; ++o) {
      Operand& operand = operands[o];
      if (o < loop.outputs && !operand.direct) {
        operand.out(operand.data, operand.stride, buffers[o], operand.size, n);
      }
      operand.data += n * operand.stride;
    }
  }
}

template <class F>
void runOf(Launch& launch, const puone_foreach_args& args) {
  const F functor = detail::functor<F>(args.parameters);
  const ElementwiseLoop loop = loopOf(functor);
  forTensors(launch, args, [&](int t, int64_t begin, int64_t end) {
    runTensor(launch, args, loop, t, begin, end);
  });
}

template <template <class> class F>
void run(Launch& launch, const puone_foreach_args& args) {
  if (args.compute == PUONE_FLOAT64) {
    runOf<F<double>>(launch, args);
  } else {
    runOf<F<float>>(launch, args);
  }
}

PUONE_UNARY(Sqrt, sqrt(x));
PUONE_UNARY(Exp, exp(x));
PUONE_UNARY(Abs, abs(x));
PUONE_UNARY(Neg, -x);
PUONE_UNARY(Reciprocal, 1 / x);
PUONE_BINARY(Mul, a* b);
PUONE_BINARY(Div, a / b);
PUONE_BINARY(Pow, pow(a, b));
PUONE_BINARY(Maximum, a > b || a != a ? a : b);
PUONE_BINARY(Minimum, a < b || a != a ? a : b);

/// The parameter is alpha.
template <class T>
struct Add {
  explicit Add(const Parameters& p) : alpha(p.get<T>(0)) {}
  PUONE_FN T operator()(T a, T b) const {
    return a + alpha * b;
  }
  T alpha;
};
template <class T>
struct Sub {
  explicit Sub(const Parameters& p) : alpha(p.get<T>(0)) {}
  PUONE_FN T operator()(T a, T b) const {
    return a - alpha * b;
  }
  T alpha;
};

template <class T>
struct Addcmul {
  PUONE_FN T operator()(T x, T a, T b, T value) const {
    return x + value * a * b;
  }
};
template <class T>
struct Addcdiv {
  PUONE_FN T operator()(T x, T a, T b, T value) const {
    return x + value * a / b;
  }
};
template <class T>
struct Lerp {
  PUONE_FN T operator()(T start, T end, T weight) const {
    const T difference = end - start;
    return abs(weight) < T(0.5) ? start + weight * difference : end - difference * (1 - weight);
  }
};

constexpr Kernel kKernels[] = {
    entry<puone_foreach_args, run<Sqrt>>("foreach_sqrt"),
    entry<puone_foreach_args, run<Exp>>("foreach_exp"),
    entry<puone_foreach_args, run<Abs>>("foreach_abs"),
    entry<puone_foreach_args, run<Neg>>("foreach_neg"),
    entry<puone_foreach_args, run<Reciprocal>>("foreach_reciprocal"),
    entry<puone_foreach_args, run<Add>>("foreach_add"),
    entry<puone_foreach_args, run<Sub>>("foreach_sub"),
    entry<puone_foreach_args, run<Mul>>("foreach_mul"),
    entry<puone_foreach_args, run<Div>>("foreach_div"),
    entry<puone_foreach_args, run<Pow>>("foreach_pow"),
    entry<puone_foreach_args, run<Maximum>>("foreach_maximum"),
    entry<puone_foreach_args, run<Minimum>>("foreach_minimum"),
    entry<puone_foreach_args, run<Addcmul>>("foreach_addcmul"),
    entry<puone_foreach_args, run<Addcdiv>>("foreach_addcdiv"),
    entry<puone_foreach_args, run<Lerp>>("foreach_lerp"),
};

} // namespace

std::span<const Kernel> foreachKernels() {
  return kKernels;
}

} // namespace puone::kernels::PUONE_ISA
