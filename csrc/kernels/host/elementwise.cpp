// SPDX-License-Identifier: BSD-3-Clause
// What all elementwise kernels share on the host: the way through strided operands of any types.
#include "kernels/elementwise.h"

#include <algorithm>
#include <array>

#include "kernels/strided.h"

namespace puone::kernels::PUONE_ISA {
namespace {

/// Elements of a row that are worked on at a time.
constexpr int64_t kPiece = 256;

/// How one operand comes to be dense elements of the functor's type: by way of the operands' common
/// type, if that is narrower than the operand, as 300 beside elements of uint8 is 44.
class Route {
 public:
  Route(int32_t dtype, int32_t functor_dtype, int32_t common, bool narrow, int64_t row_stride)
      : stride(row_stride),
        size(elementSize(functor_dtype)),
        direct(dtype == functor_dtype && stride == size && !narrow),
        in_(castRowOf(functor_dtype, narrow ? common : dtype)),
        out_(castRowOf(narrow ? common : dtype, functor_dtype)),
        narrow_size_(narrow ? elementSize(common) : 0),
        narrow_(castRowOf(common, dtype)),
        widen_(castRowOf(dtype, common)) {}

  int64_t stride;
  int64_t size; // of the functor's type
  bool direct;  // it already is

  /// Casts `n` elements, at most a piece, of the operand to dense ones.
  void read(unsigned char* dense, const unsigned char* data, int64_t n) const {
    if (narrow_size_ == 0) return in_(dense, size, data, stride, n);
    alignas(64) unsigned char buffer[kPiece * 16];
    narrow_(buffer, narrow_size_, data, stride, n);
    in_(dense, size, buffer, narrow_size_, n);
  }

  void write(unsigned char* data, const unsigned char* dense, int64_t n) const {
    if (narrow_size_ == 0) return out_(data, stride, dense, size, n);
    alignas(64) unsigned char buffer[kPiece * 16];
    out_(buffer, narrow_size_, dense, size, n);
    widen_(data, stride, buffer, narrow_size_, n);
  }

 private:
  RowFunction in_, out_;
  int64_t narrow_size_; // of the common type; 0: the way is not by it
  RowFunction narrow_, widen_;
};

/// Whether the operand may hold what the common type does not, or show that a result has wrapped.
bool isNarrowed(const puone_elementwise_args& args, const ElementwiseLoop& loop, int o) {
  const int32_t dtype = args.dtypes[o];
  if (args.common == args.compute || loop.dtypes[o] != args.compute) return false;
  if (dtype == args.common || dtype == PUONE_BOOL) return false;
  const int32_t size = elementSize(dtype), common = elementSize(args.common);
  return o < loop.outputs ? size > common : size >= common;
}

template <int kAll>
LoopNest<kAll> nestOf(Launch& launch, const puone_elementwise_args& args) {
  const auto immediate = [&](int o) { return (args.immediate >> o & 1) != 0; };
  // An immediate stands still wherever the output goes.
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
std::array<Route, kAll> routes(
    const puone_elementwise_args& args,
    const ElementwiseLoop& loop,
    const LoopNest<kAll>& nest,
    std::index_sequence<kOperand...>) {
  return {Route(
      args.dtypes[kOperand],
      loop.dtypes[kOperand],
      args.common,
      isNarrowed(args, loop, kOperand),
      nest.stride(kOperand))...};
}

/// A row, piece by piece through buffers.
template <int kAll>
void runPieces(
    const ElementwiseLoop& loop,
    const std::array<Route, kAll>& route,
    std::array<unsigned char*, kAll> data,
    int64_t n) {
  alignas(64) unsigned char buffers[kAll][kPiece * 16];
  std::array<unsigned char*, kAll> dense;
  for (int64_t done = 0; done < n; done += kPiece) {
    const int64_t m = std::min(n - done, kPiece);
    for (int o = 0; o < kAll; ++o) {
      const Route& r = route[o];
      dense[o] = r.direct ? data[o] : buffers[o];
      // What stands still is read once.
      if (o < loop.outputs || r.direct || (r.stride == 0 && done > 0)) continue;
      r.read(buffers[o], data[o], m);
    }
    loop.apply(loop.functor, dense.data(), m);
    for (int o = 0; o < kAll; ++o) {
      const Route& r = route[o];
      if (o < loop.outputs && !r.direct) r.write(data[o], buffers[o], m);
      data[o] += m * r.stride;
    }
  }
}

template <int kAll>
void runLoop(Launch& launch, const puone_elementwise_args& args, const ElementwiseLoop& loop) {
  const auto nest = nestOf<kAll>(launch, args);
  const auto route = routes<kAll>(args, loop, nest, std::make_index_sequence<kAll>());
  if (std::all_of(route.begin(), route.end(), [](const Route& r) { return r.direct; })) {
    forRows(launch, nest, [&](const auto& data, int64_t n) {
      loop.apply(loop.functor, data.data(), n);
    });
  } else {
    forRows(
        launch, nest, [&](const auto& data, int64_t n) { runPieces<kAll>(loop, route, data, n); });
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
