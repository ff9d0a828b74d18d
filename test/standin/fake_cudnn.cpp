// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for cuDNN: the functions of drivers/cuda/cudnn.h, with the plainest of loops, summed
// in double. What cuDNN refuses by a status, it refuses too. What the driver promises beyond that
// ends the process with a line that starts with "cudnn:": a handle is of one thread at a time, the
// algorithm sums in a fixed order, workspace is as large as was asked for, tensors are contiguous.
#include "fake_cudnn.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "drivers/cuda/cudnn.h"
#include "fake_elements.h"
#include "kernels/types.h"
#include "standin.h"

using namespace puone::cuda;
using namespace puone::kernels::PUONE_ISA;
using fake::addend;
using fake::factor;
using fake::rounded;
using fake::Tf32;

namespace puone::cuda {

struct CudnnContext {
  std::atomic<std::thread::id> user; // who has chosen the stream
  cudaStream_t stream = nullptr;
};

struct CudnnTensorDescriptor {
  CudnnType type;
  std::vector<int> sizes;
};

struct CudnnFilterDescriptor {
  CudnnType type;
  std::vector<int> sizes;
};

struct CudnnConvolutionDescriptor {
  std::vector<int> padding, stride, dilation;
  int mode = -1;
  CudnnType sum{};
  int groups = 1;
  CudnnMath math = CudnnMath::kDefault;
};

struct CudnnActivationDescriptor {
  int mode = -1;
  int nan = -1;
};

} // namespace puone::cuda

namespace {

constexpr size_t kWorkspace = 1 << 12; // of everything, bytes
constexpr auto kBadParameter = CudnnStatus::kFirstBadParameter;
constexpr auto kNotSupported = CudnnStatus::kFirstNotSupported;

std::atomic<const StandinServices*> services{nullptr};
std::atomic<size_t> convolutions{0};
std::atomic<size_t> biases{0};
std::atomic<size_t> plans{0};
std::atomic<size_t> handles{0};
std::atomic<int> refusal{0};

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "cudnn: %s\n", what);
  std::abort();
}

/// Which of the tensors is the result.
enum class Result {
  kNarrow,
  kWide,
  kWeight
};

/// One dimension of the window.
struct Axis {
  int wide, narrow, taps, stride, padding, dilation;
};

struct Task {
  Result result;
  int batch, groups, wide_channels, narrow_channels; // channels per group
  Axis axes[3];                                      // z, y, x
  void* wide;
  void* narrow;
  void* weight;
  const void* bias = nullptr;

  int64_t wideElements() const {
    return int64_t{axes[0].wide} * axes[1].wide * axes[2].wide;
  }
  int64_t narrowElements() const {
    return int64_t{axes[0].narrow} * axes[1].narrow * axes[2].narrow;
  }
  int64_t taps() const {
    return int64_t{axes[0].taps} * axes[1].taps * axes[2].taps;
  }
};

/// Calls body(element of the narrow tensor, of the wide one, of the weight), within a channel each,
/// for each tap at each position that meets an element.
template <class Body>
void forMeetings(const Axis (&axes)[3], const Body& body) {
  const auto along = [&](int d, const auto& inner) {
    const Axis& axis = axes[d];
    for (int position = 0; position < axis.narrow; ++position) {
      for (int tap = 0; tap < axis.taps; ++tap) {
        const int at = position * axis.stride - axis.padding + tap * axis.dilation;
        if (at >= 0 && at < axis.wide) inner(position, at, tap);
      }
    }
  };
  along(0, [&](int64_t pz, int64_t wz, int64_t tz) {
    along(1, [&](int64_t py, int64_t wy, int64_t ty) {
      along(2, [&](int64_t px, int64_t wx, int64_t tx) {
        body(
            (pz * axes[1].narrow + py) * axes[2].narrow + px,
            (wz * axes[1].wide + wy) * axes[2].wide + wx,
            (tz * axes[1].taps + ty) * axes[2].taps + tx);
      });
    });
  });
}

template <class E>
void run(const Task& task) {
  const int64_t wide_size = task.wideElements(), narrow_size = task.narrowElements();
  const int64_t taps = task.taps();
  const int64_t channels = int64_t{task.groups} * task.narrow_channels;
  const int64_t results = task.result == Result::kNarrow ? task.batch * channels * narrow_size
                          : task.result == Result::kWide
                              ? int64_t{task.batch} * task.groups * task.wide_channels * wide_size
                              : channels * task.wide_channels * taps;
  const auto* wide = static_cast<const E*>(task.wide);
  const auto* narrow = static_cast<const E*>(task.narrow);
  const auto* weight = static_cast<const E*>(task.weight);
  std::vector<double> sums(results);
  for (int64_t n = 0; n < task.batch; ++n) {
    for (int64_t k = 0; k < channels; ++k) {
      const int64_t group = k / task.narrow_channels;
      for (int64_t c = 0; c < task.wide_channels; ++c) {
        const int64_t of_wide = ((n * task.groups + group) * task.wide_channels + c) * wide_size;
        const int64_t of_narrow = (n * channels + k) * narrow_size;
        const int64_t of_weight = (k * task.wide_channels + c) * taps;
        forMeetings(task.axes, [&](int64_t p, int64_t w, int64_t t) {
          switch (task.result) {
            case Result::kNarrow:
              sums[of_narrow + p] +=
                  factor<double>(wide[of_wide + w]) * factor<double>(weight[of_weight + t]);
              break;
            case Result::kWide:
              sums[of_wide + w] +=
                  factor<double>(narrow[of_narrow + p]) * factor<double>(weight[of_weight + t]);
              break;
            case Result::kWeight:
              sums[of_weight + t] +=
                  factor<double>(narrow[of_narrow + p]) * factor<double>(wide[of_wide + w]);
              break;
          }
        });
      }
    }
  }
  void* const out = task.result == Result::kNarrow ? task.narrow
                    : task.result == Result::kWide ? task.wide
                                                   : task.weight;
  for (int64_t i = 0; i < results; ++i) {
    double sum = sums[i];
    if (task.bias != nullptr) {
      sum += addend<double>(static_cast<const E*>(task.bias)[i / narrow_size % channels]);
    }
    static_cast<E*>(out)[i] = rounded<E>(sum);
  }
  services.load()->written(out, results * sizeof(E));
}

std::function<void()> work(const Task& task, CudnnType type, CudnnMath math) {
  switch (type) {
    case CudnnType::kHalf:
      return [task] { run<Half>(task); };
    case CudnnType::kBFloat16:
      return [task] { run<BFloat16>(task); };
    case CudnnType::kDouble:
      return [task] { run<double>(task); };
    default:
      break;
  }
  if (math == CudnnMath::kFullFloat) return [task] { run<float>(task); };
  return [task] { run<Tf32>(task); };
}

struct Operands {
  CudnnTensor wide;
  CudnnTensor narrow;
  CudnnFilter weight;
  CudnnConvolution convolution;
};

/// The task without its memory, or what cuDNN says of descriptors that do not fit together.
CudnnStatus taskOf(const Operands& of, Result result, Task& task) {
  const auto& [wide, narrow, weight, convolution] = of;
  const size_t dimensions = wide->sizes.size();
  const auto type = wide->type;
  if (narrow->type != type || weight->type != type) return kBadParameter;
  if (convolution->sum != (type == CudnnType::kDouble ? type : CudnnType::kFloat)) {
    return kNotSupported;
  }
  if (narrow->sizes.size() != dimensions || weight->sizes.size() != dimensions ||
      convolution->stride.size() + 2 != dimensions) {
    return kBadParameter;
  }
  if (convolution->mode != kCudnnCrossCorrelation) broken("taps are taken backwards");
  const int groups = convolution->groups;
  const bool fits = wide->sizes[0] == narrow->sizes[0] &&
                    wide->sizes[1] == weight->sizes[1] * groups &&
                    narrow->sizes[1] == weight->sizes[0] && weight->sizes[0] % groups == 0;
  if (!fits) return kBadParameter;
  task.result = result;
  task.batch = wide->sizes[0];
  task.groups = groups;
  task.wide_channels = weight->sizes[1];
  task.narrow_channels = weight->sizes[0] / groups;
  const size_t absent = 5 - dimensions;
  for (size_t d = 0; d < absent; ++d) task.axes[d] = {1, 1, 1, 1, 0, 1};
  for (size_t d = 2; d < dimensions; ++d) {
    const Axis axis{
        wide->sizes[d],
        narrow->sizes[d],
        weight->sizes[d],
        convolution->stride[d - 2],
        convolution->padding[d - 2],
        convolution->dilation[d - 2]};
    const int room = axis.wide + 2 * axis.padding - axis.dilation * (axis.taps - 1) - 1;
    if (room < 0 || axis.narrow != room / axis.stride + 1) return kBadParameter;
    task.axes[d - 2 + absent] = axis;
  }
  return CudnnStatus::kSuccess;
}

CudnnStatus plan(const Operands& of, Result result, int algorithm, size_t* bytes) {
  ++plans;
  if (algorithm != kCudnnAlgorithm) broken("the algorithm sums in any order");
  if (refusal != 0) return static_cast<CudnnStatus>(refusal.load());
  Task task{};
  *bytes = kWorkspace;
  return taskOf(of, result, task);
}

struct Memory {
  const void* wide;
  const void* narrow;
  const void* weight;
  const void* bias = nullptr;
};

bool isFactor(const void* data, CudnnType type, double value) {
  return (type == CudnnType::kDouble ? *static_cast<const double*>(data)
                                     : *static_cast<const float*>(data)) == value;
}

CudnnStatus queue(
    CudnnHandle handle,
    const Operands& of,
    Result result,
    const Memory& memory,
    int algorithm,
    const void* workspace,
    size_t workspace_bytes,
    const void* alpha,
    const void* beta) {
  // Long enough for another thread that has this handle to choose its stream.
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (handle->user != std::this_thread::get_id()) {
    broken("two threads use a handle at the same time");
  }
  if (algorithm != kCudnnAlgorithm) broken("the algorithm sums in any order");
  if (workspace == nullptr || workspace_bytes < kWorkspace) broken("the workspace is too small");
  if (!isFactor(alpha, of.wide->type, 1) || !isFactor(beta, of.wide->type, 0)) {
    broken("factors are not those of the driver");
  }
  if (handle->stream == nullptr || services == nullptr) return CudnnStatus{1001}; // not initialised
  Task task{};
  const CudnnStatus status = taskOf(of, result, task);
  if (status != CudnnStatus::kSuccess) return status;
  task.wide = const_cast<void*>(memory.wide);
  task.narrow = const_cast<void*>(memory.narrow);
  task.weight = const_cast<void*>(memory.weight);
  task.bias = memory.bias;
  auto body = work(task, of.wide->type, of.convolution->math);
  if (services.load()->enqueue(handle->stream, std::move(body)) != cudaSuccess) {
    return CudnnStatus{5000}; // execution failed
  }
  ++convolutions;
  if (memory.bias != nullptr) ++biases;
  return CudnnStatus::kSuccess;
}

} // namespace

#define PUBLIC __attribute__((visibility("default")))

extern "C" {

PUBLIC void standinLibrary(const StandinServices* given) {
  services = given;
}

PUBLIC size_t fakeCudnnConvolutions() {
  return convolutions;
}

PUBLIC size_t fakeCudnnBiases() {
  return biases;
}

PUBLIC size_t fakeCudnnPlans() {
  return plans;
}

PUBLIC size_t fakeCudnnHandles() {
  return handles;
}

PUBLIC void fakeCudnnRefuse(int status) {
  refusal = status;
}

PUBLIC CudnnStatus cudnnCreate(CudnnHandle* out) {
  *out = new CudnnContext;
  ++handles;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnSetStream(CudnnHandle handle, cudaStream_t stream) {
  handle->user = std::this_thread::get_id();
  handle->stream = stream;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnCreateTensorDescriptor(CudnnTensor* out) {
  *out = new CudnnTensorDescriptor;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnDestroyTensorDescriptor(CudnnTensor tensor) {
  delete tensor;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnSetTensorNdDescriptor(
    CudnnTensor tensor, CudnnType type, int dimensions, const int* sizes, const int* strides) {
  if (dimensions < 4 || dimensions > 5) return kBadParameter;
  int64_t step = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    if (sizes[d] < 1) return kBadParameter;
    if (strides[d] != step) broken("a tensor is not contiguous");
    step *= sizes[d];
  }
  *tensor = {type, {sizes, sizes + dimensions}};
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnCreateFilterDescriptor(CudnnFilter* out) {
  *out = new CudnnFilterDescriptor;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnDestroyFilterDescriptor(CudnnFilter filter) {
  delete filter;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnSetFilterNdDescriptor(
    CudnnFilter filter, CudnnType type, int format, int dimensions, const int* sizes) {
  if (dimensions < 4 || dimensions > 5) return kBadParameter;
  if (format != kCudnnNchw) broken("a filter has another format");
  *filter = {type, {sizes, sizes + dimensions}};
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnCreateConvolutionDescriptor(CudnnConvolution* out) {
  *out = new CudnnConvolutionDescriptor;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnDestroyConvolutionDescriptor(CudnnConvolution convolution) {
  delete convolution;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnSetConvolutionNdDescriptor(
    CudnnConvolution convolution,
    int dimensions,
    const int* padding,
    const int* stride,
    const int* dilation,
    int mode,
    CudnnType sum) {
  for (int d = 0; d < dimensions; ++d) {
    if (padding[d] < 0 || stride[d] < 1 || dilation[d] < 1) return kBadParameter;
  }
  convolution->padding.assign(padding, padding + dimensions);
  convolution->stride.assign(stride, stride + dimensions);
  convolution->dilation.assign(dilation, dilation + dimensions);
  convolution->mode = mode;
  convolution->sum = sum;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnSetConvolutionGroupCount(CudnnConvolution convolution, int groups) {
  convolution->groups = groups;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnSetConvolutionMathType(CudnnConvolution convolution, CudnnMath math) {
  convolution->math = math;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnCreateActivationDescriptor(CudnnActivation* out) {
  *out = new CudnnActivationDescriptor;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnDestroyActivationDescriptor(CudnnActivation activation) {
  delete activation;
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus
cudnnSetActivationDescriptor(CudnnActivation activation, int mode, int nan, double) {
  *activation = {mode, nan};
  return CudnnStatus::kSuccess;
}

PUBLIC CudnnStatus cudnnGetConvolutionForwardWorkspaceSize(
    CudnnHandle,
    CudnnTensor wide,
    CudnnFilter weight,
    CudnnConvolution convolution,
    CudnnTensor narrow,
    int algorithm,
    size_t* bytes) {
  return plan({wide, narrow, weight, convolution}, Result::kNarrow, algorithm, bytes);
}

PUBLIC CudnnStatus cudnnGetConvolutionBackwardDataWorkspaceSize(
    CudnnHandle,
    CudnnFilter weight,
    CudnnTensor narrow,
    CudnnConvolution convolution,
    CudnnTensor wide,
    int algorithm,
    size_t* bytes) {
  return plan({wide, narrow, weight, convolution}, Result::kWide, algorithm, bytes);
}

PUBLIC CudnnStatus cudnnGetConvolutionBackwardFilterWorkspaceSize(
    CudnnHandle,
    CudnnTensor wide,
    CudnnTensor narrow,
    CudnnConvolution convolution,
    CudnnFilter weight,
    int algorithm,
    size_t* bytes) {
  return plan({wide, narrow, weight, convolution}, Result::kWeight, algorithm, bytes);
}

PUBLIC CudnnStatus cudnnConvolutionForward(
    CudnnHandle handle,
    const void* alpha,
    CudnnTensor wide,
    const void* wide_data,
    CudnnFilter weight,
    const void* weight_data,
    CudnnConvolution convolution,
    int algorithm,
    void* workspace,
    size_t workspace_bytes,
    const void* beta,
    CudnnTensor narrow,
    void* narrow_data) {
  return queue(
      handle,
      {wide, narrow, weight, convolution},
      Result::kNarrow,
      {wide_data, narrow_data, weight_data},
      algorithm,
      workspace,
      workspace_bytes,
      alpha,
      beta);
}

PUBLIC CudnnStatus cudnnConvolutionBiasActivationForward(
    CudnnHandle handle,
    const void* alpha,
    CudnnTensor wide,
    const void* wide_data,
    CudnnFilter weight,
    const void* weight_data,
    CudnnConvolution convolution,
    int algorithm,
    void* workspace,
    size_t workspace_bytes,
    const void* beta,
    CudnnTensor /*added*/,
    const void* added_data,
    CudnnTensor bias,
    const void* bias_data,
    CudnnActivation activation,
    CudnnTensor narrow,
    void* narrow_data) {
  if (activation->mode != kCudnnIdentity || activation->nan != kCudnnPropagateNan) {
    broken("the activation is another one");
  }
  if (added_data == nullptr || bias_data == nullptr) return kBadParameter;
  std::vector<int> one_each(narrow->sizes.size(), 1);
  one_each[1] = narrow->sizes[1];
  if (bias->sizes != one_each || bias->type != narrow->type) return kBadParameter;
  return queue(
      handle,
      {wide, narrow, weight, convolution},
      Result::kNarrow,
      {wide_data, narrow_data, weight_data, bias_data},
      algorithm,
      workspace,
      workspace_bytes,
      alpha,
      beta);
}

PUBLIC CudnnStatus cudnnConvolutionBackwardData(
    CudnnHandle handle,
    const void* alpha,
    CudnnFilter weight,
    const void* weight_data,
    CudnnTensor narrow,
    const void* narrow_data,
    CudnnConvolution convolution,
    int algorithm,
    void* workspace,
    size_t workspace_bytes,
    const void* beta,
    CudnnTensor wide,
    void* wide_data) {
  return queue(
      handle,
      {wide, narrow, weight, convolution},
      Result::kWide,
      {wide_data, narrow_data, weight_data},
      algorithm,
      workspace,
      workspace_bytes,
      alpha,
      beta);
}

PUBLIC CudnnStatus cudnnConvolutionBackwardFilter(
    CudnnHandle handle,
    const void* alpha,
    CudnnTensor wide,
    const void* wide_data,
    CudnnTensor narrow,
    const void* narrow_data,
    CudnnConvolution convolution,
    int algorithm,
    void* workspace,
    size_t workspace_bytes,
    const void* beta,
    CudnnFilter weight,
    void* weight_data) {
  return queue(
      handle,
      {wide, narrow, weight, convolution},
      Result::kWeight,
      {wide_data, narrow_data, weight_data},
      algorithm,
      workspace,
      workspace_bytes,
      alpha,
      beta);
}

} // extern "C"
