// SPDX-License-Identifier: BSD-3-Clause
// Kernels that compute each element of the result from one element of each operand. All that such a
// kernel adds is a function of elements:
//
//   constexpr auto kRelu = [](auto x) { return x > 0 ? x : decltype(x)(0); };
//   elementwiseKernel<kRelu, kOrdered, 1>("relu")
#pragma once

#include <algorithm>
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

/// So many elements are converted at a time: for each type of memory there is one loop.
constexpr int64_t kChunk = 256;
template <class T>
using Chunk = std::array<T, kChunk>;

/// Per element type, a function that reads elements, `stride` bytes apart, as T.
template <class T, size_t... kType>
constexpr auto readers(std::index_sequence<kType...> /*all*/) {
  using Read = void (*)(T*, const std::byte*, int64_t, int64_t);
  return std::array<Read, sizeof...(kType)>{
      [](T* to, const std::byte* from, int64_t stride, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          using Element = std::tuple_element_t<kType, types::Types>;
          to[i] = types::cast<T>(types::load<Element>(from + i * stride));
        }
      }...};
}

/// Per element type, a function that writes elements of T as such.
template <class T, size_t... kType>
constexpr auto writers(std::index_sequence<kType...> /*all*/) {
  using Write = void (*)(std::byte*, int64_t, const T*, int64_t);
  return std::array<Write, sizeof...(kType)>{
      [](std::byte* to, int64_t stride, const T* from, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          using Element = std::tuple_element_t<kType, types::Types>;
          types::store(to + i * stride, types::cast<Element>(from[i]));
        }
      }...};
}

/// The operands of one launch, as elements of T, which the kernel computes in.
template <class T>
class Elements {
 public:
  explicit Elements(const puone_elementwise_args& args) : args_(args) {}

  /// `n` elements of operand `i`: of the row at a byte offset, from the element `first`.
  void read(Chunk<T>& to, size_t i, int64_t offset, int64_t first, int64_t n) const {
    const auto type = static_cast<size_t>(args_.dtypes[i]);
    if ((args_.immediate >> i & 1) != 0) {
      const auto* value = reinterpret_cast<const std::byte*>(args_.immediates[i]);
      kReaders[type](to.data(), value, 0, n);
    } else {
      const int64_t stride = args_.operands[i].strides[0];
      const auto* row = static_cast<const std::byte*>(args_.operands[i].data) + offset;
      kReaders[type](to.data(), row + first * stride, stride, n);
    }
    promote(to, n);
  }
  /// Writes elements of operand 0, the output.
  void write(Chunk<T>& from, int64_t offset, int64_t first, int64_t n) const {
    promote(from, n);
    const int64_t stride = args_.operands[0].strides[0];
    auto* row = static_cast<std::byte*>(args_.operands[0].data) + offset;
    const auto type = static_cast<size_t>(args_.dtypes[0]);
    kWriters[type](row + first * stride, stride, from.data(), n);
  }
  /// A scalar of the operator.
  T parameter(size_t i) const {
    return types::load<T>(args_.parameters[i]);
  }

 private:
  static constexpr auto kAll = std::make_index_sequence<types::kTypes>();
  static constexpr auto kReaders = readers<T>(kAll);
  static constexpr auto kWriters = writers<T>(kAll);

  /// Rounds to the type that the operands are promoted to, where that is narrower than T.
  void promote(Chunk<T>& elements, int64_t n) const {
    if (args_.common == args_.compute) return;
    const auto type = static_cast<size_t>(args_.common);
    std::array<std::byte, kChunk * sizeof(T)> narrow;
    kWriters[type](narrow.data(), sizeof(T), elements.data(), n);
    kReaders[type](elements.data(), narrow.data(), sizeof(T), n);
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
  std::array<Chunk<T>, kOperands> chunks;
  forEachRow<kOperands>(args.ndim, args.sizes, operands, [&](const auto& offsets, int64_t length) {
    for (int64_t first = 0; first < length; first += kChunk) {
      const int64_t n = std::min(kChunk, length - first);
      (elements.read(chunks[kInput + 1], kInput + 1, offsets[kInput + 1], first, n), ...);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        chunks[0][i] = kFunction(chunks[kInput + 1][i]..., elements.parameter(kParameter)...);
      }
      elements.write(chunks[0], offsets[0], first, n);
    }
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
