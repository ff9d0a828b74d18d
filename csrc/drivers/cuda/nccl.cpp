// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/nccl.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include "drivers/common/error.h"
#include "drivers/cuda/library.h"

namespace puone::cuda {
namespace {

constexpr std::array kNames{"libnccl.so.2"};
/// Where the wheels put it, beside torch.
constexpr std::array kWheelPaths{"nvidia/nccl/lib/libnccl.so.2"};

/// Communicators that do not block came with 2.14.
constexpr int kOldest = 21400;

void* open(const char* choice) {
  if (choice == nullptr) return openUsual(kNames, kWheelPaths);
  return dlopen(choice, RTLD_NOW | RTLD_LOCAL);
}

/// The first function that the library lacks; NULL if it has all.
const char* findAll(void* library, Nccl& functions) {
  SymbolFinder find(library);
  find(functions.getVersion, "ncclGetVersion");
  find(functions.getUniqueId, "ncclGetUniqueId");
  find(functions.getErrorString, "ncclGetErrorString");
  find(functions.getLastError, "ncclGetLastError");
  find(functions.initRank, "ncclCommInitRankConfig");
  find(functions.finalize, "ncclCommFinalize");
  find(functions.destroy, "ncclCommDestroy");
  find(functions.abort, "ncclCommAbort");
  find(functions.getAsyncError, "ncclCommGetAsyncError");
  find(functions.groupStart, "ncclGroupStart");
  find(functions.groupEnd, "ncclGroupEnd");
  find(functions.allReduce, "ncclAllReduce");
  find(functions.broadcast, "ncclBroadcast");
  find(functions.reduce, "ncclReduce");
  find(functions.allGather, "ncclAllGather");
  find(functions.reduceScatter, "ncclReduceScatter");
  find(functions.send, "ncclSend");
  find(functions.recv, "ncclRecv");
  return find.missing();
}

std::string versionText(int code) {
  return format("%d.%d.%d", code / 10000, code / 100 % 100, code % 100);
}

/// Why the library cannot be used; empty if it can.
std::string check(const Nccl& functions, const char* missing) {
  int version = 0;
  const bool known =
      functions.getVersion != nullptr && functions.getVersion(&version) == NcclStatus::kSuccess;
  if (known && version < kOldest) {
    return "NCCL " + versionText(version) + " is older than " + versionText(kOldest);
  }
  return missing != nullptr ? format("libnccl has no function %s", missing) : "";
}

} // namespace

LoadedNccl loadNccl(const char* choice) {
  if (choice != nullptr && std::strcmp(choice, "none") == 0) {
    return {nullptr, "PUONE_CUDA_NCCL is \"none\""};
  }
  void* library = open(choice);
  if (library == nullptr) {
    const char* reason = choice != nullptr ? dlerror() : nullptr;
    return {nullptr, reason != nullptr ? reason : "libnccl.so.2 was not found"};
  }
  auto* const functions = new Nccl{}; // for good, as the library
  const std::string wrong = check(*functions, findAll(library, *functions));
  if (wrong.empty()) return {functions, ""};
  delete functions;
  dlclose(library);
  return {nullptr, wrong};
}

const LoadedNccl& nccl() {
  static const auto* const found = new LoadedNccl(loadNccl(std::getenv("PUONE_CUDA_NCCL")));
  return *found;
}

} // namespace puone::cuda
