// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/arguments.h"

#include <algorithm>
#include <numeric>

#include "runtime/device.h"

namespace puone::distributed {

c10::Device requireOneDevice(const char* name, const Tensors& tensors) {
  TORCH_CHECK_VALUE(!tensors.empty(), "pccl: ", name, " without a tensor");
  const c10::Device device = tensors.front().device();
  for (const auto& tensor : tensors) {
    TORCH_CHECK_VALUE(
        tensor.device().type() == kDeviceType && tensor.layout() == at::kStrided,
        "pccl: ",
        name,
        " takes dense puone tensors, not one of ",
        tensor.device(),
        " and ",
        tensor.layout());
    TORCH_CHECK_VALUE(
        tensor.device() == device,
        "pccl: ",
        name,
        " takes tensors of one device, not of ",
        device,
        " and ",
        tensor.device());
  }
  return device;
}

namespace {

template <class T>
T& only(const char* name, std::vector<T>& items) {
  TORCH_CHECK_VALUE(
      items.size() == 1, "pccl: ", name, " takes one tensor for each rank, not ", items.size());
  return items.front();
}

} // namespace

at::Tensor& requireOne(const char* name, Tensors& tensors) {
  return only(name, tensors);
}

Tensors& requireOne(const char* name, std::vector<Tensors>& lists) {
  return only(name, lists);
}

void requireSameType(const char* name, const Tensors& tensors) {
  for (const auto& tensor : tensors) {
    TORCH_CHECK_VALUE(
        tensor.scalar_type() == tensors.front().scalar_type(),
        "pccl: ",
        name,
        " takes tensors of one dtype, not of ",
        tensors.front().scalar_type(),
        " and ",
        tensor.scalar_type());
  }
}

void requireSameSize(const char* name, const Tensors& tensors) {
  requireSameType(name, tensors);
  for (const auto& tensor : tensors) {
    TORCH_CHECK_VALUE(
        tensor.numel() == tensors.front().numel(),
        "pccl: ",
        name,
        " takes tensors of one size, not of ",
        tensors.front().sizes(),
        " and ",
        tensor.sizes());
  }
}

void requireCount(const char* name, const char* what, size_t count, int ranks) {
  TORCH_CHECK_VALUE(
      count == static_cast<size_t>(ranks),
      "pccl: ",
      name,
      " takes ",
      ranks,
      " ",
      what,
      ", one for each rank, not ",
      count);
}

void requireRank(const char* name, int64_t rank, int ranks) {
  TORCH_CHECK_VALUE(
      rank >= 0 && rank < ranks, "pccl: ", name, ": no rank ", rank, " in a group of ", ranks);
}

void requireWhole(const char* name, const at::Tensor& whole, const at::Tensor& part, int ranks) {
  requireSameType(name, {whole, part});
  TORCH_CHECK_VALUE(
      whole.numel() == part.numel() * ranks,
      "pccl: ",
      name,
      ": a tensor of ",
      whole.sizes(),
      " does not hold ",
      ranks,
      " of ",
      part.sizes());
}

std::vector<int64_t> requireSplits(
    const char* name, const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks) {
  TORCH_CHECK_VALUE(tensor.dim() > 0, "pccl: ", name, " of a tensor without dimensions");
  const int64_t rows = tensor.size(0);
  if (splits.empty()) {
    TORCH_CHECK_VALUE(
        rows % ranks == 0,
        "pccl: ",
        name,
        ": ",
        rows,
        " rows cannot be shared by ",
        ranks,
        " ranks equally");
    return std::vector<int64_t>(static_cast<size_t>(ranks), rows / ranks);
  }
  requireCount(name, "splits", splits.size(), ranks);
  TORCH_CHECK_VALUE(
      std::all_of(splits.begin(), splits.end(), [](int64_t rows) { return rows >= 0; }) &&
          std::accumulate(splits.begin(), splits.end(), int64_t{0}) == rows,
      "pccl: ",
      name,
      ": the splits ",
      at::IntArrayRef(splits),
      " do not make ",
      rows,
      " rows");
  return splits;
}

std::string describeCall(const char* name, const Tensors& tensors) {
  if (tensors.empty()) return name;
  int64_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.numel();
  return c10::str(name, " of ", elements, " x ", tensors.front().scalar_type());
}

} // namespace puone::distributed
