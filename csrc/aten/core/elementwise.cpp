// SPDX-License-Identifier: BSD-3-Clause
#include "aten/core/elementwise.h"
#include "aten/core/launch.h"

#include <cstring>

#include "aten/core/operands.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using c10::ScalarType;

uint32_t typeSet(ScalarType type) {
  if (type == ScalarType::Bool) return kBoolType;
  if (c10::isIntegralType(type, false)) return kIntegerTypes;
  if (c10::isFloatingType(type)) return kRealTypes;
  return kComplexTypes;
}

template <class T>
void put(unsigned char* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

void setParameter(unsigned char* to, const c10::Scalar& value, ScalarType type) {
  switch (type) {
    case ScalarType::Int:
      return put(to, static_cast<int32_t>(value.to<int64_t>()));
    case ScalarType::Long:
      return put(to, value.to<int64_t>());
    case ScalarType::Float:
      return put(to, static_cast<float>(value.to<double>()));
    case ScalarType::Double:
      return put(to, value.to<double>());
    case ScalarType::ComplexFloat:
      return put(to, static_cast<c10::complex<float>>(value.to<c10::complex<double>>()));
    default:
      return put(to, value.to<c10::complex<double>>());
  }
}

} // namespace

ScalarType computeType(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::UInt16:
      return ScalarType::Int;
    case ScalarType::Long:
    case ScalarType::UInt32:
      return ScalarType::Long;
    case ScalarType::Half:
    case ScalarType::BFloat16:
    case ScalarType::Float:
      return ScalarType::Float;
    case ScalarType::ComplexHalf:
    case ScalarType::ComplexFloat:
      return ScalarType::ComplexFloat;
    default:
      return type;
  }
}

void checkType(const char* kernel, ScalarType type, uint32_t types) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      (typeSet(type) & types) != 0, "\"", kernel, "\" not implemented for '", type, "'");
}

void setCompute(
    puone_elementwise_args& args, ScalarType compute, c10::ArrayRef<c10::Scalar> parameters) {
  const ScalarType type = computeType(compute);
  args.compute = *kernelDtype(type);
  args.common = *kernelDtype(compute);
  TORCH_INTERNAL_ASSERT(parameters.size() <= PUONE_MAX_PARAMETERS);
  for (size_t i = 0; i < parameters.size(); ++i) {
    setParameter(args.parameters[i], parameters[i], type);
  }
}

void setOperands(puone_elementwise_args& args, at::TensorIteratorBase& iter) {
  setShape(args, iter);
  TORCH_INTERNAL_ASSERT(iter.ntensors() <= PUONE_MAX_OPERANDS);
  for (int i = 0; i < iter.ntensors(); ++i) {
    const auto dtype = kernelDtype(iter.dtype(i));
    TORCH_INTERNAL_ASSERT(dtype, "no kernel computes in ", iter.dtype(i));
    args.dtypes[i] = *dtype;
    if (iter.device(i).is_cpu()) {
      TORCH_INTERNAL_ASSERT(iter.operand(i).tensor_base().dim() == 0);
      args.immediate |= 1u << i;
      std::memcpy(args.immediates[i], iter.data_ptr(i), c10::elementSize(iter.dtype(i)));
    } else {
      setOperand(args.operands[i], iter, i);
    }
  }
}

void launchElementwise(
    const ElementwiseKernel& kernel,
    at::TensorIteratorBase& iter,
    ScalarType compute,
    c10::ArrayRef<c10::Scalar> parameters) {
  if (iter.numel() == 0) return;
  requireType(kernel, compute);
  puone_elementwise_args args{};
  setCompute(args, compute, parameters);
  setOperands(args, iter);
  launchKernel(kernel, args, getCurrentStream(iter.device(0).index()));
}

} // namespace puone
