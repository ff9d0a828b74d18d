// SPDX-License-Identifier: BSD-3-Clause
// NVIDIA's compiler as a library (12 and 13). It needs no device. Its headers are not needed to
// build, nor is it to run: it is found when a source is compiled first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace puone::cuda {

enum class NvrtcResult : int {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidOption = 5,
  kCompilation = 6
};

using NvrtcProgram = struct _nvrtcProgram*;

/// The library's functions, by their names in it.
struct Nvrtc {
  NvrtcResult (*version)(int* major, int* minor); // nvrtcVersion
  const char* (*errorString)(NvrtcResult);        // nvrtcGetErrorString
  NvrtcResult (*create)(                          // nvrtcCreateProgram
      NvrtcProgram*,
      const char* source,
      const char* name,
      int header_count,
      const char* const* headers,
      const char* const* include_names);
  NvrtcResult (*destroy)(NvrtcProgram*); // ...DestroyProgram
  NvrtcResult (*compile)(
      NvrtcProgram, int option_count, const char* const* options); // ...CompileProgram
  NvrtcResult (*logSize)(NvrtcProgram, size_t*);                   // ...GetProgramLogSize
  NvrtcResult (*log)(NvrtcProgram, char*);                         // ...GetProgramLog
  NvrtcResult (*cubinSize)(NvrtcProgram, size_t*);                 // ...GetCUBINSize
  NvrtcResult (*cubin)(NvrtcProgram, char*);                       // ...GetCUBIN

  /// The library that PUONE_CUDA_NVRTC names, or else that is in the process already, on the
  /// loader's path or installed beside torch. Throws Error(UNSUPPORTED) if there is none.
  static const Nvrtc& ofMachine();

  std::string identity() const;
  /// Code for devices. Throws Error(INVALID_ARGUMENT) with all that the compiler says if the source
  /// does not compile.
  std::string compiled(const std::string& source, const std::vector<std::string>& options) const;
};

} // namespace puone::cuda
