// SPDX-License-Identifier: BSD-3-Clause
// searchsorted and bucketize: binary search in sorted sequences.
#include <ATen/core/Tensor.h>
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "aten/core/factory.h"
#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/index/lookup.h"
#include "aten/sort/search_ops.h"
#include "kernels/args/search.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using Side = std::optional<c10::string_view>;

Tensor& searchOut(
    const Tensor& given_sequence,
    const Tensor& given_values,
    bool out_int32,
    bool right,
    Side side,
    const std::optional<Tensor>& given_sorter,
    Tensor& out) {
  const Tensor no_sorter = given_sorter.value_or(Tensor());
  at::native::searchsorted_pre_check(
      given_sequence, given_values, out, out_int32, right, side, no_sorter);
  at::native::resize_output(out, given_values.sizes());
  if (given_values.numel() == 0) return out;
  at::native::ResultTypeState state = {};
  state = at::native::update_result_type_state(given_sequence, state);
  state = at::native::update_result_type_state(given_values, state);
  const c10::ScalarType type = at::native::result_type(state);
  TORCH_CHECK_NOT_IMPLEMENTED(
      isReducible(type) && !c10::isComplexType(type) && type != c10::kBool,
      "\"searchsorted_out\" not implemented for '",
      type,
      "'");
  const Tensor sequence = given_sequence.to(type).contiguous();
  const Tensor values = given_values.to(type).contiguous();
  const Tensor sorter = no_sorter.defined() ? no_sorter.contiguous() : no_sorter;
  const Tensor result = out.is_contiguous() ? out : newResult(out.sizes(), {}, out.options());
  puone_search_sorted_args args{};
  args.n = values.numel();
  args.length = sequence.size(-1);
  args.row = sequence.dim() == 1 ? 0 : values.size(-1);
  args.dtype = *kernelDtype(type);
  args.out_dtype = *kernelDtype(out.scalar_type());
  args.right = right || (side && *side == "right");
  args.sequences = inputData(sequence);
  args.sorter = inputData(sorter);
  args.values = inputData(values);
  args.out = outputData(result);
  launchKernel(kernel::search_sorted, args, getCurrentStream(out.device().index()));
  if (!result.is_same(out)) out.copy_(result);
  return out;
}

Tensor search(
    const Tensor& sequence,
    const Tensor& values,
    bool out_int32,
    bool right,
    Side side,
    const std::optional<Tensor>& sorter) {
  const auto type = out_int32 ? c10::ScalarType::Int : c10::ScalarType::Long;
  Tensor out = newResult({0}, {}, sequence.options().dtype(type));
  searchOut(sequence, values, out_int32, right, side, sorter, out);
  return out;
}

Tensor searchScalar(
    const Tensor& sequence,
    const c10::Scalar& value,
    bool out_int32,
    bool right,
    Side side,
    const std::optional<Tensor>& sorter) {
  const Tensor values = at::native::searchsorted_scalar_tensor(value, sequence.device());
  return search(sequence, values, out_int32, right, side, sorter);
}

Tensor& searchScalarOut(
    const Tensor& sequence,
    const c10::Scalar& value,
    bool out_int32,
    bool right,
    Side side,
    const std::optional<Tensor>& sorter,
    Tensor& out) {
  const Tensor values = at::native::searchsorted_scalar_tensor(value, sequence.device());
  return searchOut(sequence, values, out_int32, right, side, sorter, out);
}

void checkBoundaries(const Tensor& boundaries) {
  TORCH_CHECK(
      boundaries.dim() == 1,
      "boundaries tensor must be 1 dimension, but got dim(",
      boundaries.dim(),
      ")");
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  checkBoundaries(boundaries);
  return search(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

Tensor& bucketizeOut(
    const Tensor& self, const Tensor& boundaries, bool out_int32, bool right, Tensor& out) {
  checkBoundaries(boundaries);
  return searchOut(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}

Tensor bucketizeScalar(
    const c10::Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  checkBoundaries(boundaries);
  return searchScalar(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

} // namespace
} // namespace puone

#include "aten/sort/search_registrations.inc"
