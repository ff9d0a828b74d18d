// SPDX-License-Identifier: BSD-3-Clause
#include "hal/validation/collective_checks.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "hal/element_bytes.h"
#include "hal/validation/checks.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/memory_checks.h"
#include "hal/validation/memory_extents.h"
#include "hal/validation/refusals.h"

namespace puone::validation {

puone_status checkCommunicator(const char* entry, puone_communicator communicator, uint64_t& bits) {
  return checkHandle(entry, "communicator", live().communicators, communicator, bits);
}

puone_status checkRank(const char* entry, const char* what, int32_t rank, uint64_t bits) {
  if (rank >= 0 && rank < sizeOf(bits)) return PUONE_OK;
  return refuse(PUONE_INVALID_ARGUMENT, entry, "%s %d is not in [0, %d)", what, rank, sizeOf(bits));
}

puone_status checkReduction(const char* entry, puone_collective_reduction reduction) {
  if (reduction >= PUONE_COLLECTIVE_SUM && reduction <= PUONE_COLLECTIVE_AVERAGE) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      entry,
      "%d is not a puone_collective_reduction",
      static_cast<int>(reduction));
}

puone_status checkCollective(
    CollectiveCall& call,
    puone_communicator communicator,
    uint64_t count,
    int32_t type,
    puone_stream stream) {
  uint64_t stream_bits = 0;
  CHECKED(checkCommunicator(call.entry, communicator, call.bits));
  CHECKED(checkStream(call.entry, stream, stream_bits));
  if (deviceOf(stream_bits) != communicatorDevice(call.bits)) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        call.entry,
        "the communicator is of device %d, the stream of device %d",
        communicatorDevice(call.bits),
        deviceOf(stream_bits));
  }
  if (type < 0 || type >= static_cast<int32_t>(std::size(kElementBytes))) {
    return refuse(PUONE_INVALID_ARGUMENT, call.entry, "%d is not a puone_dtype", type);
  }
  const uint64_t most = SIZE_MAX / kElementBytes[type] / static_cast<uint64_t>(sizeOf(call.bits));
  if (count > most) {
    return refuse(
        PUONE_INVALID_ARGUMENT,
        call.entry,
        "%llu elements for each rank are more than memory can hold",
        static_cast<unsigned long long>(count));
  }
  call.bytes = count * kElementBytes[type];
  return PUONE_OK;
}

puone_status checkBuffer(
    const CollectiveCall& call, const char* what, const void* buffer, uint64_t pieces) {
  if (call.bytes == 0) return PUONE_OK;
  return checkDeviceRange(
      call.entry, what, buffer, call.bytes * pieces, communicatorDevice(call.bits));
}

puone_status checkBuffers(
    const CollectiveCall& call,
    const void* send,
    uint64_t send_pieces,
    const void* recv,
    uint64_t recv_pieces) {
  CHECKED(checkBuffer(call, "send", send, send_pieces));
  CHECKED(checkBuffer(call, "recv", recv, recv_pieces));
  const uint64_t own = call.bytes * static_cast<uint64_t>(rankOf(call.bits));
  const uintptr_t from = address(send);
  const uintptr_t to = address(recv);
  const bool in_place = from + (send_pieces > 1 ? own : 0) == to + (recv_pieces > 1 ? own : 0);
  const bool apart = from + call.bytes * send_pieces <= to || to + call.bytes * recv_pieces <= from;
  if (in_place || apart) return PUONE_OK;
  return refuse(
      PUONE_INVALID_ARGUMENT,
      call.entry,
      "send %p and recv %p overlap, and not as in place",
      send,
      recv);
}

} // namespace puone::validation
