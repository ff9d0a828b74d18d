// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "collective".
#include <cstdint>

#include "hal/collective.h"
#include "hal/validation/checks.h"
#include "hal/validation/collective_checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_collective_api* collectives = nullptr;

puone_status identifyDevice(int32_t device, puone_device_identity* out) {
  constexpr const char* entry = "collective.identify";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  return answered(collectives->identify(device, out));
}

puone_status createCollectiveId(puone_collective_id* out) {
  constexpr const char* entry = "collective.create_id";
  CHECKED(checkOut(entry, out));
  CHECKED(checkRunning(entry));
  return answered(collectives->create_id(out));
}

puone_status initCommunicator(
    int32_t device,
    const puone_collective_id* id,
    int32_t rank,
    int32_t size,
    uint32_t timeout_ms,
    puone_communicator* out) {
  constexpr const char* entry = "collective.init";
  CHECKED(checkOut(entry, out));
  CHECKED(checkDevice(entry, device));
  if (id == nullptr) return refuse(PUONE_INVALID_ARGUMENT, entry, "id is NULL");
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size) {
    return refuse(PUONE_INVALID_ARGUMENT, entry, "there is no rank %d of %d", rank, size);
  }
  puone_communicator made = nullptr;
  CHECKED(answered(collectives->init(device, id, rank, size, timeout_ms, &made)));
  CHECKED(keep(
      entry,
      live().communicators,
      made,
      communicatorBits(device, rank, size),
      collectives->destroy));
  *out = made;
  return PUONE_OK;
}

puone_status destroyCommunicator(puone_communicator communicator) {
  return destroy(
      "collective.destroy",
      "communicator",
      live().communicators,
      communicator,
      collectives->destroy);
}

/// An entry that takes a communicator and nothing else.
template <auto entry_of>
puone_status onCommunicator(const char* entry, puone_communicator communicator) {
  uint64_t bits = 0;
  CHECKED(checkCommunicator(entry, communicator, bits));
  return answered((collectives->*entry_of)(communicator));
}

puone_status abortCommunicator(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::abort>("collective.abort", communicator);
}
puone_status queryCommunicator(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::query>("collective.query", communicator);
}
puone_status groupBegin(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::group_begin>("collective.group_begin", communicator);
}
puone_status groupEnd(puone_communicator communicator) {
  return onCommunicator<&puone_collective_api::group_end>("collective.group_end", communicator);
}

puone_status allReduce(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    puone_stream stream) {
  CollectiveCall call{"collective.all_reduce"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkReduction(call.entry, reduction));
  CHECKED(checkBuffers(call, send, 1, recv, 1));
  return answered(
      collectives->all_reduce(communicator, send, recv, count, type, reduction, stream));
}

puone_status broadcast(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    int32_t root,
    puone_stream stream) {
  CollectiveCall call{"collective.broadcast"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkRank(call.entry, "root", root, call.bits));
  CHECKED(
      root == rankOf(call.bits) ? checkBuffers(call, send, 1, recv, 1)
                                : checkBuffer(call, "recv", recv));
  return answered(collectives->broadcast(communicator, send, recv, count, type, root, stream));
}

puone_status reduce(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    int32_t root,
    puone_stream stream) {
  CollectiveCall call{"collective.reduce"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkReduction(call.entry, reduction));
  CHECKED(checkRank(call.entry, "root", root, call.bits));
  CHECKED(
      root == rankOf(call.bits) ? checkBuffers(call, send, 1, recv, 1)
                                : checkBuffer(call, "send", send));
  return answered(
      collectives->reduce(communicator, send, recv, count, type, reduction, root, stream));
}

puone_status allGather(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_stream stream) {
  CollectiveCall call{"collective.all_gather"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkBuffers(call, send, 1, recv, static_cast<uint64_t>(sizeOf(call.bits))));
  return answered(collectives->all_gather(communicator, send, recv, count, type, stream));
}

puone_status reduceScatter(
    puone_communicator communicator,
    const void* send,
    void* recv,
    uint64_t count,
    int32_t type,
    puone_collective_reduction reduction,
    puone_stream stream) {
  CollectiveCall call{"collective.reduce_scatter"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkReduction(call.entry, reduction));
  CHECKED(checkBuffers(call, send, static_cast<uint64_t>(sizeOf(call.bits)), recv, 1));
  return answered(
      collectives->reduce_scatter(communicator, send, recv, count, type, reduction, stream));
}

puone_status sendTo(
    puone_communicator communicator,
    const void* buffer,
    uint64_t count,
    int32_t type,
    int32_t peer,
    puone_stream stream) {
  CollectiveCall call{"collective.send"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkRank(call.entry, "peer", peer, call.bits));
  CHECKED(checkBuffer(call, "buffer", buffer));
  return answered(collectives->send(communicator, buffer, count, type, peer, stream));
}

puone_status receiveFrom(
    puone_communicator communicator,
    void* buffer,
    uint64_t count,
    int32_t type,
    int32_t peer,
    puone_stream stream) {
  CollectiveCall call{"collective.recv"};
  CHECKED(checkCollective(call, communicator, count, type, stream));
  CHECKED(checkRank(call.entry, "peer", peer, call.bits));
  CHECKED(checkBuffer(call, "buffer", buffer));
  return answered(collectives->recv(communicator, buffer, count, type, peer, stream));
}

puone_collective_api wrapped(const puone_collective_api& api) {
  puone_collective_api result = api;
  result.identify = identifyDevice;
  result.create_id = createCollectiveId;
  result.init = initCommunicator;
  result.destroy = destroyCommunicator;
  result.abort = abortCommunicator;
  result.query = queryCommunicator;
  result.all_reduce = allReduce;
  result.broadcast = broadcast;
  result.reduce = reduce;
  result.all_gather = allGather;
  result.reduce_scatter = reduceScatter;
  result.send = sendTo;
  result.recv = receiveFrom;
  result.group_begin = groupBegin;
  result.group_end = groupEnd;
  return result;
}

} // namespace

const void* wrappedCollective(const void* found) {
  return wrappedOnce<wrapped>(found, collectives);
}

} // namespace puone::validation
