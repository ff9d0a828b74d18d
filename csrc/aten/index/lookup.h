// SPDX-License-Identifier: BSD-3-Clause
// What the operators that index have in common (csrc/kernels/args/indexing.h): a table, indices
// into it, and the elements that go with them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <string_view>

#include "aten/core/operands.h"
#include "kernels/args/indexing.h"

namespace puone {

struct Lookup {
  const char* name;    // of the operator
  at::Tensor table;    // of the elements' shape; stride 0 in dimensions the indices choose
  at::Tensor elements; // broadcast to the table's shape; undefined if there is a value
  c10::SmallVector<at::Tensor, 2> indices; // int32 or int64, all the same; broadcast likewise
  c10::SmallVector<int64_t, 2> sizes;      // of the dimension that each index chooses from
  c10::SmallVector<int64_t, 2> strides;    // elements
  bool wraps = false;                      // negative indices count from the end
  std::optional<c10::Scalar> value = std::nullopt; // stands for all elements
};

// elements = table[indices]; table[indices] = elements; table[indices] = reduction(both).
void lookUp(const Lookup& lookup);
void scatter(const Lookup& lookup);
void reduce(const Lookup& lookup, puone_reduction reduction);

// lookUp() with an iterator over the elements, the table and the int64 indices; sizes and strides
// (in bytes) of the dimensions they choose from. Negative indices count from the end.
void lookUp(
    const char* name,
    const at::TensorIteratorBase& iter,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides);

// Whether reduce() knows the type.
bool isReducible(c10::ScalarType type);

// The lookup in any table like the operator's own.
using LookupOf = c10::function_ref<Lookup(const at::Tensor& table)>;

// The whole of an operator that reduces: "sum", "prod", "mean", "amax" or "amin", without the
// table's own values if include_self is false.
void reduceAs(
    std::string_view reduction, bool include_self, const at::Tensor& table, LookupOf lookup_of);

// ---- indices that choose along one dimension ----

// As a table or an index of at least one dimension.
at::Tensor atLeast1d(const at::Tensor& tensor);

// For gather and scatter: `index` has the table's dimensions; each of its elements is the index
// along `dim` of its counterpart.
Lookup alongDimension(
    const char* name,
    const at::Tensor& table,
    int64_t dim,
    const at::Tensor& index,
    const at::Tensor& elements);

// For index_select and index_add: `index` has one dimension and chooses whole slices.
Lookup ofSlices(
    const char* name,
    const at::Tensor& table,
    int64_t dim,
    const at::Tensor& index,
    const at::Tensor& elements);

} // namespace puone
