// SPDX-License-Identifier: BSD-3-Clause
// CUDA's functions about libraries of kernels: here, shared objects in memory, of which each kernel
// is a function that runs as fibers.
#include "modules.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime.h"
#include "simt_dialect.h"
#include "standin.h"

using namespace puone::standin;

namespace {

constexpr std::string_view kCudaPrefix = "puone_module_";

/// Bytes of the object, whose table of sections is at its end.
size_t sizeOf(const void* code) {
  const auto* const header = static_cast<const Elf64_Ehdr*>(code);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) refuse(cudaErrorInvalidKernelImage);
  return header->e_shoff + size_t{header->e_shentsize} * header->e_shnum;
}

void* loaded(const void* code) {
  static uint32_t count = 0; // dlopen() knows objects by their paths
  const int file = memfd_create("standin-module", MFD_CLOEXEC);
  const size_t bytes = sizeOf(code);
  const bool written = write(file, code, bytes) == static_cast<ssize_t>(bytes);
  std::string path = "/proc/self/fd";
  for (uint32_t number = ++count; number != 0; number /= 2) path += number % 2 != 0 ? "/./" : "//";
  path += "/" + std::to_string(file);
  void* const library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  close(file);
  return library;
}

} // namespace

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
    void* const object = loaded(code);
    auto* const hooks = object != nullptr
                            ? static_cast<ModuleHooks*>(dlsym(object, "puone_standin_hooks"))
                            : nullptr;
    if (hooks == nullptr) refuse(cudaErrorInvalidKernelImage);
    *hooks = {[]() -> const Place* { return &place; }, barrier, exchange};
    *library = reinterpret_cast<cudaLibrary_t>(object);
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return function("cudaLibraryUnload", Needs::kDriver, [&](Runtime&, Runtime::Lock&) {
    dlclose(library);
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return function("cudaLibraryGetKernel", Needs::kHealth, [&](Runtime&, Runtime::Lock&) {
    std::string_view plain = name;
    if (!plain.starts_with(kCudaPrefix)) return cudaErrorSymbolNotFound;
    plain.remove_prefix(kCudaPrefix.size());
    void* const call = dlsym(library, ("puone_standin_" + std::string(plain)).c_str());
    if (call == nullptr || plain == "hooks") return cudaErrorSymbolNotFound;
    *kernel = static_cast<cudaKernel_t>(call);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetParamInfo(const void* func, size_t index, size_t* offset, size_t* bytes) {
  return function("cudaFuncGetParamInfo", Needs::kHealth, [&](Runtime&, Runtime::Lock&) {
    if (index != 0) return cudaErrorInvalidValue;
    *offset = 0;
    *bytes = static_cast<const ModuleCall*>(func)->args_size;
    return cudaSuccess;
  });
}

/// Of a module's kernel only: those of the driver start as the dialect has it.
cudaError_t cudaLaunchKernel(
    const void* func, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t stream) {
  const auto& call = *static_cast<const ModuleCall*>(func);
  const auto* const first = static_cast<const unsigned char*>(arguments[0]);
  const std::vector<unsigned char> copy(first, first + call.args_size);
  return standinEnqueue(stream, [=, run = call.run] {
    runGrid(grid.x, block.x, /*together=*/true, [&] { run(copy.data()); });
  });
}
