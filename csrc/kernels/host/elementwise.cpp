// SPDX-License-Identifier: BSD-3-Clause
// The loop over strided operands of any types that all elementwise kernels share on the host.
#include "kernels/elementwise.h"

#include <algorithm>
#include <array>

#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// Elements of a row that are processed at a time.
constexpr int64_t kPiece = 256;

/// Casts one operand to dense elements of the functor's type and back. The cast goes through the
/// operands' common type if that is narrower: 300 with an operand of uint8 becomes 44.
class OperandCast {
 public:
  OperandCast(
      int32_t dtype, int32_t functor_dtype, int32_t common, bool through_common, int64_t row_stride)
      : stride(row_stride),
        size(elementSize(functor_dtype)),
        direct(dtype == functor_dtype && stride == size && !through_common),
        in_(castRowOf(functor_dtype, through_common ? common : dtype)),
        out_(castRowOf(through_common ? common : dtype, functor_dtype)),
        common_size_(through_common ? elementSize(common) : 0),
        to_common_(castRowOf(common, dtype)),
        from_common_(castRowOf(dtype, common)) {}

  int64_t stride;
  int64_t size; // of the functor's type
  bool direct;  // needs no cast: is dense and of that type

  /// Casts `n` elements of the operand, at most kPiece, to dense ones.
  void read(unsigned char* dense, const unsigned char* data, int64_t n) const {
    if (common_size_ == 0) return in_(dense, size, data, stride, n);
    alignas(64) unsigned char buffer[kPiece * 16];
    to_common_(buffer, common_size_, data, stride, n);
    in_(dense, size, buffer, common_size_, n);
  }

  void write(unsigned char* data, const unsigned char* dense, int64_t n) const {
    if (common_size_ == 0) return out_(data, stride, dense, size, n);
    alignas(64) unsigned char buffer[kPiece * 16];
    out_(buffer, common_size_, dense, size, n);
    from_common_(data, stride, buffer, common_size_, n);
  }

 private:
  RowFunction in_, out_;
  int64_t common_size_; // of the common type; 0: casts do not go through it
  RowFunction to_common_, from_common_;
};

template <int kAll>
LoopNest<kAll> nestOf(Launch& launch, const puone_elementwise_args& args) {
  const auto immediate = [&](int o) { return (args.immediate >> o & 1) != 0; };
  // An immediate is broadcast; it has no operand of its own, so the output's takes its position.
  std::array<const puone_operand*, kAll> operands;
  for (int o = 0; o < kAll; ++o) operands[o] = &args.operands[immediate(o) ? 0 : o];
  LoopNest<kAll> nest = loopNest<kAll>(launch, args.ndim, args.sizes, operands);
  for (int o = 0; o < kAll; ++o) {
    if (!immediate(o)) continue;
    nest.data[o] = const_cast<unsigned char*>(args.immediates[o]);
    nest.strides[o] = {};
  }
  return nest;
}

template <int kAll, size_t... kOperand>
std::array<OperandCast, kAll> operandCasts(
    const puone_elementwise_args& args,
    const ElementwiseLoop& loop,
    const LoopNest<kAll>& nest,
    std::index_sequence<kOperand...>) {
  return {OperandCast(
      args.dtypes[kOperand],
      loop.dtypes[kOperand],
      args.common,
      detail::castsThroughCommon(
          args, loop.dtypes[kOperand], kOperand, static_cast<int>(kOperand) < loop.outputs),
      nest.stride(kOperand))...};
}

/// Runs the loop over a row, piece by piece through buffers.
template <int kAll>
void runPieces(
    const ElementwiseLoop& loop,
    const std::array<OperandCast, kAll>& casts,
    std::array<unsigned char*, kAll> data,
    int64_t n) {
  alignas(64) unsigned char buffers[kAll][kPiece * 16];
  std::array<unsigned char*, kAll> dense;
  for (int64_t done = 0; done < n; done += kPiece) {
    const int64_t m = std::min(n - done, kPiece);
    for (int o = 0; o < kAll; ++o) {
      const OperandCast& r = casts[o];
      dense[o] = r.direct ? data[o] : buffers[o];
      // A broadcast operand is read once.
      if (o < loop.outputs || r.direct || (r.stride == 0 && done > 0)) continue;
      r.read(buffers[o], data[o], m);
    }
    loop.apply(loop.functor, dense.data(), m);
    for (int o = 0; o < kAll; ++o) {
      const OperandCast& r = casts[o];
      if (o < loop.outputs && !r.direct) r.write(data[o], buffers[o], m);
      data[o] += m * r.stride;
    }
  }
}

template <int kAll>
void runLoop(Launch& launch, const puone_elementwise_args& args, const ElementwiseLoop& loop) {
  const auto nest = nestOf<kAll>(launch, args);
  const auto casts = operandCasts<kAll>(args, loop, nest, std::make_index_sequence<kAll>());
  if (std::all_of(casts.begin(), casts.end(), [](const OperandCast& r) { return r.direct; })) {
    forRows(launch, nest, [&](const auto& data, int64_t n) {
      loop.apply(loop.functor, data.data(), n);
    });
  } else {
    forRows(
        launch, nest, [&](const auto& data, int64_t n) { runPieces<kAll>(loop, casts, data, n); });
  }
}

} // namespace

void elementwise(Launch& launch, const puone_elementwise_args& args, const ElementwiseLoop& loop) {
  static_assert(PUONE_MAX_OPERANDS == 6);
  switch (loop.operands) {
    case 1:
      return runLoop<1>(launch, args, loop);
    case 2:
      return runLoop<2>(launch, args, loop);
    case 3:
      return runLoop<3>(launch, args, loop);
    case 4:
      return runLoop<4>(launch, args, loop);
    case 5:
      return runLoop<5>(launch, args, loop);
    default:
      return runLoop<6>(launch, args, loop);
  }
}

} // namespace puone::kernels::PUONE_ISA
