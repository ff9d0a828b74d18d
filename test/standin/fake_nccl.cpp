// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for NCCL: the functions of drivers/cuda/nccl.h between real processes, over sockets of
// the machine. It moves the bytes, and ends the process with a line that starts with "fake nccl:"
// where NCCL's behaviour is not defined: a dead communicator, a call while another one is in
// progress, ranks that call different things, buffers that overlap, a stream of another device.
//
// As NCCL's, a communicator that does not block says "in progress" for a while after each call; two
// ranks on one device are refused; after an error the work on the device goes on until the
// communicator is aborted.
//
// The environment: PUONE_FAKE_NCCL=option,... with
//   version=<code>     what ncclGetVersion says
//   fail=<name>:<nth>  the nth call of a function returns an internal error
//   silent             a rank that died is noticed by nobody
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "drivers/cuda/nccl.h"
#include "kernels/types.h"
#include "standin.h"

using namespace puone::cuda;
using namespace puone::kernels::PUONE_ISA;

namespace {

[[noreturn]] [[gnu::format(printf, 1, 2)]] void violation(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "fake nccl: %s\n", text);
  std::abort();
}

// ---- what the environment asks for ----

struct Options {
  int version = 22907;
  bool silent = false;
  std::string failing; // function
  int nth = 0;
};

Options readOptions() {
  Options options;
  const char* text = std::getenv("PUONE_FAKE_NCCL");
  std::istringstream items(text != nullptr ? text : "");
  for (std::string item; std::getline(items, item, ',');) {
    const size_t colon = item.find(':');
    if (item == "silent") {
      options.silent = true;
    } else if (item.starts_with("version=")) {
      options.version = std::atoi(item.c_str() + 8);
    } else if (item.starts_with("fail=") && colon != std::string::npos) {
      options.failing = item.substr(5, colon - 5);
      options.nth = std::atoi(item.c_str() + colon + 1);
    } else {
      violation("PUONE_FAKE_NCCL: \"%s\" is not an option", item.c_str());
    }
  }
  return options;
}

const Options& options() {
  static const Options chosen = readOptions();
  return chosen;
}

/// Whether this call of the function is to fail.
bool planted(const char* name) {
  static std::atomic<int> calls{0};
  return options().failing == name && ++calls == options().nth;
}

std::atomic<const StandinServices*> services{nullptr};

const StandinServices& standin() {
  const StandinServices* given = services;
  if (given == nullptr) violation("PUONE_STANDIN_LIBRARY does not name it");
  return *given;
}

// ---- what ranks tell each other ----

enum class Kind : int32_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kMessage
};

const char* nameOf(Kind kind) {
  constexpr const char* names[] = {
      "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "message"};
  return names[static_cast<int>(kind)];
}

/// Ahead of all data: what the sender believes that both are doing.
struct Header {
  Kind kind = Kind::kMessage;
  NcclType type = NcclType::kUint8;
  NcclReduction reduction = NcclReduction::kSum;
  int32_t root = -1;
  uint64_t count = 0;
  uint64_t bytes = 0; // that follow

  bool agrees(const Header& other) const {
    return kind == other.kind && type == other.type && reduction == other.reduction &&
           root == other.root && count == other.count;
  }
};

size_t sizeOf(NcclType type) {
  switch (type) {
    case NcclType::kInt8:
    case NcclType::kUint8:
      return 1;
    case NcclType::kFloat16:
    case NcclType::kBfloat16:
      return 2;
    case NcclType::kInt32:
    case NcclType::kUint32:
    case NcclType::kFloat32:
      return 4;
    case NcclType::kInt64:
    case NcclType::kUint64:
    case NcclType::kFloat64:
      return 8;
  }
  violation("%d is not a type", static_cast<int>(type));
}

struct Hello {
  int32_t rank;
  int32_t size;
  int32_t device;
};

/// What ends a piece of work before its time.
struct Interrupted {};

/// One call; several in a group.
struct Call {
  Header header;
  const void* send = nullptr;
  void* recv = nullptr;
  int peer = -1;         // of a message
  bool receives = false; // a message
};

} // namespace

namespace puone::cuda {

struct ncclComm {
  int rank = 0;
  int size = 0;
  int device = 0;
  std::string name;
  std::map<int, int> sockets; // by rank

  std::atomic<bool> aborted{false};
  std::mutex mutex; // guards the members below
  std::condition_variable changed;
  NcclStatus state = NcclStatus::kInProgress;
  std::string error;
  int polls = 0; // that still say "in progress"
  bool finalized = false;
  uint64_t issued = 0;
  uint64_t completed = 0;

  ~ncclComm() {
    for (const auto& [peer, socket] : sockets) close(socket);
  }

  void fail(NcclStatus status, const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (state != NcclStatus::kSuccess && state != NcclStatus::kInProgress) return;
    state = status;
    error = reason;
  }
};

} // namespace puone::cuda

namespace {

using Comm = std::shared_ptr<ncclComm>;

std::mutex living_mutex;
std::map<ncclComm*, Comm> living;

Comm find(NcclCommunicator handle) {
  const std::lock_guard lock(living_mutex);
  const auto found = living.find(handle);
  if (found == living.end()) violation("%p is not a live communicator", static_cast<void*>(handle));
  return found->second;
}

Comm take(NcclCommunicator handle) {
  const Comm comm = find(handle);
  const std::lock_guard lock(living_mutex);
  living.erase(handle);
  return comm;
}

// ---- connections ----

sockaddr_un addressOf(const std::string& name, int rank, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = name + "/" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, path.data(), path.size()); // abstract: gone with the process
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return address;
}

void requireGoingOn(const ncclComm& comm) {
  if (comm.aborted) throw Interrupted{};
}

/// Sleeps until the socket is ready for it, or a little.
void waitFor(const ncclComm& comm, int socket, short events) {
  requireGoingOn(comm);
  pollfd one{socket, events, 0};
  poll(&one, 1, 5);
}

void sendHello(const ncclComm& comm, int socket) {
  const Hello mine{comm.rank, comm.size, comm.device};
  if (write(socket, &mine, sizeof mine) != sizeof mine) throw Interrupted{};
}

Hello receiveHello(const ncclComm& comm, int socket) {
  Hello other{};
  for (;;) {
    waitFor(comm, socket, POLLIN);
    const ssize_t got = recv(socket, &other, sizeof other, MSG_DONTWAIT);
    if (got == sizeof other) return other;
    if (got >= 0 || errno != EAGAIN) throw Interrupted{};
  }
}

void greet(ncclComm& comm, int socket) {
  sendHello(comm, socket);
  const Hello other = receiveHello(comm, socket);
  fcntl(socket, F_SETFL, O_NONBLOCK);
  {
    const std::lock_guard lock(comm.mutex);
    comm.sockets[other.rank] = socket;
  }
  if (other.size != comm.size) {
    violation(
        "rank %d says %d ranks, rank %d says %d", comm.rank, comm.size, other.rank, other.size);
  }
  if (other.device == comm.device) {
    comm.fail(
        NcclStatus::kInvalidUsage,
        "Duplicate GPU detected : rank " + std::to_string(comm.rank) + " and rank " +
            std::to_string(other.rank) + " both on CUDA device " + std::to_string(comm.device));
  }
}

void connectAll(ncclComm& comm) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t length = 0;
  const sockaddr_un mine = addressOf(comm.name, comm.rank, length);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&mine), length) != 0) {
    violation("rank %d of a communicator is there twice", comm.rank);
  }
  listen(listener, comm.size);
  try {
    for (int peer = 0; peer < comm.rank; ++peer) {
      const sockaddr_un theirs = addressOf(comm.name, peer, length);
      const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      while (connect(made, reinterpret_cast<const sockaddr*>(&theirs), length) != 0) {
        requireGoingOn(comm);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      greet(comm, made);
    }
    for (int peer = comm.rank + 1; peer < comm.size; ++peer) {
      int made = -1;
      while (made < 0) {
        waitFor(comm, listener, POLLIN);
        made = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (made < 0) continue;
        fcntl(listener, F_SETFL, O_NONBLOCK);
      }
      greet(comm, made);
    }
  } catch (const Interrupted&) {
    comm.fail(NcclStatus::kRemoteError, "a rank has gone while ranks connected");
  }
  close(listener);
}

// ---- exchange ----

struct Outgoing {
  std::vector<char> bytes;
  size_t done = 0;
  void add(const Header& header, const void* payload) {
    const auto* start = reinterpret_cast<const char*>(&header);
    bytes.insert(bytes.end(), start, start + sizeof header);
    const auto* data = static_cast<const char*>(payload);
    if (header.bytes > 0) bytes.insert(bytes.end(), data, data + header.bytes);
  }
};

struct Expected {
  Header header;
  char* to;
};

struct Incoming {
  std::vector<Expected> expected;
  size_t next = 0;
  Header header;
  size_t done = 0; // bytes of the header and of what follows it
};

struct Traffic {
  std::map<int, Outgoing> out;
  std::map<int, Incoming> in;
};

bool gone(ssize_t moved) {
  return moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR);
}

/// Moves what can be moved to the peer. Whether all is done.
bool push(Outgoing& out, int socket) {
  while (out.done < out.bytes.size()) {
    const ssize_t moved = ::send(
        socket,
        out.bytes.data() + out.done,
        out.bytes.size() - out.done,
        MSG_NOSIGNAL | MSG_DONTWAIT);
    if (gone(moved)) throw moved;
    if (moved < 0) return false;
    out.done += static_cast<size_t>(moved);
  }
  return true;
}

void checkHeader(const ncclComm& comm, int peer, const Header& got, const Header& wanted) {
  if (got.agrees(wanted) && got.bytes == wanted.bytes) return;
  violation(
      "rank %d calls %s of %llu elements of type %d, reduction %d, root %d, and rank %d %s of %llu "
      "of type %d, reduction %d, root %d",
      comm.rank,
      nameOf(wanted.kind),
      static_cast<unsigned long long>(wanted.count),
      static_cast<int>(wanted.type),
      static_cast<int>(wanted.reduction),
      wanted.root,
      peer,
      nameOf(got.kind),
      static_cast<unsigned long long>(got.count),
      static_cast<int>(got.type),
      static_cast<int>(got.reduction),
      got.root);
}

bool pull(const ncclComm& comm, int peer, Incoming& in, int socket) {
  while (in.next < in.expected.size()) {
    const Expected& expected = in.expected[in.next];
    const bool in_header = in.done < sizeof(Header);
    char* const to = in_header ? reinterpret_cast<char*>(&in.header) + in.done
                               : expected.to + (in.done - sizeof(Header));
    const size_t left =
        in_header ? sizeof(Header) - in.done : sizeof(Header) + expected.header.bytes - in.done;
    if (left > 0) {
      const ssize_t moved = ::recv(socket, to, left, MSG_DONTWAIT);
      if (gone(moved)) throw moved;
      if (moved < 0) return false;
      in.done += static_cast<size_t>(moved);
    }
    if (in.done < sizeof(Header)) continue;
    if (in_header) checkHeader(comm, peer, in.header, expected.header);
    if (in.done < sizeof(Header) + expected.header.bytes) continue;
    ++in.next;
    in.done = 0;
  }
  return true;
}

/// Until everything is sent and received. Throws Interrupted after an abort, which is also what
/// ends it when a rank has gone.
void exchange(ncclComm& comm, Traffic& traffic) {
  for (;;) {
    requireGoingOn(comm);
    bool all = true;
    std::vector<pollfd> waiting;
    try {
      for (const auto& [peer, socket] : comm.sockets) {
        short events = 0;
        if (!push(traffic.out[peer], socket)) events |= POLLOUT;
        if (!pull(comm, peer, traffic.in[peer], socket)) events |= POLLIN;
        if (events != 0) waiting.push_back({socket, events, 0});
        all = all && events == 0;
      }
    } catch (ssize_t) {
      if (!options().silent)
        comm.fail(NcclStatus::kRemoteError, "a rank has closed the connection");
      while (!comm.aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      throw Interrupted{};
    }
    if (all) return;
    poll(waiting.data(), waiting.size(), 2);
  }
}

// ---- reductions ----

template <class T>
auto widened(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return toFloat(value);
  }
}

template <class T, class Wide>
T narrowed(Wide value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return fromFloat<T>(value);
  }
}

/// Integers wrap around.
template <class Wide>
Wide combined(NcclReduction reduction, Wide a, Wide b) {
  using Computed = std::conditional_t<
      std::is_floating_point_v<Wide>,
      std::common_type<Wide>,
      std::make_unsigned<std::conditional_t<std::is_integral_v<Wide>, Wide, int>>>;
  using C = typename Computed::type;
  switch (reduction) {
    case NcclReduction::kSum:
    case NcclReduction::kAverage:
      return static_cast<Wide>(static_cast<C>(a) + static_cast<C>(b));
    case NcclReduction::kProduct:
      return static_cast<Wide>(static_cast<C>(a) * static_cast<C>(b));
    case NcclReduction::kMax:
      return std::max(a, b);
    case NcclReduction::kMin:
      return std::min(a, b);
  }
  violation("%d is not a reduction", static_cast<int>(reduction));
}

template <class T>
void reduceAs(
    const std::vector<const char*>& ranks,
    size_t first,
    size_t count,
    NcclReduction reduction,
    void* out) {
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) {
    auto value = widened(reinterpret_cast<const T*>(ranks[0])[first + i]);
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      value =
          combined(reduction, value, widened(reinterpret_cast<const T*>(ranks[rank])[first + i]));
    }
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      if (reduction == NcclReduction::kAverage) value /= static_cast<decltype(value)>(ranks.size());
    }
    result[i] = narrowed<T>(value);
  }
  if (count > 0) std::memcpy(out, result.data(), count * sizeof(T));
}

/// `count` elements from the element `first` on, of what each rank has sent, in the order of ranks.
void reduceAll(
    NcclType type,
    const std::vector<const char*>& ranks,
    size_t first,
    size_t count,
    NcclReduction reduction,
    void* out) {
  const auto with = [&](auto element) {
    reduceAs<decltype(element)>(ranks, first, count, reduction, out);
  };
  switch (type) {
    case NcclType::kInt8:
      return with(int8_t{});
    case NcclType::kUint8:
      return with(uint8_t{});
    case NcclType::kInt32:
      return with(int32_t{});
    case NcclType::kUint32:
      return with(uint32_t{});
    case NcclType::kInt64:
      return with(int64_t{});
    case NcclType::kUint64:
      return with(uint64_t{});
    case NcclType::kFloat16:
      return with(Half{});
    case NcclType::kBfloat16:
      return with(BFloat16{});
    case NcclType::kFloat32:
      return with(float{});
    case NcclType::kFloat64:
      return with(double{});
  }
}

// ---- work on the device ----

/// How much of what each rank hands over is for one other rank.
struct Shape {
  size_t sent;     // bytes of `send`
  size_t received; // bytes of `recv`
};

Shape shapeOf(const ncclComm& comm, const Header& header) {
  const size_t one = header.count * sizeOf(header.type);
  const auto ranks = static_cast<size_t>(comm.size);
  return {
      header.kind == Kind::kReduceScatter ? one * ranks : one,
      header.kind == Kind::kAllGather ? one * ranks : one};
}

bool isRead(const ncclComm& comm, const Header& header) {
  return header.kind != Kind::kBroadcast || header.root == comm.rank;
}

void runCollective(ncclComm& comm, const Call& call) {
  const auto ranks = static_cast<size_t>(comm.size);
  const auto own = static_cast<size_t>(comm.rank);
  const auto [sent, received] = shapeOf(comm, call.header);
  // All have everything: it is the plainest way, and the headers get everywhere.
  std::vector<std::vector<char>> all(ranks);
  std::vector<const char*> pointers(ranks);
  Traffic traffic;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int peer = static_cast<int>(rank);
    const bool sends = call.header.kind != Kind::kBroadcast || call.header.root == peer;
    all[rank].resize(sends ? sent : 0);
    pointers[rank] = all[rank].data();
    if (rank == own) continue;
    Header header = call.header;
    header.bytes = sends ? sent : 0;
    traffic.in[peer].expected.push_back({header, all[rank].data()});
    header.bytes = isRead(comm, call.header) ? sent : 0;
    traffic.out[peer].add(header, call.send);
  }
  if (!all[own].empty()) std::memcpy(all[own].data(), call.send, sent);
  exchange(comm, traffic);
  const Header& header = call.header;
  switch (header.kind) {
    case Kind::kBroadcast:
      if (received > 0)
        std::memmove(call.recv, pointers[static_cast<size_t>(header.root)], received);
      return;
    case Kind::kAllGather:
      for (size_t rank = 0; rank < ranks && sent > 0; ++rank) {
        std::memcpy(static_cast<char*>(call.recv) + rank * sent, pointers[rank], sent);
      }
      return;
    case Kind::kReduce:
      if (header.root != comm.rank) return;
      [[fallthrough]];
    case Kind::kAllReduce:
      return reduceAll(header.type, pointers, 0, header.count, header.reduction, call.recv);
    case Kind::kReduceScatter:
      return reduceAll(
          header.type, pointers, own * header.count, header.count, header.reduction, call.recv);
    case Kind::kMessage:
      return;
  }
}

/// Messages of one group, in both directions at once.
void runMessages(ncclComm& comm, const std::vector<Call>& calls) {
  Traffic traffic;
  std::vector<Call> to_self;
  std::vector<Call> from_self;
  for (const Call& call : calls) {
    Header header = call.header;
    header.bytes = header.count * sizeOf(header.type);
    if (call.peer == comm.rank) {
      (call.receives ? from_self : to_self).push_back(call);
    } else if (call.receives) {
      traffic.in[call.peer].expected.push_back({header, static_cast<char*>(call.recv)});
    } else {
      traffic.out[call.peer].add(header, call.send);
    }
  }
  if (to_self.size() != from_self.size()) {
    violation(
        "rank %d sends %zu messages to itself and receives %zu",
        comm.rank,
        to_self.size(),
        from_self.size());
  }
  for (size_t i = 0; i < to_self.size(); ++i) {
    checkHeader(comm, comm.rank, to_self[i].header, from_self[i].header);
    const size_t bytes = to_self[i].header.count * sizeOf(to_self[i].header.type);
    if (bytes > 0) std::memcpy(from_self[i].recv, to_self[i].send, bytes);
  }
  exchange(comm, traffic);
}

void run(ncclComm& comm, uint64_t turn, const std::vector<Call>& calls) {
  try {
    {
      std::unique_lock lock(comm.mutex); // calls of other streams come first
      while (comm.completed != turn) {
        requireGoingOn(comm);
        comm.changed.wait_for(lock, std::chrono::milliseconds(2));
      }
    }
    if (calls.front().header.kind == Kind::kMessage) {
      runMessages(comm, calls);
    } else {
      for (const Call& call : calls) runCollective(comm, call);
    }
  } catch (const Interrupted&) {
    return; // it was aborted
  }
  const std::lock_guard lock(comm.mutex);
  ++comm.completed;
  comm.changed.notify_all();
}

// ---- calls ----

struct Group {
  int depth = 0;
  NcclCommunicator handle = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Call> calls;
};
thread_local Group group;

NcclStatus issue(NcclCommunicator handle, cudaStream_t stream, std::vector<Call> calls) {
  const Comm comm = find(handle);
  uint64_t turn = 0;
  {
    const std::lock_guard lock(comm->mutex);
    if (comm->state != NcclStatus::kSuccess) return comm->state;
    turn = comm->issued++;
    comm->polls = 2;
  }
  const cudaError_t error =
      standin().enqueue(stream, [comm, turn, work = std::move(calls)] { run(*comm, turn, work); });
  return error == cudaSuccess ? NcclStatus::kInProgress : NcclStatus::kUnhandledCudaError;
}

void checkBuffers(const ncclComm& comm, const Call& call) {
  if (call.header.kind == Kind::kMessage || call.header.count == 0) return;
  const auto [sent, received] = shapeOf(comm, call.header);
  const auto* from = static_cast<const char*>(call.send);
  const auto* to = static_cast<const char*>(call.recv);
  const size_t one = call.header.count * sizeOf(call.header.type);
  const size_t own = static_cast<size_t>(comm.rank) * one;
  const bool in_place = from + (sent > one ? own : 0) == to + (received > one ? own : 0);
  const bool used_both = call.header.root < 0 || call.header.root == comm.rank;
  if (used_both && !in_place && from < to + received && to < from + sent) {
    violation("%s: the buffers overlap, and not as in place", nameOf(call.header.kind));
  }
}

NcclStatus call(const char* name, NcclCommunicator handle, cudaStream_t stream, const Call& made) {
  const Comm comm = find(handle);
  if (planted(name)) return NcclStatus::kInternalError;
  int device = -1;
  standin().getDevice(&device);
  if (device != comm->device) {
    violation("%s: device %d is current, the communicator is of %d", name, device, comm->device);
  }
  if (made.peer >= comm->size || made.header.root >= comm->size)
    return NcclStatus::kInvalidArgument;
  {
    const std::lock_guard lock(comm->mutex);
    if (comm->polls > 0) violation("%s while another call is in progress", name);
    if (comm->finalized) violation("%s after ncclCommFinalize", name);
  }
  checkBuffers(*comm, made);
  if (group.depth == 0) return issue(handle, stream, {made});
  const bool is_message = made.header.kind == Kind::kMessage;
  if (!group.calls.empty()) {
    const bool has_messages = group.calls.front().header.kind == Kind::kMessage;
    if (group.handle != handle || group.stream != stream || has_messages != is_message) {
      violation("%s: a group of several communicators, streams or kinds is not modelled", name);
    }
  }
  group.handle = handle;
  group.stream = stream;
  group.calls.push_back(made);
  return NcclStatus::kInProgress;
}

Call collective(
    Kind kind,
    const void* send,
    void* recv,
    size_t count,
    NcclType type,
    NcclReduction reduction = NcclReduction::kSum,
    int root = -1) {
  return {{kind, type, reduction, root, count, 0}, send, recv, -1, false};
}

Call message(const void* send, size_t count, NcclType type, int peer) {
  return {{Kind::kMessage, type, NcclReduction::kSum, -1, count, 0}, send, nullptr, peer, false};
}
Call message(void* recv, size_t count, NcclType type, int peer) {
  return {{Kind::kMessage, type, NcclReduction::kSum, -1, count, 0}, nullptr, recv, peer, true};
}

} // namespace

#define PUBLIC __attribute__((visibility("default")))

extern "C" {

PUBLIC void standinLibrary(const StandinServices* given) {
  services = given;
}

PUBLIC NcclStatus ncclGetVersion(int* version) {
  *version = options().version;
  return NcclStatus::kSuccess;
}

PUBLIC NcclStatus ncclGetUniqueId(NcclId* id) {
  if (planted("ncclGetUniqueId")) return NcclStatus::kInternalError;
  std::random_device random;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "fake-nccl-%d-%08x%08x", getpid(), random(), random());
  return NcclStatus::kSuccess;
}

PUBLIC const char* ncclGetErrorString(NcclStatus status) {
  switch (status) {
    case NcclStatus::kSuccess:
      return "no error";
    case NcclStatus::kInvalidUsage:
      return "invalid usage";
    case NcclStatus::kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}

PUBLIC const char* ncclGetLastError(NcclCommunicator handle) {
  thread_local std::string text;
  if (handle == nullptr) return "";
  const Comm comm = find(handle);
  const std::lock_guard lock(comm->mutex);
  text = comm->error;
  return text.c_str();
}

PUBLIC NcclStatus
ncclCommInitRankConfig(NcclCommunicator* out, int ranks, NcclId id, int rank, NcclConfig* config) {
  if (planted("ncclCommInitRankConfig")) return NcclStatus::kInternalError;
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0) {
    violation("a communicator that blocks");
  }
  const auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->size = ranks;
  comm->name.assign(id.bytes, strnlen(id.bytes, sizeof id.bytes));
  standin().getDevice(&comm->device);
  *out = comm.get();
  {
    const std::lock_guard lock(living_mutex);
    living[comm.get()] = comm;
  }
  std::thread([comm] {
    connectAll(*comm);
    const std::lock_guard lock(comm->mutex);
    if (comm->state == NcclStatus::kInProgress) comm->state = NcclStatus::kSuccess;
  }).detach();
  return NcclStatus::kInProgress;
}

PUBLIC NcclStatus ncclCommFinalize(NcclCommunicator handle) {
  const Comm comm = find(handle);
  const std::lock_guard lock(comm->mutex);
  comm->finalized = true;
  comm->polls = 2;
  return NcclStatus::kInProgress;
}

PUBLIC NcclStatus ncclCommDestroy(NcclCommunicator handle) {
  take(handle);
  return NcclStatus::kSuccess;
}

PUBLIC NcclStatus ncclCommAbort(NcclCommunicator handle) {
  const Comm comm = take(handle);
  comm->aborted = true;
  const std::lock_guard lock(comm->mutex);
  for (const auto& [peer, socket] : comm->sockets) shutdown(socket, SHUT_RDWR);
  comm->changed.notify_all();
  return NcclStatus::kSuccess;
}

PUBLIC NcclStatus ncclCommGetAsyncError(NcclCommunicator handle, NcclStatus* state) {
  const Comm comm = find(handle);
  const std::lock_guard lock(comm->mutex);
  *state = comm->state;
  if (comm->state != NcclStatus::kSuccess) return NcclStatus::kSuccess;
  const bool flushes = comm->finalized && comm->completed != comm->issued;
  if (flushes || comm->polls > 0) *state = NcclStatus::kInProgress;
  if (comm->polls > 0) --comm->polls;
  return NcclStatus::kSuccess;
}

PUBLIC NcclStatus ncclGroupStart() {
  if (planted("ncclGroupStart")) return NcclStatus::kInternalError;
  ++group.depth;
  return NcclStatus::kSuccess;
}

PUBLIC NcclStatus ncclGroupEnd() {
  if (group.depth == 0) violation("ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return NcclStatus::kSuccess;
  const Group ended = std::exchange(group, {});
  if (planted("ncclGroupEnd")) return NcclStatus::kInternalError;
  if (ended.calls.empty()) return NcclStatus::kSuccess;
  return issue(ended.handle, ended.stream, ended.calls);
}

PUBLIC NcclStatus ncclAllReduce(
    const void* send,
    void* recv,
    size_t count,
    NcclType type,
    NcclReduction reduction,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(
      __func__, comm, stream, collective(Kind::kAllReduce, send, recv, count, type, reduction));
}

PUBLIC NcclStatus ncclBroadcast(
    const void* send,
    void* recv,
    size_t count,
    NcclType type,
    int root,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(
      __func__,
      comm,
      stream,
      collective(Kind::kBroadcast, send, recv, count, type, NcclReduction::kSum, root));
}

PUBLIC NcclStatus ncclReduce(
    const void* send,
    void* recv,
    size_t count,
    NcclType type,
    NcclReduction reduction,
    int root,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(
      __func__, comm, stream, collective(Kind::kReduce, send, recv, count, type, reduction, root));
}

PUBLIC NcclStatus ncclAllGather(
    const void* send,
    void* recv,
    size_t count,
    NcclType type,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(__func__, comm, stream, collective(Kind::kAllGather, send, recv, count, type));
}

PUBLIC NcclStatus ncclReduceScatter(
    const void* send,
    void* recv,
    size_t count,
    NcclType type,
    NcclReduction reduction,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(
      __func__, comm, stream, collective(Kind::kReduceScatter, send, recv, count, type, reduction));
}

PUBLIC NcclStatus ncclSend(
    const void* buffer,
    size_t count,
    NcclType type,
    int peer,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(__func__, comm, stream, message(buffer, count, type, peer));
}

PUBLIC NcclStatus ncclRecv(
    void* buffer,
    size_t count,
    NcclType type,
    int peer,
    NcclCommunicator comm,
    cudaStream_t stream) {
  return call(__func__, comm, stream, message(buffer, count, type, peer));
}

} // extern "C"
