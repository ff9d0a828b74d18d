// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shared_storage.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/deferred_error.h"
#include "runtime/device.h"
#include "runtime/driver.h"
#include "runtime/extension.h"
#include "runtime/stream.h"

namespace puone {
namespace {

const puone_ipc_api& ipcApi() {
  return requireExtension<puone_ipc_api>(PUONE_IPC_EXTENSION, PUONE_IPC_VERSION);
}

// ---- the sender ----

// The storages that other processes use, or that are on their way to one.
class SentStorages {
 public:
  ReferenceSlots::Ticket add(c10::Storage storage);
  bool collect();

 private:
  struct Sent {
    uint64_t slot;
    c10::Storage storage;
  };

  std::atomic<size_t> count_{0}; // of sent_, read without the lock
  std::mutex mutex_;
  std::shared_ptr<ReferenceSlots> slots_;
  std::vector<Sent> sent_;
  std::vector<uint64_t> free_slots_; // below next_slot_
  uint64_t next_slot_ = 0;
  size_t collect_at_ = kFewest; // in proportion to what was left the last time
  static constexpr size_t kFewest = 64;
};

ReferenceSlots::Ticket SentStorages::add(c10::Storage storage) {
  bool many = false;
  {
    const std::lock_guard lock(mutex_);
    many = sent_.size() >= collect_at_;
  }
  if (many) collect();
  const std::lock_guard lock(mutex_);
  if (many) collect_at_ = std::max(kFewest, 2 * sent_.size());
  if (slots_ == nullptr) slots_ = ReferenceSlots::create();
  if (free_slots_.empty()) {
    TORCH_CHECK(
        next_slot_ < ReferenceSlots::kSlots,
        "puone: ",
        next_slot_,
        " tensors that were sent to other processes are still in use there");
    free_slots_.push_back(next_slot_++);
  }
  const uint64_t slot = free_slots_.back();
  sent_.push_back({slot, std::move(storage)});
  free_slots_.pop_back();
  count_.store(sent_.size());
  return slots_->send(slot);
}

bool SentStorages::collect() {
  if (count_.load() == 0) return false;
  LivingProcesses living;
  std::vector<Sent> released; // dies without the lock: Python objects may die with it
  const std::lock_guard lock(mutex_);
  const auto end = std::partition(sent_.begin(), sent_.end(), [&](const Sent& each) {
    return !slots_->isReleased(each.slot, living);
  });
  for (auto it = end; it != sent_.end(); ++it) {
    free_slots_.push_back(it->slot);
    released.push_back(std::move(*it));
  }
  sent_.erase(end, sent_.end());
  count_.store(sent_.size());
  return !released.empty();
}

SentStorages& sentStorages() {
  static auto* all = new SentStorages(); // leaked: the process may end while others use them
  return *all;
}

// ---- the receiver ----

// The segments of other processes that are mapped here, each once.
class Mappings {
 public:
  // Waits while the driver maps the segment.
  char* open(const StoragePlace& place);
  // Waits for work of the device if it is the last one.
  void close(const puone_ipc_memory_handle& segment) noexcept;

 private:
  struct Mapping {
    void* memory;
    size_t storages;
  };
  struct Less {
    bool operator()(const puone_ipc_memory_handle& a, const puone_ipc_memory_handle& b) const {
      return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) < 0;
    }
  };

  std::mutex mutex_; // also while the driver maps: a segment must not be mapped twice
  std::map<puone_ipc_memory_handle, Mapping, Less> mappings_;
};

char* Mappings::open(const StoragePlace& place) {
  const std::lock_guard lock(mutex_);
  auto found = mappings_.find(place.segment);
  if (found == mappings_.end()) {
    found = mappings_.emplace(place.segment, Mapping{nullptr, 0}).first;
    const auto device = static_cast<int32_t>(place.device);
    const puone_status status = ipcApi().open_memory(device, &place.segment, &found->second.memory);
    if (status != PUONE_OK) mappings_.erase(found);
    PUONE_CHECK_STATUS(status, "ipc.open_memory");
  }
  ++found->second.storages;
  return static_cast<char*>(found->second.memory) + place.offset;
}

void Mappings::close(const puone_ipc_memory_handle& segment) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = mappings_.find(segment);
  if (--found->second.storages > 0) return;
  try {
    if (halOrNull() != nullptr) ipcApi().close_memory(found->second.memory);
  } catch (const std::exception& error) {
    TORCH_WARN("puone: memory of another process stays mapped: ", error.what());
  }
  mappings_.erase(found);
}

Mappings& mappings() {
  static auto* all = new Mappings(); // leaked: storages may die during static destruction
  return *all;
}

// What a received storage has instead of memory of its own: the context of its DataPtr.
struct ReceivedStorage {
  StoragePlace place;
  uint64_t slot;
  std::shared_ptr<ReferenceSlots> slots;
};

// The error of the device's work is not lost: the next synchronisation raises it.
void waitForDevice(c10::DeviceIndex device) noexcept {
  try {
    synchronizeDevice(device);
  } catch (...) {
    deferError(device, std::current_exception());
  }
}

void deleteReceived(void* context) {
  const std::unique_ptr<ReceivedStorage> received(static_cast<ReceivedStorage*>(context));
  if (inBadFork()) return; // the parent has it
  if (!driverIsDown()) waitForDevice(static_cast<c10::DeviceIndex>(received->place.device));
  mappings().close(received->place.segment);
  received->slots->release(received->slot);
}

StoragePlace placeOf(const c10::Storage& storage) {
  const auto device = static_cast<uint64_t>(storage.device().index());
  if (const auto* received = static_cast<const ReceivedStorage*>(
          storage.data_ptr().cast_context<ReceivedStorage>(&deleteReceived))) {
    return received->place;
  }
  void* data = storage.mutable_data(); // a copy of its own if it was to be copied on write
  const puone_pointer_attributes block = pointerAttributes(data);
  StoragePlace place{{}, 0, storage.nbytes(), device};
  PUONE_CHECK_STATUS(ipcApi().export_memory(block.base, &place.segment), "ipc.export_memory");
  place.offset = static_cast<uint64_t>(static_cast<char*>(data) - static_cast<char*>(block.base));
  return place;
}

} // namespace

StorageMessage sendStorage(const c10::Storage& storage) {
  TORCH_CHECK(
      storage.device_type() == kDeviceType && storage.nbytes() > 0,
      "puone: not a storage with bytes on the device");
  const StoragePlace place = placeOf(storage);
  synchronizeDevice(storage.device().index());
  storage.unsafeGetStorageImpl()->set_resizable(false); // it would leave the shared memory
  return {place, sentStorages().add(storage)};
}

c10::Storage receiveStorage(const StorageMessage& message) {
  const auto slots = ReferenceSlots::open(message.ticket.file);
  slots->claim(message.ticket);
  auto received =
      std::make_unique<ReceivedStorage>(ReceivedStorage{message.place, message.ticket.slot, slots});
  char* data = nullptr;
  try {
    data = mappings().open(message.place);
  } catch (...) {
    slots->release(message.ticket.slot);
    throw;
  }
  const c10::Device device(kDeviceType, static_cast<c10::DeviceIndex>(message.place.device));
  c10::DataPtr memory(data, received.release(), &deleteReceived, device);
  return c10::Storage(
      c10::Storage::use_byte_size_t(),
      message.place.bytes,
      std::move(memory),
      /*allocator=*/nullptr,
      /*resizable=*/false);
}

void acknowledge(const StorageMessage& message) {
  const auto slots = ReferenceSlots::open(message.ticket.file);
  slots->claim(message.ticket);
  slots->release(message.ticket.slot);
}

bool collectSentStorages() {
  return sentStorages().collect();
}

} // namespace puone
