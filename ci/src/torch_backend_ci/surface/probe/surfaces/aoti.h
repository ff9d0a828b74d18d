// SPDX-License-Identifier: BSD-3-Clause
// AOTInductor: a runner for the device, and the C shim that generated code calls.
#pragma once

#include "version.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#if PROBE_TORCH(2, 6)
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>
#endif

namespace probe {
namespace {

#if PROBE_TORCH(2, 6)
struct Runner final : torch::inductor::AOTIModelContainerRunner {
  Runner(const std::string& path, size_t models, const std::string& device)
#if PROBE_TORCH(2, 7)
      : AOTIModelContainerRunner(path, models, device, "", false) {
  }
  std::vector<at::Tensor> run_impl(std::vector<AtenTensorHandle>&, void*) override;
#else
      : AOTIModelContainerRunner(path, models, device, "") {
  }
  std::vector<at::Tensor> run(const std::vector<at::Tensor>&, void*) override;
#endif
};

#if PROBE_TORCH(2, 7)
std::unique_ptr<torch::inductor::AOTIModelContainerRunner> makeRunner(
    const std::string& path,
    size_t models,
    const std::string& device,
    const std::string&,
    const bool) {
  return std::make_unique<Runner>(path, models, device);
}
#else
std::unique_ptr<torch::inductor::AOTIModelContainerRunner> makeRunner(
    const std::string& path, size_t models, const std::string& device, const std::string&) {
  return std::make_unique<Runner>(path, models, device);
}
#endif

torch::inductor::RegisterAOTIModelRunner registered_runner("privateuseone", &makeRunner);

void useRunners() {
  new Runner("model.so", 1, "privateuseone");
  (void)torch::inductor::getAOTIModelRunnerRegistry().size();
}
#endif

AOTITorchError useShim(void* memory, AtenTensorHandle* tensor) {
  const int64_t size = 1;
  const int32_t dtype = aoti_torch_dtype_float32();
#if PROBE_TORCH(2, 7)
  const int32_t device = aoti_torch_device_type_privateuse1();
#else
  const int32_t device = aoti_torch_device_type_cpu();
#endif
  aoti_torch_empty_strided(1, &size, &size, dtype, device, 0, tensor);
  return aoti_torch_create_tensor_from_blob(memory, 1, &size, &size, 0, dtype, device, 0, tensor);
}

} // namespace
} // namespace probe
