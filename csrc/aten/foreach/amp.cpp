// SPDX-License-Identifier: BSD-3-Clause
// What torch.amp.GradScaler asks of a device.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <vector>

#include "aten/core/launch.h"
#include "aten/core/output.h"
#include "aten/foreach/amp_ops.h"
#include "aten/foreach/multi_tensor.h"

namespace puone {
namespace {

using at::Tensor;
using at::TensorList;

void checkFloat(const Tensor& tensor, const char* name) {
  TORCH_CHECK(
      tensor.numel() == 1 && tensor.scalar_type() == c10::kFloat,
      name,
      " must be a float32 tensor of one element");
}

// Tensors of one type that are dense.
void unscaleAlike(TensorList tensors, const Tensor& found_inf, const Tensor& inv_scale) {
  puone_amp_unscale_args args{};
  args.dtype = *kernelDtype(tensors[0].scalar_type());
  args.inv_scale = inputData(inv_scale);
  args.found_inf = found_inf.data_ptr();
  launchTensors(kernel::amp_unscale, args, tensors, [&](auto& tensor, size_t i) {
    tensor.data = tensors[i].data_ptr();
  });
}

void unscale(TensorList self, Tensor& found_inf, const Tensor& inv_scale) {
  checkFloat(found_inf, "found_inf");
  checkFloat(inv_scale, "inv_scale");
  std::vector<Tensor> rest(self.begin(), self.end());
  for (const Tensor& tensor : rest) {
    TORCH_CHECK(
        tensor.device() == found_inf.device() && tensor.device() == inv_scale.device(),
        "all scaled gradients, found_inf and inv_scale must be on the same device");
    requireType(kernel::amp_unscale, tensor.scalar_type()); // before any is changed
  }
  while (!rest.empty()) {
    std::vector<Tensor> alike, others, dense;
    for (const Tensor& tensor : rest) {
      (tensor.scalar_type() == rest[0].scalar_type() ? alike : others).push_back(tensor);
    }
    for (const Tensor& tensor : alike) {
      dense.push_back(tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous());
    }
    unscaleAlike(dense, found_inf, inv_scale);
    for (size_t i = 0; i < alike.size(); ++i) {
      if (!dense[i].is_same(alike[i])) alike[i].copy_(dense[i]);
    }
    rest = std::move(others);
  }
}

Tensor& updateScale(
    Tensor& scale,
    Tensor& growth_tracker,
    const Tensor& found_inf,
    double growth_factor,
    double backoff_factor,
    int64_t growth_interval) {
  checkFloat(scale, "current_scale");
  checkFloat(found_inf, "found_inf");
  TORCH_CHECK(
      growth_tracker.numel() == 1 && growth_tracker.scalar_type() == c10::kInt,
      "growth_tracker must be an int32 tensor of one element");
  puone_amp_update_scale_args args{};
  args.scale = scale.data_ptr();
  args.growth_tracker = growth_tracker.data_ptr();
  args.found_inf = inputData(found_inf);
  args.growth_factor = growth_factor;
  args.backoff_factor = backoff_factor;
  args.growth_interval = growth_interval;
  launchKernel(kernel::amp_update_scale, args, getCurrentStream(scale.device().index()));
  return scale;
}

} // namespace
} // namespace puone

#include "aten/foreach/amp_registrations.inc"
