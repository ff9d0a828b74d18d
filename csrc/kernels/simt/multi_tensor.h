// SPDX-License-Identifier: BSD-3-Clause
// Many tensors on a device: each is divided into chunks, one block per chunk. A table in the
// launch's arguments says which chunk a block has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/launch.h"
#include "kernels/simt/elementwise.h"
#include "kernels/simt/vector.h"
#include "kernels/target.h"

namespace puone::kernels::PUONE_ISA {

/// Tensors per launch: the arguments of a launch must fit into 4 KB.
constexpr int kTensorsAtOnce = 32;
constexpr uint32_t kTensorThreads = 256;
/// Elements per block.
constexpr int64_t kChunk = 8192;

template <class Tensor>
struct TensorTable {
  int32_t count;
  uint32_t first_block[kTensorsAtOnce + 1];
  Tensor tensors[kTensorsAtOnce];
};

namespace detail {

template <class Tensor, class Body>
PUONE_GLOBAL(kTensorThreads, 1)
void tensorsKernel(TensorTable<Tensor> table, Body body) {
  int t = 0;
  for (int by = kTensorsAtOnce / 2; by > 0; by /= 2) {
    if (t + by < table.count && table.first_block[t + by] <= blockIdx.x) t += by;
  }
  const Tensor tensor = table.tensors[t];
  const int64_t begin = static_cast<int64_t>(blockIdx.x - table.first_block[t]) * kChunk;
  body(tensor, begin, begin + kChunk < tensor.n ? begin + kChunk : tensor.n);
}

} // namespace detail

/// Calls body(tensor, begin, end), with all threads of a block, for chunks that cover all `count`
/// tensors. describe(t) gives a Tensor, whose member n is the number of elements.
template <class Tensor, class Describe, class Body>
void forTensors(Launch& launch, int count, const Describe& describe, const Body& body) {
  for (int first = 0; first < count; first += kTensorsAtOnce) {
    TensorTable<Tensor> table{};
    table.count = std::min(count - first, kTensorsAtOnce);
    for (int t = 0; t < table.count; ++t) {
      table.tensors[t] = describe(first + t);
      const int64_t chunks = (table.tensors[t].n + kChunk - 1) / kChunk;
      table.first_block[t + 1] = table.first_block[t] + static_cast<uint32_t>(chunks);
    }
    static_assert(sizeof table + sizeof body < 4096);
    const uint32_t blocks = table.first_block[table.count];
    if (blocks == 0) continue;
    dialect::start<dialect::Threads::kIndependent>(
        launch.stream(), detail::tensorsKernel<Tensor, Body>, blocks, kTensorThreads, table, body);
  }
}

/// Calls step(Packed<kElements>{}, i) for the elements from `begin` on, kElements at a time where
/// the alignment allows it, else one at a time.
template <int kElements>
struct Packed {};

template <int kElements, class Step>
PUONE_DEVICE void forChunk(int64_t begin, int64_t end, bool aligned, const Step& step) {
  int64_t first = begin;
  if (aligned) {
    first += (end - begin) / kElements * kElements;
    for (int64_t i = begin + threadIdx.x * kElements; i < first; i += kTensorThreads * kElements) {
      step(Packed<kElements>{}, i);
    }
  }
  for (int64_t i = first + threadIdx.x; i < end; i += kTensorThreads) step(Packed<1>{}, i);
}

/// Loads the elements of `from` from index i on as T; writeVector stores them.
template <class Stored, int kElements, class T>
PUONE_DEVICE void readVector(T (&x)[kElements], const unsigned char* from, int64_t i) {
  detail::readVector<Stored, kElements>(x, reinterpret_cast<const Stored*>(from) + i);
}
template <class Stored, int kElements, class T>
PUONE_DEVICE void writeVector(const T (&x)[kElements], unsigned char* to, int64_t i) {
  detail::writeVector<Stored, kElements>(x, reinterpret_cast<Stored*>(to) + i);
}

PUONE_FN bool isVectorAligned(const unsigned char* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

} // namespace puone::kernels::PUONE_ISA
