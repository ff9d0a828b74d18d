// SPDX-License-Identifier: BSD-3-Clause
// Streams, the work queued on them, events, and graphs: plain data, guarded by the runtime's lock.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace puone::standin {

struct Pool {
  int device;
};

/// One cudaEventRecord(): outlives the event while something waits for it.
struct Record {
  bool done = false;
  uint64_t time_ns = 0; // when it was done
};

struct Work {
  enum class Kind : uint8_t {
    kDevice,       // may touch device memory
    kKernel,       // likewise, and a planted failure of "kernel" hits it
    kHostFunction, // may not
    kBookkeeping,  // of the runtime itself, under its lock; happens even on a device in error
    kRecord,
    kWait
  };
  Kind kind;
  std::function<void()> run;
  std::shared_ptr<Record> record; // of kRecord and kWait
};

/// A graph under construction, or finished: work, and what each piece comes after.
struct Graph {
  struct Node {
    Work work;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<void*>> blocks; // of its allocations, shared with its copies
};

struct Stream;

/// From cudaStreamBeginCapture() to cudaStreamEndCapture().
struct Capture {
  Stream* origin;
  cudaStreamCaptureMode mode;
  std::thread::id owner;
  unsigned long long id;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::set<Stream*> streams; // the origin, and those that joined
  bool invalid = false;
};

struct Event {
  int device;
  unsigned flags;
  std::shared_ptr<Record> last;     // the most recent record, or none
  std::shared_ptr<Capture> capture; // of a record that was captured
  std::vector<size_t> frontier;     // and what it comes after
};

struct Stream {
  int device;
  unsigned flags;
  int priority;
  std::deque<Work> queue;
  uint64_t submitted = 0; // pieces of work
  uint64_t completed = 0;
  bool has_worker = false;
  bool destroyed = false; // the worker ends when the queue is empty
  std::condition_variable wake;
  std::shared_ptr<Capture> capture; // while it is captured
  std::vector<size_t> frontier;     // the last nodes, which the next comes after
  size_t dying = 0;                 // bytes that queued cudaFreeAsync() will give back
};

} // namespace puone::standin
