// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for CUDA's runtime library, for tests without a GPU: the functions that the cuda
// driver calls, over host memory and threads, behind CUDA's own header. It keeps what CUDA
// documents and nothing more. What CUDA leaves undefined ends the process with one line on stderr
// that starts with "standin:", or fails the work like an illegal address on a device.
//
// Besides what follows, the tests steer it by the environment; see options.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

/// What a kernel launch is to the stand-in: queues `work`, which may dereference device addresses,
/// on the stream, whose device must be current. A captured graph may run it any number of times.
cudaError_t standinEnqueue(cudaStream_t stream, std::function<void()> work);

/// What a library that stands in for another one of CUDA's is given: PUONE_STANDIN_LIBRARY is its
/// path, and it has the C function `void standinLibrary(const StandinServices*)`.
struct StandinServices {
  cudaError_t (*enqueue)(cudaStream_t, std::function<void()>); // standinEnqueue()
  cudaError_t (*getDevice)(int*);                              // cudaGetDevice()
  void (*written)(const void* begin, size_t bytes); // from work: it has written device memory
};

/// Blocks of memory that device code may touch now: live device memory, and pinned memory.
struct StandinRange {
  void* begin;
  size_t bytes;
};
std::vector<StandinRange> standinRanges();

/// Calls by which an executor of device code follows memory: its contents are undefined from now
/// on; they were written; they were copied. They come in the order of the work, on any thread.
struct StandinWatcher {
  void (*forgotten)(const void* begin, size_t bytes);
  void (*written)(const void* begin, size_t bytes);
  void (*copied)(const void* to, const void* from, size_t bytes);
};
/// From now on; NULL: nobody. The functions call none of CUDA's.
void standinWatch(const StandinWatcher* watcher);

/// The device is lost from now on, with this sticky error; what is queued on it is dropped.
void standinLoseDevice(int device, cudaError_t error);

/// What was made and not yet destroyed.
struct StandinLive {
  size_t streams, events, graphs, pools, device_blocks, pinned_blocks;
};
StandinLive standinLive();

/// Forgets everything, reads the environment again, and is as in a new process. Nothing may run.
void standinReset();
