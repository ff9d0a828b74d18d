// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/native.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/args.h"
#include "runtime/dedicated_stream.h"
#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/extension.h"

namespace puone::distributed {
namespace {

using at::Tensor;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Tensors = std::vector<Tensor>;

constexpr int kEnvelopeTag = 0; // other tags are those of messages that go through the host

// What goes ahead of a message on the host.
struct Envelope {
  int64_t bytes = 0;
  int64_t opens = 0; // whether the id is that of a new communicator
  puone_collective_id id{};
};

template <class T>
Tensor hostCopy(const T& value) {
  Tensor bytes = at::empty({static_cast<int64_t>(sizeof value)}, at::kByte);
  std::memcpy(bytes.data_ptr(), &value, sizeof value);
  return bytes;
}

template <class T>
T valueOf(const Tensor& bytes) {
  T value;
  std::memcpy(&value, bytes.const_data_ptr(), sizeof value);
  return value;
}

// The longest that an entry takes.
uint32_t inEntry(milliseconds timeout) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(timeout.count(), 1, std::numeric_limits<int32_t>::max()));
}

// Why this rank cannot use the library; "" if it can.
std::string obstacle(Transport asked) {
  if (asked == Transport::kStaged) return "the staged transport was asked for";
  const puone_hal_api* table = halOrNull();
  if (table == nullptr) return "there is no device";
  const void* found = nullptr;
  const puone_status status =
      table->get_extension(PUONE_COLLECTIVE_EXTENSION, PUONE_COLLECTIVE_VERSION, &found);
  return status == PUONE_OK ? "" : table->last_error_message();
}

// What a rank tells the others when a group is made.
struct Offer {
  int32_t can = 0;
  int32_t devices = 0; // their identities follow
  puone_device_identity identities[64] = {};
};

Offer makeOffer(bool can) {
  Offer offer;
  offer.can = can ? 1 : 0;
  if (!can) return offer;
  offer.devices = std::min<int>(driverState().device_count, std::size(offer.identities));
  for (int32_t device = 0; device < offer.devices; ++device) {
    requireDone(Native::api().identify(device, &offer.identities[device]), "collective.identify");
  }
  return offer;
}

std::vector<Offer> exchangeOffers(c10d::Backend& host, const Offer& mine, int size) {
  Tensor input = hostCopy(mine);
  Tensor all = at::empty({input.numel() * size}, at::kByte);
  host._allgather_base(all, input, c10d::AllgatherOptions())->wait();
  std::vector<Offer> offers;
  for (int rank = 0; rank < size; ++rank) {
    offers.push_back(valueOf<Offer>(all.narrow(0, rank * input.numel(), input.numel())));
  }
  return offers;
}

// Why the ranks cannot use the library together; "" if they can.
std::string obstacle(const std::vector<Offer>& offers) {
  std::set<std::string> devices;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& offer = offers[rank];
    if (offer.can == 0) return c10::str("rank ", rank, " cannot");
    for (int32_t i = 0; i < offer.devices; ++i) {
      const auto& bytes = offer.identities[i].bytes;
      devices.emplace(reinterpret_cast<const char*>(bytes), sizeof bytes);
    }
  }
  if (devices.size() >= offers.size()) return "";
  return c10::str(offers.size(), " ranks share ", devices.size(), " devices");
}

// Between two looks at what does not end at once: short ones first.
class Pause {
 public:
  void operator()() {
    std::this_thread::sleep_for(length_);
    length_ = std::min(2 * length_, kLongest);
  }

 private:
  static constexpr std::chrono::microseconds kLongest{2000};
  std::chrono::microseconds length_{20};
};

} // namespace

Transport transportOf(const std::string& name) {
  if (name.empty()) return Transport::kAny;
  if (name == "staged") return Transport::kStaged;
  TORCH_CHECK_VALUE(
      name == "native", "pccl: the transport is \"native\" or \"staged\", not \"", name, "\"");
  return Transport::kNative;
}

void requireDone(puone_status status, const char* entry) {
  if (status == PUONE_OK) return;
  const puone_hal_api* table = halOrNull();
  const char* reason = table != nullptr ? table->last_error_message() : "the driver is gone";
  TORCH_CHECK_WITH(DistBackendError, false, *reason != '\0' ? reason : entry);
}

// ---- one communicator ----

Communicator::Communicator(
    c10::DeviceIndex device,
    const puone_collective_id& id,
    int rank,
    int size,
    milliseconds timeout)
    : device_(device) {
  requireDone(
      Native::api().init(device, &id, rank, size, inEntry(timeout), &handle_), "collective.init");
}

Communicator::~Communicator() {
  if (halOrNull() != nullptr) Native::api().destroy(handle_);
}

void Communicator::requireHealthy() const {
  requireDone(Native::api().query(handle_), "collective.query");
}

void Communicator::abort() const noexcept {
  if (halOrNull() != nullptr) Native::api().abort(handle_);
}

// ---- the group ----

Native::Link::Link(std::unique_ptr<Communicator> c)
    : communicator(std::move(c)), stream(takeDedicatedStream(communicator->device())) {}

Native::Link::~Link() {
  giveBackDedicatedStream(stream);
}

const puone_collective_api& Native::api() {
  return requireExtension<puone_collective_api>(
      PUONE_COLLECTIVE_EXTENSION, PUONE_COLLECTIVE_VERSION);
}

std::shared_ptr<Native> Native::agree(
    c10d::Backend& host, int rank, int size, Transport asked, std::string& reason) {
  if (asked == Transport::kAny) {
    const char* named = std::getenv("PUONE_PCCL");
    asked = transportOf(named != nullptr ? named : "");
  }
  reason = obstacle(asked);
  const auto offers = exchangeOffers(host, makeOffer(reason.empty()), size);
  if (reason.empty()) reason = obstacle(offers);
  if (!reason.empty()) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        asked != Transport::kNative, "pccl: the native transport was asked for: ", reason);
    return nullptr;
  }
  puone_collective_id id{};
  if (rank == 0) requireDone(api().create_id(&id), "collective.create_id");
  Tensors message{hostCopy(id)};
  host.broadcast(message, c10d::BroadcastOptions())->wait();
  return std::make_shared<Native>(valueOf<puone_collective_id>(message.front()), rank, size);
}

void Native::useDevice(c10::DeviceIndex device) {
  const std::lock_guard lock(mutex_);
  if (!device_) device_ = device;
  TORCH_CHECK_VALUE(
      *device_ == device,
      "pccl: with the native transport a group is on one device: on puone:",
      static_cast<int>(*device_),
      " since its first call, not on puone:",
      static_cast<int>(device));
}

const Communicator& Native::connect(c10::DeviceIndex device, milliseconds timeout) {
  const std::lock_guard connecting(connecting_);
  {
    const std::lock_guard lock(mutex_);
    if (group_) return *group_;
  }
  auto made = std::make_unique<Communicator>(device, id_, rank_, size_, timeout);
  const std::lock_guard lock(mutex_);
  group_ = std::move(made);
  if (aborted_) group_->abort();
  return *group_;
}

Native::Link& Native::link(
    int peer,
    bool sends,
    c10::DeviceIndex device,
    const puone_collective_id& id,
    milliseconds timeout) {
  // The sender is rank 0 of the two.
  auto communicator = std::make_unique<Communicator>(device, id, sends ? 0 : 1, 2, timeout);
  const std::lock_guard lock(mutex_);
  if (aborted_) communicator->abort();
  auto& made = links_[{peer, sends}];
  made = std::make_unique<Link>(std::move(communicator));
  return *made;
}

void Native::carry(
    Link& link,
    const char* entry,
    const std::function<puone_status()>& queue,
    milliseconds timeout) const {
  const std::lock_guard lock(link.mutex);
  requireDone(queue(), entry);
  link.done.record(link.stream);
  await([&] { return isDone(hal().event_query(link.done.handle()), "event_query"); }, timeout);
}

void Native::send(
    c10d::Backend& host,
    c10::DeviceIndex device,
    const void* from,
    int64_t bytes,
    int to,
    milliseconds timeout) {
  const DeviceScope on_device(device);
  Link* way = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto known = links_.find({to, true});
    if (known != links_.end()) way = known->second.get();
  }
  Envelope envelope{bytes, way == nullptr ? 1 : 0};
  if (way == nullptr) requireDone(api().create_id(&envelope.id), "collective.create_id");
  Tensors message{hostCopy(envelope)};
  host.send(message, to, kEnvelopeTag)->wait();
  if (way == nullptr) way = &link(to, true, device, envelope.id, timeout);
  if (bytes == 0) return;
  const auto queue = [&] {
    return api().send(
        way->communicator->handle(),
        from,
        static_cast<uint64_t>(bytes),
        PUONE_UINT8,
        1,
        way->stream.handle());
  };
  carry(*way, "collective.send", queue, timeout);
}

int Native::receive(
    c10d::Backend& host,
    c10::DeviceIndex device,
    void* to,
    int64_t bytes,
    int from,
    milliseconds timeout) {
  const DeviceScope on_device(device);
  Tensors message{hostCopy(Envelope{})};
  const auto arrived =
      from < 0 ? host.recvAnysource(message, kEnvelopeTag) : host.recv(message, from, kEnvelopeTag);
  arrived->wait();
  const int sender = from < 0 ? arrived->sourceRank() : from;
  const auto envelope = valueOf<Envelope>(message.front());
  TORCH_CHECK_WITH(
      DistBackendError,
      envelope.bytes == bytes,
      "a message of ",
      envelope.bytes,
      " bytes came from rank ",
      sender,
      ", and the tensor has ",
      bytes);
  Link* way = nullptr;
  if (envelope.opens != 0) {
    way = &link(sender, false, device, envelope.id, timeout);
  } else {
    const std::lock_guard lock(mutex_);
    way = links_.at({sender, false}).get();
  }
  if (bytes == 0) return sender;
  const auto queue = [&] {
    return api().recv(
        way->communicator->handle(),
        to,
        static_cast<uint64_t>(bytes),
        PUONE_UINT8,
        0,
        way->stream.handle());
  };
  carry(*way, "collective.recv", queue, timeout);
  return sender;
}

void Native::await(const std::function<bool()>& done, milliseconds timeout) const {
  const auto late = steady_clock::now() + timeout;
  for (Pause pause; !done(); pause()) {
    requireHealthy();
    TORCH_CHECK_WITH(
        DistBackendError,
        steady_clock::now() < late,
        "not done within ",
        timeout.count(),
        " ms: a rank did not come, or has died");
  }
}

void Native::requireHealthy() const {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, !aborted_, "the process group was aborted");
  if (group_) group_->requireHealthy();
  for (const auto& [key, link] : links_) link->communicator->requireHealthy();
}

void Native::abort() noexcept {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (group_) group_->abort();
  for (const auto& [key, link] : links_) link->communicator->abort();
}

void Native::close() {
  const std::lock_guard lock(mutex_);
  group_.reset();
  links_.clear();
}

} // namespace puone::distributed
