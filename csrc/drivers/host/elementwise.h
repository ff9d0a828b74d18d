// SPDX-License-Identifier: BSD-3-Clause
// Kernels that compute each element of the result from one element of each operand. All that such a
// kernel adds is a function of elements:
//
//   constexpr auto kRelu = [](auto x) { return x > 0 ? x : decltype(x)(0); };
//   elementwiseKernel<kRelu, kOrdered, 1>("relu")
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "drivers/common/error.h"
#include "drivers/host/kernels.h"
#include "drivers/host/strided.h"
#include "kernels/args/elementwise.h"
#include "kernels/cast.h"
#include "kernels/types.h"

namespace puone::host {

namespace types = kernels::PUONE_ISA;

// The sets of types in csrc/hal/kernels.yaml.
constexpr uint64_t bits(std::initializer_list<puone_dtype> all) {
  uint64_t result = 0;
  for (const puone_dtype each : all) result |= uint64_t{1} << each;
  return result;
}
constexpr uint64_t kOrdered = bits(
    {PUONE_BOOL,
     PUONE_UINT8,
     PUONE_INT8,
     PUONE_INT16,
     PUONE_INT32,
     PUONE_INT64,
     PUONE_UINT16,
     PUONE_UINT32,
     PUONE_FLOAT16,
     PUONE_BFLOAT16,
     PUONE_FLOAT32,
     PUONE_FLOAT64});
constexpr uint64_t kNumbers = kOrdered | bits({PUONE_COMPLEX32, PUONE_COMPLEX64, PUONE_COMPLEX128});

namespace detail {

/// Per element type, a function that reads such an element as a T.
template <class T, size_t... kType>
constexpr auto readers(std::index_sequence<kType...> /*all*/) {
  return std::array<T (*)(const void*), sizeof...(kType)>{[](const void* from) {
    return types::cast<T>(types::load<std::tuple_element_t<kType, types::Types>>(from));
  }...};
}

/// Per element type, a function that writes a T as such an element.
template <class T, size_t... kType>
constexpr auto writers(std::index_sequence<kType...> /*all*/) {
  return std::array<void (*)(void*, T), sizeof...(kType)>{[](void* to, T value) {
    types::store(to, types::cast<std::tuple_element_t<kType, types::Types>>(value));
  }...};
}

/// The operands of one launch, as elements of T, which the kernel computes in.
template <class T>
class Elements {
 public:
  explicit Elements(const puone_elementwise_args& args) : args_(args) {}

  /// The element of operand `i` at a byte offset.
  T read(size_t i, int64_t offset) const {
    const bool immediate = (args_.immediate >> i & 1) != 0;
    const void* from = immediate ? static_cast<const void*>(args_.immediates[i])
                                 : static_cast<const std::byte*>(args_.operands[i].data) + offset;
    return promoted(kReaders[static_cast<size_t>(args_.dtypes[i])](from));
  }
  /// Writes an element of operand 0, the output.
  void write(int64_t offset, T value) const {
    auto* to = static_cast<std::byte*>(args_.operands[0].data) + offset;
    kWriters[static_cast<size_t>(args_.dtypes[0])](to, promoted(value));
  }
  /// A scalar of the operator.
  T parameter(size_t i) const {
    return types::load<T>(args_.parameters[i]);
  }

 private:
  static constexpr auto kAll = std::make_index_sequence<types::kTypes>();
  static constexpr auto kReaders = readers<T>(kAll);
  static constexpr auto kWriters = writers<T>(kAll);

  /// The value in the type that the operands are promoted to, where that is narrower than T.
  T promoted(T value) const {
    if (args_.common == args_.compute) return value;
    std::array<std::byte, 16> element;
    kWriters[static_cast<size_t>(args_.common)](element.data(), value);
    return kReaders[static_cast<size_t>(args_.common)](element.data());
  }

  const puone_elementwise_args& args_;
};

template <class T, auto kFunction, size_t... kInput, size_t... kParameter>
void run(
    const puone_elementwise_args& args,
    std::index_sequence<kInput...> /*inputs*/,
    std::index_sequence<kParameter...> /*parameters*/) {
  const Elements<T> elements(args);
  constexpr size_t kOperands = sizeof...(kInput) + 1;
  std::array<const puone_operand*, kOperands> operands{};
  for (size_t i = 0; i < kOperands; ++i) operands[i] = &args.operands[i];
  forEach<kOperands>(args.ndim, args.sizes, operands, [&](const auto& offsets) {
    const T result = kFunction(
        elements.read(kInput + 1, offsets[kInput + 1])..., elements.parameter(kParameter)...);
    elements.write(offsets[0], result);
  });
}

template <auto kFunction, uint64_t kElementTypes, size_t kInputs, size_t kParameters>
void runElementwise(const void* arguments) {
  const auto& args = *static_cast<const puone_elementwise_args*>(arguments);
  const auto as = [&]<class T>(types::Type<T> /*compute*/) {
    run<T, kFunction>(
        args, std::make_index_sequence<kInputs>(), std::make_index_sequence<kParameters>());
  };
  constexpr bool kComplex = (kElementTypes >> PUONE_COMPLEX64 & 1) != 0;
  switch (args.compute) {
    case PUONE_INT32:
      return as(types::Type<int32_t>());
    case PUONE_INT64:
      return as(types::Type<int64_t>());
    case PUONE_FLOAT32:
      return as(types::Type<float>());
    case PUONE_FLOAT64:
      return as(types::Type<double>());
    case PUONE_COMPLEX64:
      if constexpr (kComplex) return as(types::Type<types::Complex<float>>());
      break;
    case PUONE_COMPLEX128:
      if constexpr (kComplex) return as(types::Type<types::Complex<double>>());
      break;
    default:
      break;
  }
  fail(PUONE_INVALID_ARGUMENT, "the kernel does not compute in type %d", int{args.compute});
}

} // namespace detail

/// The kernel that computes kFunction(inputs..., parameters...). The arguments are all of the one
/// type that a launch computes in: int32_t, int64_t, float, double or a Complex of these, which
/// plus() and the like of kernels/arithmetic.h are for. `kElementTypes` are those of kernels.yaml.
template <auto kFunction, uint64_t kElementTypes, size_t kInputs, size_t kParameters = 0>
constexpr Kernel elementwiseKernel(const char* name) {
  return {
      name,
      1,
      kElementTypes,
      sizeof(puone_elementwise_args),
      detail::runElementwise<kFunction, kElementTypes, kInputs, kParameters>};
}

} // namespace puone::host
