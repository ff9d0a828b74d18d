// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/dnn.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

#include "drivers/common/error.h"
#include "drivers/cuda/library_plans.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

using kernels::ConvolutionResult;
using kernels::LibraryConvolution;

/// More workspace is not taken: the driver's own kernels need little.
constexpr size_t kMostWorkspace = size_t{256} << 20;

/// Whether the library has no way of doing what it was asked for.
bool isRefusal(CudnnStatus status) {
  return status == CudnnStatus::kBadParameter8 || status == CudnnStatus::kArchMismatch8 ||
         status == CudnnStatus::kNotSupported8 ||
         (status >= CudnnStatus::kFirstBadParameter && status < CudnnStatus::kFirstInternalError);
}

void checkDnn(const char* call, CudnnStatus status) {
  if (status == CudnnStatus::kSuccess) return;
  check(call, cudaGetLastError()); // if it is CUDA that failed, that says more
  fail(PUONE_INTERNAL, "%s: cuDNN status %d", call, static_cast<int>(status));
}

/// Checks `status`, and whether the library did what it was asked for.
bool isAccepted(const char* call, CudnnStatus status) {
  if (isRefusal(status)) return false;
  checkDnn(call, status);
  return true;
}

std::optional<CudnnType> typeOf(puone_dtype dtype) {
  switch (dtype) {
    case PUONE_FLOAT16:
      return CudnnType::kHalf;
    case PUONE_BFLOAT16:
      return CudnnType::kBFloat16;
    case PUONE_FLOAT32:
      return CudnnType::kFloat;
    case PUONE_FLOAT64:
      return CudnnType::kDouble;
    default:
      return std::nullopt;
  }
}

CudnnMath mathOf(const LibraryConvolution& convolution) {
  if (convolution.dtype == PUONE_FLOAT16 || convolution.dtype == PUONE_BFLOAT16) {
    return CudnnMath::kTensorOp;
  }
  const bool is_full = convolution.dtype == PUONE_FLOAT32 && !convolution.allow_tf32;
  return is_full ? CudnnMath::kFullFloat : CudnnMath::kDefault;
}

// ---- descriptors ----

struct TensorDeleter {
  void operator()(CudnnTensorDescriptor* tensor) const {
    Dnn::library()->destroyTensor(tensor);
  }
};
struct FilterDeleter {
  void operator()(CudnnFilterDescriptor* filter) const {
    Dnn::library()->destroyFilter(filter);
  }
};
struct ConvolutionDeleter {
  void operator()(CudnnConvolutionDescriptor* convolution) const {
    Dnn::library()->destroyConvolution(convolution);
  }
};
struct ActivationDeleter {
  void operator()(CudnnActivationDescriptor* activation) const {
    Dnn::library()->destroyActivation(activation);
  }
};
using Tensor = std::unique_ptr<CudnnTensorDescriptor, TensorDeleter>;
using Filter = std::unique_ptr<CudnnFilterDescriptor, FilterDeleter>;
using Convolution = std::unique_ptr<CudnnConvolutionDescriptor, ConvolutionDeleter>;
using Activation = std::unique_ptr<CudnnActivationDescriptor, ActivationDeleter>;

template <class Owner, class Native>
Owner create(const char* call, CudnnStatus (*function)(Native*)) {
  Native made = nullptr;
  checkDnn(call, function(&made));
  return Owner(made);
}

/// How convolutions of a shape are done.
struct Plan {
  Tensor wide;
  Tensor narrow;
  Tensor bias;
  Filter weight;
  Convolution convolution;
  Activation identity;
  size_t workspace = 0;
  bool is_possible = false;
};

/// The library has one with two spatial dimensions or three; z is left out if it is 1 everywhere.
class Dimensions {
 public:
  explicit Dimensions(const LibraryConvolution& of)
      : first_(
            of.wide_sizes[0] == 1 && of.narrow_sizes[0] == 1 && of.taps[0] == 1 &&
                    of.padding[0] == 0
                ? 1
                : 0) {}

  int spatial() const {
    return 3 - first_;
  }
  int all() const {
    return 2 + spatial();
  }

  using Sizes = std::array<int, 5>;
  Sizes spatialOf(const int64_t (&values)[3]) const {
    Sizes result{};
    for (int d = first_; d < 3; ++d) result[d - first_] = static_cast<int>(values[d]);
    return result;
  }
  Sizes allOf(int64_t outer, int64_t channels, const int64_t (&values)[3]) const {
    Sizes result{static_cast<int>(outer), static_cast<int>(channels)};
    for (int d = first_; d < 3; ++d) result[2 + d - first_] = static_cast<int>(values[d]);
    return result;
  }

 private:
  const int first_;
};

/// Describes a contiguous tensor; false if the library has none of these sizes.
bool describe(Tensor& tensor, CudnnType type, int dimensions, const Dimensions::Sizes& sizes) {
  tensor = create<Tensor>("cudnnCreateTensorDescriptor", Dnn::library()->createTensor);
  Dimensions::Sizes strides{};
  int step = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    strides[d] = step;
    step *= sizes[d];
  }
  return isAccepted(
      "cudnnSetTensorNdDescriptor",
      Dnn::library()->setTensor(tensor.get(), type, dimensions, sizes.data(), strides.data()));
}

bool describe(Plan& plan, const LibraryConvolution& of) {
  const Cudnn& library = *Dnn::library();
  const CudnnType type = *typeOf(of.dtype);
  const CudnnType sum = type == CudnnType::kDouble ? CudnnType::kDouble : CudnnType::kFloat;
  const Dimensions dims(of);
  const int64_t narrow_channels = of.groups * of.narrow_channels;
  const auto wide = dims.allOf(of.batch, of.groups * of.wide_channels, of.wide_sizes);
  const auto narrow = dims.allOf(of.batch, narrow_channels, of.narrow_sizes);
  const auto weight = dims.allOf(narrow_channels, of.wide_channels, of.taps);
  const auto bias = dims.allOf(1, narrow_channels, {1, 1, 1});
  plan.weight = create<Filter>("cudnnCreateFilterDescriptor", library.createFilter);
  plan.convolution =
      create<Convolution>("cudnnCreateConvolutionDescriptor", library.createConvolution);
  plan.identity = create<Activation>("cudnnCreateActivationDescriptor", library.createActivation);
  return describe(plan.wide, type, dims.all(), wide) &&
         describe(plan.narrow, type, dims.all(), narrow) &&
         describe(plan.bias, type, dims.all(), bias) &&
         isAccepted(
             "cudnnSetFilterNdDescriptor",
             library.setFilter(plan.weight.get(), type, kCudnnNchw, dims.all(), weight.data())) &&
         isAccepted(
             "cudnnSetConvolutionNdDescriptor",
             library.setConvolution(
                 plan.convolution.get(),
                 dims.spatial(),
                 dims.spatialOf(of.padding).data(),
                 dims.spatialOf(of.stride).data(),
                 dims.spatialOf(of.dilation).data(),
                 kCudnnCrossCorrelation,
                 sum)) &&
         isAccepted(
             "cudnnSetConvolutionGroupCount",
             library.setGroups(plan.convolution.get(), static_cast<int>(of.groups))) &&
         isAccepted(
             "cudnnSetConvolutionMathType", library.setMath(plan.convolution.get(), mathOf(of))) &&
         isAccepted(
             "cudnnSetActivationDescriptor",
             library.setActivation(plan.identity.get(), kCudnnIdentity, kCudnnPropagateNan, 0));
}

CudnnStatus askWorkspace(CudnnHandle handle, Plan& plan, ConvolutionResult result) {
  const Cudnn& library = *Dnn::library();
  CudnnTensorDescriptor* const wide = plan.wide.get();
  CudnnTensorDescriptor* const narrow = plan.narrow.get();
  CudnnFilterDescriptor* const weight = plan.weight.get();
  CudnnConvolutionDescriptor* const convolution = plan.convolution.get();
  constexpr int kAlgorithm = kCudnnAlgorithm;
  size_t* const bytes = &plan.workspace;
  switch (result) {
    case ConvolutionResult::kNarrow:
      return library.narrowWorkspace(handle, wide, weight, convolution, narrow, kAlgorithm, bytes);
    case ConvolutionResult::kWide:
      return library.wideWorkspace(handle, weight, narrow, convolution, wide, kAlgorithm, bytes);
    default:
      return library.weightWorkspace(handle, wide, narrow, convolution, weight, kAlgorithm, bytes);
  }
}

// ---- plans ----

/// All that a plan depends on.
using Key = std::array<int64_t, 26>;

Key keyOf(const LibraryConvolution& of) {
  Key key{
      static_cast<int64_t>(of.result),
      of.dtype,
      of.allow_tf32,
      of.batch,
      of.groups,
      of.wide_channels,
      of.narrow_channels,
      of.bias != nullptr};
  auto* to = key.begin() + 8;
  for (const auto* sizes :
       {of.wide_sizes, of.narrow_sizes, of.taps, of.stride, of.padding, of.dilation}) {
    to = std::copy(sizes, sizes + 3, to);
  }
  return key;
}

/// Whether the library can count the elements.
bool hasInts(const LibraryConvolution& of) {
  constexpr double kMost = std::numeric_limits<int>::max();
  const auto elements = [](int64_t outer, int64_t channels, const int64_t (&sizes)[3]) {
    return double(outer) * double(channels) * double(sizes[0]) * double(sizes[1]) *
           double(sizes[2]);
  };
  const int64_t wide_channels = of.groups * of.wide_channels;
  const int64_t narrow_channels = of.groups * of.narrow_channels;
  for (const auto* sizes : {of.stride, of.padding, of.dilation}) {
    if (*std::max_element(sizes, sizes + 3) > kMost) return false;
  }
  return elements(of.batch, wide_channels, of.wide_sizes) <= kMost &&
         elements(of.batch, narrow_channels, of.narrow_sizes) <= kMost &&
         elements(narrow_channels, of.wide_channels, of.taps) <= kMost;
}

} // namespace

struct DnnHandle {
  CudnnHandle native;
  LibraryPlans<Key, Plan> plans;
};

namespace {

Plan planned(CudnnHandle handle, const LibraryConvolution& of) {
  Plan plan;
  plan.is_possible =
      describe(plan, of) &&
      isAccepted("cudnnGetConvolutionWorkspaceSize", askWorkspace(handle, plan, of.result)) &&
      plan.workspace <= kMostWorkspace;
  return plan;
}

/// 1 and 0 as the library reads them: doubles of doubles, else floats.
struct Factors {
  explicit Factors(puone_dtype dtype) : is_double(dtype == PUONE_FLOAT64) {}
  const void* one() const {
    return is_double ? static_cast<const void*>(&kDoubles[0]) : &kFloats[0];
  }
  const void* zero() const {
    return is_double ? static_cast<const void*>(&kDoubles[1]) : &kFloats[1];
  }
  static constexpr double kDoubles[2] = {1, 0};
  static constexpr float kFloats[2] = {1, 0};
  const bool is_double;
};

CudnnStatus queue(
    CudnnHandle handle, const Plan& plan, const LibraryConvolution& of, void* workspace) {
  const Cudnn& library = *Dnn::library();
  const Factors factors(of.dtype);
  const void* const one = factors.one();
  const void* const zero = factors.zero();
  CudnnTensorDescriptor* const wide = plan.wide.get();
  CudnnTensorDescriptor* const narrow = plan.narrow.get();
  CudnnFilterDescriptor* const weight = plan.weight.get();
  CudnnConvolutionDescriptor* const convolution = plan.convolution.get();
  switch (of.result) {
    case ConvolutionResult::kWide:
      return library.wideGradient(
          handle,
          one,
          weight,
          of.weight,
          narrow,
          of.narrow,
          convolution,
          kCudnnAlgorithm,
          workspace,
          plan.workspace,
          zero,
          wide,
          of.wide);
    case ConvolutionResult::kWeight:
      return library.weightGradient(
          handle,
          one,
          wide,
          of.wide,
          narrow,
          of.narrow,
          convolution,
          kCudnnAlgorithm,
          workspace,
          plan.workspace,
          zero,
          weight,
          of.weight);
    default:
      break;
  }
  if (of.bias == nullptr) {
    return library.convolve(
        handle,
        one,
        wide,
        of.wide,
        weight,
        of.weight,
        convolution,
        kCudnnAlgorithm,
        workspace,
        plan.workspace,
        zero,
        narrow,
        of.narrow);
  }
  return library.convolveWithBias(
      handle,
      one,
      wide,
      of.wide,
      weight,
      of.weight,
      convolution,
      kCudnnAlgorithm,
      workspace,
      plan.workspace,
      zero,
      narrow,
      of.narrow,
      plan.bias.get(),
      of.bias,
      plan.identity.get(),
      narrow,
      of.narrow);
}

DnnHandle* createHandle() {
  const Cudnn* const library = Dnn::library();
  if (library == nullptr) return nullptr;
  const CudnnHandle native = createNative("cudnnCreate", library->create);
  return native != nullptr ? new DnnHandle{native, {}} : nullptr;
}

} // namespace

const Cudnn* Dnn::library() {
  static const Cudnn* const found = loadCudnn(std::getenv("PUONE_CUDA_DNN"));
  return found;
}

Dnn::Dnn() : handles_(createHandle) {}

bool Dnn::convolve(const LibraryConvolution& convolution, kernels::Launch& launch) {
  if (!typeOf(convolution.dtype) || !hasInts(convolution)) return false;
  const LibraryHandles<DnnHandle>::Taken taken(handles_);
  DnnHandle* const handle = taken.get();
  if (handle == nullptr) return false;
  const Plan& plan =
      handle->plans.of(keyOf(convolution), [&] { return planned(handle->native, convolution); });
  if (!plan.is_possible) return false;
  void* const workspace = launch.scratch(plan.workspace);
  auto* const stream = static_cast<cudaStream_t>(launch.stream());
  checkDnn("cudnnSetStream", library()->setStream(handle->native, stream));
  return isAccepted("cudnnConvolution", queue(handle->native, plan, convolution, workspace));
}

} // namespace puone::cuda
