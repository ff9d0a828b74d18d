// SPDX-License-Identifier: BSD-3-Clause
// The calls of one process group: queued by the caller, exchanged by threads, and nothing in them
// waits. A part of a call that is staged is copied to the host, exchanged there by another backend
// that handles host memory (Gloo), and copied back:
//
//   caller's stream   ..work.. (event)
//   stream out            wait for it, [copy to host], (ready)
//   a thread                                     wait for it, [exchange], give the ticket
//   stream in             wait for the event, ....................... [take it] [copy] (end)
//
// A native part is one call of the driver's library on a stream of its own, which a thread watches:
//
//   caller's stream   ..work.. (event)
//   native stream         wait for it, (ready) [the library's work] (done)
//   a thread                             wait for it, look whether it is done or has failed
//   stream in             wait for (done), (end)
//
// Calls of one kind are in order: collectives, messages to one rank, messages from one rank. Each
// kind has a thread and two streams per device. The stream `out` never waits for other ranks; that
// a thread waits for it cannot close a circle, for it waits only for calls that were made earlier.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/native.h"
#include "distributed/operation.h"
#include "distributed/serial_thread.h"
#include "runtime/event.h"

namespace puone::distributed {

struct Copy {
  at::Tensor device;
  at::Tensor host; // see staging.h
};

// A piece of a call; several are exchanged one after the other while their neighbours are copied.
struct Part {
  std::vector<Copy> to_host = {};
  // Starts the exchange; NULL if there is nothing to exchange. Returns NULL if the exchange is
  // done.
  std::function<c10::intrusive_ptr<c10d::Work>(c10d::Backend& host)> exchange = nullptr;
  // What is left to do on the host once it is complete; may be NULL.
  std::function<void(c10d::Work& exchanged)> finish = nullptr;
  std::vector<Copy> to_device = {};

  // Of a native part, instead of all above: queues it on the stream, which is current.
  std::function<void(const Stream& stream)> queue = nullptr;
  std::chrono::milliseconds timeout = kNoTimeout; // from when the device has reached it
  // Device memory that is exchanged as it is, by `exchange` or `queue`.
  std::vector<at::Tensor> uses = {};
  // Queues what is left to do after `exchange`, on the current stream; may be NULL.
  std::function<void()> last = nullptr;
};

enum class Kind {
  kCollective,
  kSend,
  kReceive,
  kNative, // parts of collectives
  kNativeSend,
  kNativeReceive
};
constexpr int kAnyRank = -1;

struct Call {
  c10d::OpType type;
  std::string text; // "all_reduce of 4 x Float"
  c10::Device device;
  Kind kind = Kind::kCollective;
  int peer = kAnyRank;
  std::vector<Part> parts = {};
  std::vector<at::Tensor> outputs = {};
  bool blocks = false; // wait() keeps the caller
  std::shared_ptr<const int> source_rank = nullptr;
};

// Thread-safe. Held by the process group and by the tasks of its threads.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `native`: NULL if no part is native.
  Session(c10::intrusive_ptr<c10d::Backend> host, int rank, std::shared_ptr<Native> native);
  ~Session();

  // Sessions that abortSessions() finds.
  static std::shared_ptr<Session> create(
      c10::intrusive_ptr<c10d::Backend> host, int rank, std::shared_ptr<Native> native);

  // Queues a call. Throws c10::DistBackendError once the group has failed or was shut down.
  c10::intrusive_ptr<c10d::Work> run(Call call);

  c10d::Backend& host() const {
    return *host_;
  }
  uint64_t callCount() const noexcept {
    return count_;
  }
  bool hasFailed() const;

  // Lets streams and callers go on, with an error. The first reason counts. Before that, the calls
  // of other groups fail that were queued later and that the device has not reached: what they
  // would send may depend on results that do not come.
  void fail(const std::string& reason);
  // Waits for what was called, unless the group has failed; then refuses further calls.
  void shutDown();
  // The calls that have not ended, oldest first, a line for each.
  std::vector<std::string> pending() const;

 private:
  friend bool abortSessions(std::chrono::milliseconds grace);

  struct Channel {
    std::map<c10::DeviceIndex, std::pair<Stream, Stream>> streams; // out, in
    SerialThread thread;
  };

  Channel& channel(Kind kind, int peer);
  std::pair<Stream, Stream> streams(Channel& channel, c10::DeviceIndex device);
  std::vector<SerialThread*> threads();
  void requireUsable() const;
  void failBehind(std::chrono::steady_clock::time_point since, const std::string& reason);
  void add(const std::shared_ptr<Operation>& operation);
  void queue(const Call& call, const std::shared_ptr<Operation>& operation, Channel& channel);
  void queueNative(
      const std::shared_ptr<Operation>& operation,
      size_t index,
      const Part& part,
      const Event& before,
      const Stream& in);
  struct Watched;
  void watch(Operation& operation, size_t index, const Watched& watched);
  void push(
      Channel& channel,
      Kind kind,
      const std::shared_ptr<Operation>& operation,
      size_t index,
      const Part& part,
      Event ready);
  template <class Task>
  void attempt(Operation& operation, const Task& task);
  void exchange(Operation& operation, size_t index, const Part& part, const Event& ready);
  void send(
      const std::shared_ptr<Operation>& operation,
      size_t index,
      const Part& part,
      const Event& ready);

  const c10::intrusive_ptr<c10d::Backend> host_;
  const int rank_;
  const std::shared_ptr<Native> native_;
  std::atomic<uint64_t> count_ = 0;

  std::mutex calls_; // calls are queued one at a time; guards the channels
  std::map<std::pair<Kind, int>, Channel> channels_;
  SerialThread sent_; // waits for messages to arrive, so that the next one to their rank need not

  mutable std::mutex mutex_;                           // guards the members below
  std::vector<std::shared_ptr<Operation>> operations_; // those that have not ended, and some more
  std::shared_ptr<const Failure> failure_;
  bool shut_down_ = false;
};

// Before the process exits: waits `grace` for what was called, then lets streams go on. Returns
// whether no transport uses host memory of the driver any more, which it does as long as it waits
// for a rank that does not come.
bool abortSessions(std::chrono::milliseconds grace);

} // namespace puone::distributed
