// SPDX-License-Identifier: BSD-3-Clause
// The kernels' SIMT flavour on a host: every thread of a block is a fiber, and blocks run one after
// the other, or some at a time (PUONE_STANDIN_BLOCKS). Slow, exact, and enough to run the very code
// that a device would run.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define PUONE_FN inline
#define PUONE_DEVICE
#define PUONE_GLOBAL(threads, blocks)
#define PUONE_SHARED static thread_local
#define PUONE_NOINLINE __attribute__((noinline))
#define PUONE_UNROLL _Pragma("GCC unroll 16")
#define PUONE_ROLLED _Pragma("GCC unroll 1")

namespace puone::standin {

struct Index {
  uint32_t x = 0, y = 0, z = 0;
};

/// What device code reads of where it is.
struct Place {
  Index thread, block, block_size, grid_size;
};
extern thread_local Place place;

/// Runs body() as every thread of every block. `together`: threads may wait for each other.
void runGrid(uint32_t blocks, uint32_t threads, bool together, const std::function<void()>& body);

/// Queues runGrid on a stream of the stand-in.
void startGrid(
    void* stream, uint32_t blocks, uint32_t threads, bool together, std::function<void()> body);

/// Waits until all threads of the block that still run have come here.
void barrier();

/// Waits for the warp; then the 8 bytes that lane `lane` of it brought.
uint64_t exchange(uint64_t mine, uint32_t lane);

constexpr uint32_t kWarp = 32;

template <class T>
T shuffled(T value, uint32_t lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint32_t lane() {
  return place.thread.x % kWarp;
}

} // namespace puone::standin

#define threadIdx (::puone::standin::place.thread)
#define blockIdx (::puone::standin::place.block)
#define blockDim (::puone::standin::place.block_size)
#define gridDim (::puone::standin::place.grid_size)

// The names are the vendors': device code calls them unqualified.
inline void __syncthreads() {
  puone::standin::barrier();
}
inline void __syncwarp(uint32_t /*mask*/ = 0xffffffffu) {
  puone::standin::exchange(0, 0);
}
inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
template <class T>
T __shfl_sync(uint32_t /*mask*/, T value, int lane) {
  return puone::standin::shuffled(value, static_cast<uint32_t>(lane));
}
template <class T>
T __shfl_xor_sync(uint32_t /*mask*/, T value, int bits) {
  return puone::standin::shuffled(value, puone::standin::lane() ^ static_cast<uint32_t>(bits));
}
template <class T>
T __shfl_down_sync(uint32_t /*mask*/, T value, uint32_t by) {
  const uint32_t from = puone::standin::lane() + by;
  return puone::standin::shuffled(value, from < 32 ? from : puone::standin::lane());
}
template <class T>
T __shfl_up_sync(uint32_t /*mask*/, T value, uint32_t by) {
  const uint32_t lane = puone::standin::lane();
  return puone::standin::shuffled(value, lane >= by ? lane - by : lane);
}

// Streams run at the same time: atomic they must be.
template <class T>
T atomicCAS(T* at, T expected, T wanted) {
  __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class T>
T atomicExch(T* at, T value) {
  return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
namespace puone::standin {
template <class T, class Change>
T atomically(T* at, const Change& change) {
  T before;
  __atomic_load(at, &before, __ATOMIC_SEQ_CST);
  for (;;) {
    T after = change(before);
    if (__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      return before;
    }
  }
}
} // namespace puone::standin
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return puone::standin::atomically(at, [=](T before) { return static_cast<T>(before + value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return puone::standin::atomically(at, [=](T before) { return before < value ? value : before; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return puone::standin::atomically(at, [=](T before) { return value < before ? value : before; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return puone::standin::atomically(at, [=](T before) { return before | value; });
}

namespace puone::kernels::dialect {

enum class Threads {
  kIndependent,
  kCooperating
};

template <Threads kThreads, class... Parameters>
void start(
    void* stream,
    void (*kernel)(Parameters...),
    uint32_t blocks,
    uint32_t threads,
    Parameters... arguments) {
  puone::standin::startGrid(
      stream, blocks, threads, kThreads == Threads::kCooperating, [=] { kernel(arguments...); });
}

} // namespace puone::kernels::dialect
