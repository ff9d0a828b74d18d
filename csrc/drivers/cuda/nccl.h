// SPDX-License-Identifier: BSD-3-Clause
// What the driver calls of NCCL, 2.14 and newer. Its headers are not needed to build, nor is it to
// run: it is found when the extension "collective" is asked for. Names and values are those of
// nccl.h of NCCL 2.29.7, which does not change them.
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <cstddef>
#include <string>

namespace puone::cuda {

enum class NcclStatus : int { // ncclResult_t
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7
};

enum class NcclType : int { // ncclDataType_t
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};

enum class NcclReduction : int { // ncclRedOp_t
  kSum = 0,
  kProduct = 1,
  kMax = 2,
  kMin = 3,
  kAverage = 4
};

struct NcclId { // ncclUniqueId
  char bytes[128];
};

/// The first members of ncclConfig_t, as of 2.14: a library takes any older layout.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef; // NCCL_API_MAGIC
  unsigned version = 21400;
  int blocking = 0;
  int unset = INT_MIN; // NCCL_CONFIG_UNDEF_INT
};

using NcclCommunicator = struct ncclComm*;

/// The library's functions, by their names in it.
struct Nccl {
  NcclStatus (*getVersion)(int*);                // ncclGetVersion
  NcclStatus (*getUniqueId)(NcclId*);            // ncclGetUniqueId
  const char* (*getErrorString)(NcclStatus);     // ncclGetErrorString
  const char* (*getLastError)(NcclCommunicator); // ncclGetLastError
  NcclStatus (*initRank)(                                             // ncclCommInitRankConfig
      NcclCommunicator*, int ranks, NcclId, int rank, NcclConfig*);
  NcclStatus (*finalize)(NcclCommunicator);                   // ncclCommFinalize
  NcclStatus (*destroy)(NcclCommunicator);                    // ncclCommDestroy
  NcclStatus (*abort)(NcclCommunicator);                      // ncclCommAbort
  NcclStatus (*getAsyncError)(NcclCommunicator, NcclStatus*); // ncclCommGetAsyncError
  NcclStatus (*groupStart)();                                 // ncclGroupStart
  NcclStatus (*groupEnd)();                                   // ncclGroupEnd
  NcclStatus (*allReduce)(                                            // ncclAllReduce
      const void*, void*, size_t, NcclType, NcclReduction, NcclCommunicator, cudaStream_t);
  NcclStatus (*broadcast)(                                            // ncclBroadcast
      const void*, void*, size_t, NcclType, int root, NcclCommunicator, cudaStream_t);
  NcclStatus (*reduce)(                                               // ncclReduce
      const void*, void*, size_t, NcclType, NcclReduction, int root, NcclCommunicator,
      cudaStream_t);
  NcclStatus (*allGather)(                                            // ncclAllGather
      const void*, void*, size_t, NcclType, NcclCommunicator, cudaStream_t);
  NcclStatus (*reduceScatter)(                                        // ncclReduceScatter
      const void*, void*, size_t, NcclType, NcclReduction, NcclCommunicator, cudaStream_t);
  NcclStatus (*send)(                                                 // ncclSend
      const void*, size_t, NcclType, int peer, NcclCommunicator, cudaStream_t);
  NcclStatus (*recv)(                                                 // ncclRecv
      void*, size_t, NcclType, int peer, NcclCommunicator, cudaStream_t);
};

/// The library, or why there is none.
struct LoadedNccl {
  const Nccl* functions = nullptr;
  std::string missing;
};

/// The library that `choice` names: a path, "none", or null for the one that is in the process
/// already, on the loader's path or installed beside torch.
LoadedNccl loadNccl(const char* choice);

/// The one that PUONE_CUDA_NCCL chooses, looked for once.
const LoadedNccl& nccl();

} // namespace puone::cuda
