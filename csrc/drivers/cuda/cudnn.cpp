// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/cudnn.h"

#include <array>

#include "drivers/cuda/library.h"

namespace puone::cuda {
namespace {

constexpr std::array kNames{"libcudnn.so.9", "libcudnn.so.8"};
/// Where the wheels put them, beside torch.
constexpr std::array kWheelPaths{
    "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/lib/libcudnn.so.8"};

} // namespace

const Cudnn* loadCudnn(const char* choice) {
  void* library =
      choice == nullptr ? openUsual(kNames, kWheelPaths) : openChosen("PUONE_CUDA_DNN", choice);
  if (library == nullptr) return nullptr;
  auto* const functions = new Cudnn{}; // for good, as the library
  SymbolFinder find(library);
  find(functions->create, "cudnnCreate");
  find(functions->setStream, "cudnnSetStream");
  find(functions->createTensor, "cudnnCreateTensorDescriptor");
  find(functions->destroyTensor, "cudnnDestroyTensorDescriptor");
  find(functions->setTensor, "cudnnSetTensorNdDescriptor");
  find(functions->createFilter, "cudnnCreateFilterDescriptor");
  find(functions->destroyFilter, "cudnnDestroyFilterDescriptor");
  find(functions->setFilter, "cudnnSetFilterNdDescriptor");
  find(functions->createConvolution, "cudnnCreateConvolutionDescriptor");
  find(functions->destroyConvolution, "cudnnDestroyConvolutionDescriptor");
  find(functions->setConvolution, "cudnnSetConvolutionNdDescriptor");
  find(functions->setGroups, "cudnnSetConvolutionGroupCount");
  find(functions->setMath, "cudnnSetConvolutionMathType");
  find(functions->createActivation, "cudnnCreateActivationDescriptor");
  find(functions->destroyActivation, "cudnnDestroyActivationDescriptor");
  find(functions->setActivation, "cudnnSetActivationDescriptor");
  find(functions->narrowWorkspace, "cudnnGetConvolutionForwardWorkspaceSize");
  find(functions->wideWorkspace, "cudnnGetConvolutionBackwardDataWorkspaceSize");
  find(functions->weightWorkspace, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  find(functions->convolve, "cudnnConvolutionForward");
  find(functions->convolveWithBias, "cudnnConvolutionBiasActivationForward");
  find(functions->wideGradient, "cudnnConvolutionBackwardData");
  find(functions->weightGradient, "cudnnConvolutionBackwardFilter");
  if (find.missing() == nullptr) return functions;
  delete functions;
  dlclose(library);
  return nullptr;
}

} // namespace puone::cuda
