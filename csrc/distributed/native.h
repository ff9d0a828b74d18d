// SPDX-License-Identifier: BSD-3-Clause
// The communicators of one process group in the driver's collective library (extension "collective"
// of the HAL): device memory goes from device to device.
//
// The host backend carries what the library cannot: the ids of communicators, and an envelope ahead
// of each message, so that a message has a sender and a size before the library waits for it.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hal/collective.h"
#include "runtime/event.h"

namespace puone::distributed {

// Which way tensors take. kAny: native if every rank can, else staged.
enum class Transport {
  kAny,
  kStaged,
  kNative
};
// "native" or "staged"; kAny for "". Throws ValueError for anything else.
Transport transportOf(const std::string& name);

// Owns a communicator of the driver. Thread-safe.
class Communicator {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Blocks until all ranks are there.
  Communicator(
      c10::DeviceIndex device,
      const puone_collective_id& id,
      int rank,
      int size,
      Milliseconds timeout);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  puone_communicator handle() const noexcept {
    return handle_;
  }
  c10::DeviceIndex device() const noexcept {
    return device_;
  }
  // Throws what the library knows of.
  void requireHealthy() const;
  // What is queued ends, without its result.
  void abort() const noexcept;

 private:
  const c10::DeviceIndex device_;
  puone_communicator handle_ = nullptr;
};

// Thread-safe. All functions that wait throw c10::DistBackendError.
class Native {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Whether all ranks of the host backend can and want to use the driver's library; each of them
  // calls it. NULL if not, with the reason. Throws if that is not what this rank asked for.
  static std::shared_ptr<Native> agree(
      c10d::Backend& host, int rank, int size, Transport asked, std::string& reason);

  Native(const puone_collective_id& id, int rank, int size) : id_(id), rank_(rank), size_(size) {}

  // The table of the extension.
  static const puone_collective_api& api();

  // The device of the first call is the group's. Throws ValueError for another one.
  void useDevice(c10::DeviceIndex device);
  // The communicator of all ranks. The first call blocks until each of them makes it.
  const Communicator& connect(c10::DeviceIndex device, Milliseconds timeout);

  // Block until the message is out of, or in, the memory.
  void send(
      c10d::Backend& host,
      c10::DeviceIndex device,
      const void* from,
      int64_t bytes,
      int to,
      Milliseconds timeout);
  // `from`: a rank, or kAnyRank of session.h. Returns the sender.
  int receive(
      c10d::Backend& host,
      c10::DeviceIndex device,
      void* to,
      int64_t bytes,
      int from,
      Milliseconds timeout);

  // Blocks until done() is true. Fails if that takes longer than the timeout, if the library
  // reports an error, and after abort().
  void await(const std::function<bool()>& done, Milliseconds timeout) const;

  // Ends all that is queued, and every wait.
  void abort() noexcept;
  // Gives the communicators back. Nothing is queued.
  void close();

 private:
  // The communicator of a pair of ranks, for messages of one direction: those of the other one, or
  // with other ranks, cannot be in their way.
  struct Link {
    explicit Link(std::unique_ptr<Communicator> c);
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    const std::unique_ptr<Communicator> communicator;
    const Stream stream;
    std::mutex mutex; // held while a message is on its way
    Event done;
  };

  Link& link(
      int peer,
      bool sends,
      c10::DeviceIndex device,
      const puone_collective_id& id,
      Milliseconds timeout);
  // Calls queue(), which returns the status of the entry, and waits until its work is done.
  void carry(
      Link& link,
      const char* entry,
      const std::function<puone_status()>& queue,
      Milliseconds timeout) const;
  void requireHealthy() const;

  const puone_collective_id id_;
  const int rank_;
  const int size_;
  std::mutex connecting_;    // one connection of the group is made at a time
  mutable std::mutex mutex_; // guards the members below
  std::optional<c10::DeviceIndex> device_;
  std::unique_ptr<Communicator> group_;
  std::map<std::pair<int, bool>, std::unique_ptr<Link>> links_; // peer, whether it is sent to
  bool aborted_ = false;
};

// Throws c10::DistBackendError unless it is PUONE_OK. `entry`: of the extension.
void requireDone(puone_status status, const char* entry);

} // namespace puone::distributed
