// SPDX-License-Identifier: BSD-3-Clause
// Elementwise functors over lists of tensors on a host.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/args/multi_tensor.h"
#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/host/multi_tensor.h"

namespace puone::kernels::PUONE_ISA {
namespace foreaching {

/// One operand of one tensor, as dense elements of the functor's type.
struct Operand {
  unsigned char* data;
  int64_t stride; // 0: one element for all
  int64_t size;   // of the functor's type
  bool direct;
  RowFunction in, out;
};

inline Operand operandOf(
    Launch& launch, const puone_foreach_args& args, const ElementwiseLoop& loop, int t, int o) {
  const bool immediate = (args.immediate >> o & 1) != 0;
  const bool broadcast = immediate || (args.broadcast >> o & 1) != 0;
  const auto& tensor = args.tensors[t];
  return {
      immediate ? const_cast<unsigned char*>(tensor.immediate) : launch.resolve(tensor.data[o]),
      broadcast ? 0 : elementSize(args.dtypes[o]),
      elementSize(loop.dtypes[o]),
      !broadcast && args.dtypes[o] == loop.dtypes[o],
      castRowOf(loop.dtypes[o], args.dtypes[o]),
      castRowOf(args.dtypes[o], loop.dtypes[o])};
}

inline void runTensor(
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

} // namespace foreaching

template <template <class> class F>
void foreachTensor(Launch& launch, const puone_foreach_args& args) {
  if (args.compute == PUONE_FLOAT64) {
    foreaching::runOf<F<double>>(launch, args);
  } else {
    foreaching::runOf<F<float>>(launch, args);
  }
}

} // namespace puone::kernels::PUONE_ISA
