// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/module.h"

#include <cstdio>
#include <vector>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

/// The compute capability that the name of a target says; 0.0 if it is none.
struct Capability {
  int major = 0;
  int minor = 0;
};

Capability capabilityOf(std::string_view target) {
  const std::string text(target);
  int number = 0;
  int length = 0;
  const bool is_name = std::sscanf(text.c_str(), "sm_%d%n", &number, &length) == 1 &&
                       static_cast<size_t>(length) == text.size() && number >= 10;
  return is_name ? Capability{number / 10, number % 10} : Capability{};
}

struct Found {
  const void* kernel; // NULL: there is none of this name
  size_t args_size;
};

#if CUDART_VERSION >= 13000

void* loaded(std::string_view code) {
  const std::string aligned(code);
  cudaLibrary_t library = nullptr;
  const cudaError_t result =
      cudaLibraryLoadData(&library, aligned.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  check("cudaLibraryLoadData", result);
  return library;
}

void unload(void* library) {
  const cudaError_t result = cudaLibraryUnload(static_cast<cudaLibrary_t>(library));
  note("cudaLibraryUnload", result);
}

Found kernelOf(void* library, const std::string& symbol) {
  cudaKernel_t kernel = nullptr;
  const cudaError_t result =
      cudaLibraryGetKernel(&kernel, static_cast<cudaLibrary_t>(library), symbol.c_str());
  if (result == cudaErrorSymbolNotFound || result == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError(); // so that the next call does not report it
    return {nullptr, 0};
  }
  check("cudaLibraryGetKernel", result);
  size_t offset = 0;
  Found found{reinterpret_cast<const void*>(kernel), 0};
  check("cudaFuncGetParamInfo", cudaFuncGetParamInfo(found.kernel, 0, &offset, &found.args_size));
  return found;
}

#else // the extension is not offered

void* loaded(std::string_view) {
  fail(PUONE_UNSUPPORTED, "this driver was built with a CUDA older than 13");
}
void unload(void*) {}
Found kernelOf(void*, const std::string&) {
  return {nullptr, 0};
}

#endif

} // namespace

Module::Module(int32_t index, std::string_view code) : device(index), library_(loaded(code)) {}

Module::~Module() {
  unload(library_);
}

puone_kernel Module::find(const puone_module_kernel& declared, Names& names) {
  const Found found = kernelOf(library_, std::string("puone_module_") + declared.name);
  if (found.kernel == nullptr) {
    fail(PUONE_UNSUPPORTED, "the module has no kernel %.100s", declared.name);
  }
  checkArgsSize(declared, found.args_size);
  const char* const name = names.keep(declared.name);
  const std::lock_guard guard(mutex_);
  return kernels_.add(declared, name, nullptr, found.kernel);
}

bool Module::isInGraph() {
  const std::lock_guard guard(mutex_);
  return kernels_.areShared();
}

std::string targetName(int major, int minor) {
  return format("sm_%d%d", major, minor);
}

std::vector<std::string> compilerOptions(const std::string& target, bool contracts) {
  if (capabilityOf(target).major == 0) {
    fail(PUONE_INVALID_ARGUMENT, "%.100s is not a target of this driver", target.c_str());
  }
  return {
      "--gpu-architecture=" + target,
      "--std=c++20",
      "--device-as-default-execution-space",
      "--disable-warnings",
      contracts ? "--fmad=true" : "--fmad=false",
      "--define-macro=PUONE_SIMT",
      "--define-macro=PUONE_ISA=simt"};
}

bool runs(int major, int minor, std::string_view target) {
  const Capability wanted = capabilityOf(target);
  return wanted.major == major && wanted.minor <= minor; // as CUDA promises of its code
}

} // namespace puone::cuda
