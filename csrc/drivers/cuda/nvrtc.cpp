// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/nvrtc.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "drivers/common/error.h"
#include "drivers/cuda/library.h"

namespace puone::cuda {
namespace {

constexpr const char* kVariable = "PUONE_CUDA_NVRTC";
constexpr std::array kNames{"libnvrtc.so.13", "libnvrtc.so.12"};
/// Where the wheels put them, beside torch.
constexpr std::array kWheelPaths{
    "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"};

void* open(const char* choice) {
  if (choice == nullptr) return openUsual(kNames, kWheelPaths);
  return std::strcmp(choice, "none") == 0 ? nullptr : dlopen(choice, RTLD_NOW | RTLD_LOCAL);
}

/// The library needs another one of its version, which it looks for on the loader's path only: the
/// one beside it, if there is one.
void loadBuiltins(const Nvrtc& functions) {
  int major = 0;
  int minor = 0;
  Dl_info where;
  const auto* const inside = reinterpret_cast<const void*>(functions.version);
  if (functions.version(&major, &minor) != NvrtcResult::kSuccess) return;
  if (dladdr(inside, &where) == 0) return;
  const std::string path = where.dli_fname;
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  const std::string name = format("libnvrtc-builtins.so.%d.%d", major, minor);
  dlopen((directory + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// NULL if there is none, or a function is missing.
const Nvrtc* load() {
  void* library = open(std::getenv(kVariable));
  if (library == nullptr) return nullptr;
  auto* const functions = new Nvrtc{}; // for good, as the library
  SymbolFinder find(library);
  find(functions->version, "nvrtcVersion");
  find(functions->errorString, "nvrtcGetErrorString");
  find(functions->create, "nvrtcCreateProgram");
  find(functions->destroy, "nvrtcDestroyProgram");
  find(functions->compile, "nvrtcCompileProgram");
  find(functions->logSize, "nvrtcGetProgramLogSize");
  find(functions->log, "nvrtcGetProgramLog");
  find(functions->cubinSize, "nvrtcGetCUBINSize");
  find(functions->cubin, "nvrtcGetCUBIN");
  if (find.missing() == nullptr) {
    loadBuiltins(*functions);
    return functions;
  }
  delete functions;
  dlclose(library);
  return nullptr;
}

/// One source.
class Program {
 public:
  Program(const Nvrtc& nvrtc, const std::string& source) : nvrtc_(nvrtc) {
    check(
        "nvrtcCreateProgram",
        nvrtc_.create(&handle_, source.c_str(), "module", 0, nullptr, nullptr));
  }
  ~Program() {
    nvrtc_.destroy(&handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    const NvrtcResult result =
        nvrtc_.compile(handle_, static_cast<int>(words.size()), words.data());
    if (result == NvrtcResult::kCompilation || result == NvrtcResult::kInvalidOption) {
      throw Error{PUONE_INVALID_ARGUMENT, log()};
    }
    check("nvrtcCompileProgram", result);
  }

  std::string code() const {
    return text("nvrtcGetCUBIN", nvrtc_.cubinSize, nvrtc_.cubin);
  }

 private:
  std::string log() const {
    std::string all = text("nvrtcGetProgramLog", nvrtc_.logSize, nvrtc_.log);
    if (!all.empty() && all.back() == '\0') all.pop_back();
    return all;
  }

  template <class Size, class Get>
  std::string text(const char* call, const Size& size, const Get& get) const {
    size_t bytes = 0;
    check(call, size(handle_, &bytes));
    std::string result(bytes, '\0');
    check(call, get(handle_, result.data()));
    return result;
  }

  void check(const char* call, NvrtcResult result) const {
    if (result == NvrtcResult::kSuccess) return;
    fail(
        result == NvrtcResult::kOutOfMemory ? PUONE_OUT_OF_MEMORY : PUONE_INTERNAL,
        "%s: %s (%d)",
        call,
        nvrtc_.errorString(result),
        static_cast<int>(result));
  }

  const Nvrtc& nvrtc_;
  NvrtcProgram handle_ = nullptr;
};

} // namespace

const Nvrtc& Nvrtc::ofMachine() {
  static std::mutex mutex;
  static const Nvrtc* found = nullptr;
  const std::lock_guard guard(mutex);
  if (found == nullptr) found = load(); // again after a failure: it may have been installed
  if (found == nullptr) {
    const char* const chosen = std::getenv(kVariable);
    fail(
        PUONE_UNSUPPORTED,
        "there is no NVRTC to compile with: %s=%s, and libnvrtc.so is neither in the process, nor "
        "on "
        "the loader's path, nor beside torch",
        kVariable,
        chosen != nullptr ? chosen : "");
  }
  return *found;
}

std::string Nvrtc::identity() const {
  int major = 0;
  int minor = 0;
  version(&major, &minor);
  return format("nvrtc %d.%d", major, minor);
}

std::string Nvrtc::compiled(
    const std::string& source, const std::vector<std::string>& options) const {
  Program program(*this, source);
  program.compile(options);
  return program.code();
}

} // namespace puone::cuda
