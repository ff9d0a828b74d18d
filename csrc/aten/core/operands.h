// SPDX-License-Identifier: BSD-3-Clause
// Converts torch's description of an operand to that of the kernels (csrc/kernels/args.h).
#pragma once

#include <ATen/TensorIterator.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <optional>

#include "kernels/args.h"

namespace puone {

// The kernels' name of an element type; nothing for types the kernels only move, such as float8.
constexpr std::optional<puone_dtype> kernelDtype(c10::ScalarType type) noexcept {
  switch (type) {
    case c10::ScalarType::Bool:
      return PUONE_BOOL;
    case c10::ScalarType::Byte:
      return PUONE_UINT8;
    case c10::ScalarType::Char:
      return PUONE_INT8;
    case c10::ScalarType::Short:
      return PUONE_INT16;
    case c10::ScalarType::Int:
      return PUONE_INT32;
    case c10::ScalarType::Long:
      return PUONE_INT64;
    case c10::ScalarType::UInt16:
      return PUONE_UINT16;
    case c10::ScalarType::UInt32:
      return PUONE_UINT32;
    case c10::ScalarType::UInt64:
      return PUONE_UINT64;
    case c10::ScalarType::Half:
      return PUONE_FLOAT16;
    case c10::ScalarType::BFloat16:
      return PUONE_BFLOAT16;
    case c10::ScalarType::Float:
      return PUONE_FLOAT32;
    case c10::ScalarType::Double:
      return PUONE_FLOAT64;
    case c10::ScalarType::ComplexHalf:
      return PUONE_COMPLEX32;
    case c10::ScalarType::ComplexFloat:
      return PUONE_COMPLEX64;
    case c10::ScalarType::ComplexDouble:
      return PUONE_COMPLEX128;
    default:
      return std::nullopt;
  }
}

// Whether kernels compute in the type, not only move it. PyTorch itself computes little in uint64.
constexpr bool isComputable(c10::ScalarType type) noexcept {
  return kernelDtype(type) && type != c10::ScalarType::UInt64;
}

// Throws the same error as TensorIterator if results of `type` cannot be cast to `out`.
inline void checkCanHold(const at::TensorBase& out, c10::ScalarType type) {
  TORCH_CHECK(
      c10::canCast(type, out.scalar_type()),
      "result type ",
      type,
      " can't be cast to the desired output type ",
      out.scalar_type());
}

// Fills ndim and sizes of a kernel's arguments from an iterator. Its dimensions are already
// coalesced and ordered innermost first.
template <typename Args>
void setShape(Args& args, const at::TensorIteratorBase& iter) {
  TORCH_CHECK(
      iter.ndim() <= PUONE_MAX_DIMS,
      "puone: tensor has too many (>",
      PUONE_MAX_DIMS,
      ") dims that cannot be merged");
  args.ndim = iter.ndim();
  std::copy(iter.shape().begin(), iter.shape().end(), args.sizes);
}

// Fills one operand from the iterator's operand `index`.
inline void setOperand(puone_operand& operand, const at::TensorIteratorBase& iter, int64_t index) {
  operand.data = iter.data_ptr(index);
  std::copy(iter.strides(index).begin(), iter.strides(index).end(), operand.strides);
}

} // namespace puone
