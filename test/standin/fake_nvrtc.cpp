// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for NVRTC: the functions of drivers/cuda/nvrtc.h, by the machine's C++ compiler. What
// it makes is code for the stand-in (modules.cpp).
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <system_error>

#include "drivers/cuda/nvrtc.h"
#include "drivers/sim/program.h"

using puone::cuda::NvrtcProgram;
using puone::cuda::NvrtcResult;

struct puone::cuda::_nvrtcProgram {
  std::string source;
  std::string log;
  std::string code;
};

namespace {

std::string compilerOf() {
  const char* const chosen = std::getenv("CXX");
  return chosen != nullptr && *chosen != '\0' ? chosen : "c++";
}

NvrtcResult give(const std::string& text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return NvrtcResult::kSuccess;
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED NvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 0;
  return NvrtcResult::kSuccess;
}

EXPORTED const char* nvrtcGetErrorString(NvrtcResult) {
  return "an error of the stand-in";
}

EXPORTED NvrtcResult nvrtcCreateProgram(
    NvrtcProgram* program,
    const char* source,
    const char*,
    int,
    const char* const*,
    const char* const*) {
  *program = new puone::cuda::_nvrtcProgram{source, "", ""};
  return NvrtcResult::kSuccess;
}

EXPORTED NvrtcResult nvrtcDestroyProgram(NvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NvrtcResult::kSuccess;
}

EXPORTED NvrtcResult
nvrtcCompileProgram(NvrtcProgram program, int count, const char* const* options) {
  std::string directory = (std::filesystem::temp_directory_path() / "standin-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return NvrtcResult::kOutOfMemory;
  const std::string object = directory + "/module.so";
  bool contracts = true;
  for (int i = 0; i < count; ++i) contracts &= std::strcmp(options[i], "--fmad=false") != 0;
  const auto ended = puone::sim::run(
      {compilerOf(),
       "-std=c++20",
       "-O1",
       "-w",
       "-fPIC",
       "-shared",
       "-fvisibility=hidden",
       contracts ? "-ffp-contract=fast" : "-ffp-contract=off",
       "-DPUONE_SIMT",
       "-DPUONE_ISA=simt",
       "-x",
       "c++",
       "-",
       "-o",
       object},
      program->source);
  program->log = ended.output;
  if (ended.succeeded()) {
    std::ifstream file(object, std::ios::binary);
    program->code.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return ended.succeeded() ? NvrtcResult::kSuccess : NvrtcResult::kCompilation;
}

EXPORTED NvrtcResult nvrtcGetProgramLogSize(NvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NvrtcResult::kSuccess;
}

EXPORTED NvrtcResult nvrtcGetProgramLog(NvrtcProgram program, char* out) {
  return give(program->log + '\0', out);
}

EXPORTED NvrtcResult nvrtcGetCUBINSize(NvrtcProgram program, size_t* size) {
  *size = program->code.size();
  return NvrtcResult::kSuccess;
}

EXPORTED NvrtcResult nvrtcGetCUBIN(NvrtcProgram program, char* out) {
  return give(program->code, out);
}
