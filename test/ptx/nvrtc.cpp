// SPDX-License-Identifier: BSD-3-Clause
// NVRTC that gives PTX where device code is asked for: the functions of drivers/cuda/nvrtc.h, by
// the real library, whose path PUONE_PTX_NVRTC is.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "drivers/cuda/nvrtc.h"

using puone::cuda::NvrtcProgram;
using puone::cuda::NvrtcResult;

namespace {

/// The library, and the one that it needs, which it would look for on the loader's path only.
void* open() {
  const char* const path = std::getenv("PUONE_PTX_NVRTC");
  if (path == nullptr) return nullptr;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const std::string text = path;
  const size_t version = text.rfind("libnvrtc.so.");
  if (library == nullptr || version == std::string::npos) return library;
  const std::string builtins =
      text.substr(0, version) + "libnvrtc-builtins.so." + text.substr(version + 12) + ".0";
  dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library;
}

template <class... A>
NvrtcResult call(const char* name, A... arguments) {
  static void* const library = open();
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) return NvrtcResult::kOutOfMemory;
  return reinterpret_cast<NvrtcResult (*)(A...)>(found)(arguments...);
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// Unlike that of the real one: what is compiled is kept by versions.
EXPORTED NvrtcResult nvrtcVersion(int* major, int* minor) {
  const NvrtcResult result = call("nvrtcVersion", major, minor);
  *minor = *major;
  *major = 0;
  return result;
}

EXPORTED const char* nvrtcGetErrorString(NvrtcResult) {
  return "an error of NVRTC";
}

EXPORTED NvrtcResult nvrtcCreateProgram(
    NvrtcProgram* program,
    const char* source,
    const char* name,
    int count,
    const char* const* headers,
    const char* const* names) {
  return call("nvrtcCreateProgram", program, source, name, count, headers, names);
}

EXPORTED NvrtcResult nvrtcDestroyProgram(NvrtcProgram* program) {
  return call("nvrtcDestroyProgram", program);
}

EXPORTED NvrtcResult
nvrtcCompileProgram(NvrtcProgram program, int count, const char* const* options) {
  std::vector<std::string> words(options, options + count);
  for (std::string& word : words) {
    const size_t target = word.find("=sm_");
    if (target != std::string::npos) word.replace(target, 4, "=compute_");
  }
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return call(
      "nvrtcCompileProgram", program, count, static_cast<const char* const*>(pointers.data()));
}

EXPORTED NvrtcResult nvrtcGetProgramLogSize(NvrtcProgram program, size_t* size) {
  return call("nvrtcGetProgramLogSize", program, size);
}

EXPORTED NvrtcResult nvrtcGetProgramLog(NvrtcProgram program, char* out) {
  return call("nvrtcGetProgramLog", program, out);
}

EXPORTED NvrtcResult nvrtcGetCUBINSize(NvrtcProgram program, size_t* size) {
  return call("nvrtcGetPTXSize", program, size);
}

EXPORTED NvrtcResult nvrtcGetCUBIN(NvrtcProgram program, char* out) {
  return call("nvrtcGetPTX", program, out);
}
