// SPDX-License-Identifier: BSD-3-Clause
// Launching elementwise kernels (csrc/kernels/elementwise.h) from TensorIterators.
#pragma once

#include <ATen/TensorIterator.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "aten/core/launch.h"
#include "aten/core/structured.h"
#include "kernels/args/elementwise.h"

namespace puone {

using ElementwiseKernel = kernel::Kernel<puone_elementwise_args>;

// Sets of element types, for what an operator is defined on.
enum TypeSet : uint32_t {
  kBoolType = 1,
  kIntegerTypes = 2,
  kRealTypes = 4, // floating point
  kComplexTypes = 8,
  kIntegers = kIntegerTypes | kBoolType,
  kOrdered = kIntegers | kRealTypes,
  kInexact = kRealTypes | kComplexTypes,
  kNumbers = kOrdered | kComplexTypes,
};

// The type kernels compute in for operands of `type`: float for half and bfloat16, a 32-bit integer
// for shorter ones.
c10::ScalarType computeType(c10::ScalarType type);

// Throws what PyTorch throws, if `type` is not in the set.
void checkType(const char* kernel, c10::ScalarType type, uint32_t types);

// What launchElementwise() passes to the kernel: the type that it computes in, its scalars, and the
// operands.
void setCompute(
    puone_elementwise_args& args, c10::ScalarType compute, c10::ArrayRef<c10::Scalar> parameters);
void setOperands(puone_elementwise_args& args, at::TensorIteratorBase& iter);

// Queues the kernel for the iterator's operands on its device's current stream. The kernel computes
// in the type for `compute`, the operands' common type: float for half and bfloat16, a 32-bit
// integer for shorter integers. CPU operands (Python scalars) are passed by value.
void launchElementwise(
    const ElementwiseKernel& kernel,
    at::TensorIteratorBase& iter,
    c10::ScalarType compute,
    c10::ArrayRef<c10::Scalar> parameters = {});

// The name of an operator, as a template argument.
struct OperatorName {
  char text[40] = {};
  template <size_t kSize>
  constexpr OperatorName(const char (&name)[kSize]) { // implicit, for string literals
    static_assert(kSize <= sizeof text);
    std::copy_n(name, kSize, text);
  }
};

// A structured elementwise operator with a kernel that takes only the operands of the meta
// function.
template <class Meta, const ElementwiseKernel& kKernel, uint32_t kTypes = kNumbers>
struct Elementwise : Meta {
  template <class... A>
  void impl(const A&... /*arguments*/) {
    checkType(kKernel.name(), this->common_dtype(), kTypes);
    launchElementwise(kKernel, *this, this->common_dtype());
  }
};

// A structured operator. Its scalars, in their order, are the kernel's parameters.
template <class Meta, const ElementwiseKernel& kKernel, uint32_t kTypes>
struct WithScalars : Meta {
  template <class... A>
  void impl(const A&... arguments) {
    checkType(kKernel.name(), this->common_dtype(), kTypes);
    c10::SmallVector<c10::Scalar, PUONE_MAX_PARAMETERS> scalars;
    const auto collect = [&]<class T>(const T& argument) {
      if constexpr (std::is_same_v<T, c10::Scalar> || std::is_same_v<T, bool>) {
        scalars.push_back(argument);
      }
    };
    (collect(arguments), ...);
    launchElementwise(kKernel, *this, this->common_dtype(), scalars);
  }
};

} // namespace puone
