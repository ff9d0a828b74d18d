// SPDX-License-Identifier: BSD-3-Clause
// The checks of a call on a communicator: who makes it, and which memory it reads and writes.
#pragma once

#include <cstdint>

#include "hal/collective.h"

namespace puone::validation {

constexpr int kRankBits = 24;
constexpr int32_t kMostRanks = 1 << kRankBits;

inline uint64_t communicatorBits(int32_t device, int32_t rank, int32_t size) {
  return static_cast<uint64_t>(size - 1) << (16 + kRankBits) | static_cast<uint64_t>(rank) << 16 |
         static_cast<uint16_t>(device);
}
inline int32_t communicatorDevice(uint64_t bits) {
  return static_cast<uint16_t>(bits);
}
inline int32_t rankOf(uint64_t bits) {
  return static_cast<int32_t>(bits >> 16 & (kMostRanks - 1));
}
inline int32_t sizeOf(uint64_t bits) {
  return static_cast<int32_t>(bits >> (16 + kRankBits)) + 1;
}

/// One call on a communicator: who makes it, and how large the pieces are that it moves.
struct CollectiveCall {
  const char* entry;
  uint64_t bits = 0;  // of the communicator
  uint64_t bytes = 0; // of `count` elements
};

puone_status checkCommunicator(const char* entry, puone_communicator communicator, uint64_t& bits);

/// `bits`: of the communicator.
puone_status checkRank(const char* entry, const char* what, int32_t rank, uint64_t bits);

puone_status checkReduction(const char* entry, puone_collective_reduction reduction);

/// The communicator, the stream, and how much `count` elements are; fills `call`.
puone_status checkCollective(
    CollectiveCall& call,
    puone_communicator communicator,
    uint64_t count,
    int32_t type,
    puone_stream stream);

/// A buffer of so many pieces.
puone_status checkBuffer(
    const CollectiveCall& call, const char* what, const void* buffer, uint64_t pieces = 1);

/// Both buffers, of so many pieces each. They may touch in one way only: that the piece of this
/// rank in the larger one is the smaller one.
puone_status checkBuffers(
    const CollectiveCall& call,
    const void* send,
    uint64_t send_pieces,
    const void* recv,
    uint64_t recv_pieces);

} // namespace puone::validation
