// SPDX-License-Identifier: BSD-3-Clause
// CUDA's functions about kernels, over the executor: what nvcc registers, what drivers launch, and
// libraries of kernels as PTX. The rest of CUDA's runtime is test/standin.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coverage.h"
#include "executor.h"
#include "fatbin.h"
#include "runtime.h"
#include "standin.h"

using namespace puone::ptx;
using puone::standin::function;
using puone::standin::Needs;
using puone::standin::refuse;
using puone::standin::Runtime;

namespace {

void complain(const std::exception& error) {
  std::fprintf(stderr, "ptx: %s\n", error.what());
}

/// A fat binary, whose PTX is read when a kernel of it is launched first; or PTX by itself.
class Image {
 public:
  explicit Image(const void* fatbin) : fatbin_(fatbin) {}
  explicit Image(std::string text) : loaded_(std::make_unique<Loaded>(std::move(text))) {}

  Loaded& loaded() {
    const std::lock_guard guard(mutex_);
    if (loaded_ == nullptr) loaded_ = std::make_unique<Loaded>(ptxOf(fatbin_));
    return *loaded_;
  }

 private:
  std::mutex mutex_;
  const void* fatbin_ = nullptr;
  std::unique_ptr<Loaded> loaded_;
};

struct Kernel {
  std::shared_ptr<Image> image;
  std::string name;
};

/// All kernels, by what stands for them: the host's function, or a handle.
class Kernels {
 public:
  static Kernels& instance() {
    static auto* const one = new Kernels; // used by static objects at the start and at the end
    return *one;
  }
  void add(const void* handle, Kernel kernel) {
    const std::lock_guard guard(mutex_);
    all_[handle] = std::move(kernel);
  }
  void remove(const std::shared_ptr<Image>& image) {
    const std::lock_guard guard(mutex_);
    std::erase_if(all_, [&](const auto& each) { return each.second.image == image; });
  }
  Kernel find(const void* handle) {
    const std::lock_guard guard(mutex_);
    const auto found = all_.find(handle);
    if (found == all_.end()) refuse(cudaErrorInvalidDeviceFunction);
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, Kernel> all_;
};

/// The kernels of the program, as they are registered before main().
std::vector<std::string>& registered() {
  static auto* const names = new std::vector<std::string>;
  return *names;
}

const StandinWatcher kWatcher{
    [](const void* begin, size_t bytes) {
      Executor::instance().forget(reinterpret_cast<uint64_t>(begin), bytes);
    },
    [](const void* begin, size_t bytes) {
      Executor::instance().written(reinterpret_cast<uint64_t>(begin), bytes);
    },
    [](const void* to, const void* from, size_t bytes) {
      Executor::instance().copied(
          reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes);
    }};
const bool kWatched = (standinWatch(&kWatcher), true);

std::vector<GlobalMemory::Range> memory() {
  std::vector<GlobalMemory::Range> ranges;
  for (const StandinRange& range : standinRanges()) {
    const auto begin = reinterpret_cast<uint64_t>(range.begin);
    ranges.push_back({begin, begin + range.bytes, false});
  }
  return ranges;
}

/// The arguments of a launch, laid out as the kernel expects them.
std::vector<std::byte> packed(const Program& program, void** arguments) {
  std::vector<std::byte> all(program.parameter_bytes);
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const auto [offset, bytes] = program.parameters[i];
    std::memcpy(all.data() + offset, arguments[i], bytes);
  }
  return all;
}

bool isPossible(const Program& program, const dim3& grid, const dim3& block) {
  const Dim3 blocks{grid.x, grid.y, grid.z}, threads{block.x, block.y, block.z};
  return blocks.count() > 0 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 &&
         threads.count() > 0 && threads.count() <= 1024 && block.z <= 64 &&
         threads.count() <= program.max_threads;
}

} // namespace

// ---- kernels in the program ----

extern "C" {

/// What nvcc's code hands over: `data` is the fat binary.
struct Wrapper {
  int magic, version;
  const void* data;
  const void* unused;
};

void** __cudaRegisterFatBinary(void* wrapper) {
  const auto& given = *static_cast<const Wrapper*>(wrapper);
  return reinterpret_cast<void**>(new std::shared_ptr<Image>(std::make_shared<Image>(given.data)));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  auto* const image = reinterpret_cast<std::shared_ptr<Image>*>(handle);
  Kernels::instance().remove(*image);
  delete image;
}

void __cudaRegisterFunction(
    void** handle,
    const char* host,
    char*,
    const char* name,
    int,
    void*,
    void*,
    void*,
    void*,
    int*) {
  const auto& image = *reinterpret_cast<std::shared_ptr<Image>*>(handle);
  Kernels::instance().add(host, {image, name});
  registered().emplace_back(name);
}

void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

// What the bodies of kernels are on the host. The dialect starts kernels by cudaLaunchKernel().

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(
    cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t on) {
  return cudaLaunchKernel(
      reinterpret_cast<const void*>(kernel), grid, block, arguments, shared, on);
}

unsigned __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) {
  return cudaErrorInvalidConfiguration; // nothing is launched by <<< >>>
}

} // extern "C"

cudaError_t cudaLaunchKernel(
    const void* handle, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t on) {
  [[maybe_unused]] static const bool noted = (noteKernels(registered()), true);
  Kernel kernel;
  std::vector<std::byte> parameters;
  try {
    kernel = Kernels::instance().find(handle);
    const Program& program = Executor::instance().program(kernel.image->loaded(), kernel.name);
    if (shared != 0 || !isPossible(program, grid, block)) return cudaErrorInvalidConfiguration;
    parameters = packed(program, arguments);
  } catch (const puone::standin::Refusal& refusal) {
    return refusal.error;
  } catch (const std::exception& error) { // PTX that is not understood
    complain(error);
    return cudaErrorInvalidPtx;
  }
  return standinEnqueue(on, [=] {
    try {
      Executor::instance().run(
          kernel.image->loaded(),
          kernel.name,
          {grid.x, grid.y, grid.z},
          {block.x, block.y, block.z},
          parameters.data(),
          memory());
    } catch (const Report& report) {
      complain(report);
      refuse(
          report.kind == Kind::kMisaligned ? cudaErrorMisalignedAddress : cudaErrorIllegalAddress);
    }
  });
}

// ---- libraries ----

cudaError_t cudaLibraryLoadData(
    cudaLibrary_t* library,
    const void* code,
    cudaJitOption*,
    void**,
    unsigned int,
    cudaLibraryOption*,
    void**,
    unsigned int) {
  return function("cudaLibraryLoadData", Needs::kHealth, [&](Runtime&, Runtime::Lock&) {
    const std::string text(static_cast<const char*>(code));
    if (text.find(".version") == std::string::npos) return cudaErrorInvalidKernelImage;
    try {
      *library = reinterpret_cast<cudaLibrary_t>(
          new std::shared_ptr<Image>(std::make_shared<Image>(text)));
    } catch (const std::exception& error) {
      complain(error);
      return cudaErrorInvalidPtx;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return function("cudaLibraryUnload", Needs::kDriver, [&](Runtime&, Runtime::Lock&) {
    auto* const image = reinterpret_cast<std::shared_ptr<Image>*>(library);
    Kernels::instance().remove(*image);
    delete image;
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return function("cudaLibraryGetKernel", Needs::kHealth, [&](Runtime&, Runtime::Lock&) {
    const auto& image = *reinterpret_cast<std::shared_ptr<Image>*>(library);
    const Function* const entry = image->loaded().module.find(name);
    if (entry == nullptr || !entry->is_entry) return cudaErrorSymbolNotFound;
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<Function*>(entry));
    Kernels::instance().add(entry, {image, name});
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetParamInfo(const void* handle, size_t index, size_t* offset, size_t* bytes) {
  return function("cudaFuncGetParamInfo", Needs::kHealth, [&](Runtime&, Runtime::Lock&) {
    const Kernel kernel = Kernels::instance().find(handle);
    try {
      const Program& program = Executor::instance().program(kernel.image->loaded(), kernel.name);
      if (index >= program.parameters.size()) return cudaErrorInvalidValue;
      *offset = program.parameters[index].offset;
      *bytes = program.parameters[index].bytes;
    } catch (const Report& report) {
      complain(report);
      return cudaErrorInvalidPtx;
    }
    return cudaSuccess;
  });
}
