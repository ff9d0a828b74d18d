// SPDX-License-Identifier: BSD-3-Clause
// Snapshots and the history of device memory, as the dictionaries of torch.cuda.memory._snapshot(),
// which torch.cuda._memory_viz and https://pytorch.org/memory_viz read.
#include <c10/core/AllocatorConfig.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "runtime/device_allocator.h"
#include "runtime/python_stack.h"

namespace py = pybind11;

namespace puone {
namespace {

using c10::CachingAllocator::AcceleratorAllocatorConfig;
using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;
using torch::CapturedTraceback;

// ---- stacks ----

// The frames of C++, too, which take long to look up.
MemoryHistory::Context gatherAll() {
  return CapturedTraceback::gather(/*python=*/true, /*script=*/true, /*cpp=*/true);
}

// Collects stacks and looks their frames up together, because that is slow; equal stacks and frames
// become one Python object, which keeps a pickle small.
class Stacks {
 public:
  // The dictionary gets its key "frames" from fill().
  void add(py::dict dict, const MemoryHistory::Context& context) {
    if (context == nullptr) {
      dict["frames"] = none_;
      return;
    }
    auto* stack = torch::getCapturedTracebackFromContext(context);
    const auto [place, is_new] = positions_.emplace(stack, unique_.size());
    if (is_new) {
      unique_.push_back(stack);
      kept_.push_back(context);
    }
    waiting_.emplace_back(std::move(dict), place->second);
  }

  void fill() {
    const auto symbolized = torch::symbolize(unique_);
    std::vector<py::dict> frames;
    for (const auto& frame : symbolized.all_frames) {
      py::dict dict;
      dict["filename"] = frame.filename;
      dict["line"] = frame.lineno;
      dict["name"] = frame.funcname;
      frames.push_back(std::move(dict));
    }
    std::vector<py::list> stacks;
    for (const auto& traceback : symbolized.tracebacks) {
      py::list stack;
      for (const uint64_t frame : traceback) {
        stack.append(frames.at(frame));
      }
      stacks.push_back(std::move(stack));
    }
    for (auto& [dict, position] : waiting_) {
      dict["frames"] = stacks.at(position);
    }
  }

 private:
  std::unordered_map<CapturedTraceback*, size_t> positions_;
  std::vector<CapturedTraceback*> unique_;
  std::vector<MemoryHistory::Context> kept_;
  std::vector<std::pair<py::dict, size_t>> waiting_;
  py::list none_;
};

// ---- snapshots ----

py::tuple toTuple(const c10::MempoolId_t& pool) {
  return py::make_tuple(pool.first, pool.second);
}

const char* stateOf(const BlockInfo& block) {
  if (block.allocated) return "active_allocated";
  return block.active ? "active_awaiting_free" : "inactive";
}

py::dict toDict(const SegmentInfo& segment, Stacks& stacks) {
  py::list blocks;
  size_t address = segment.address;
  for (const BlockInfo& info : segment.blocks) {
    py::dict block;
    block["address"] = address;
    block["size"] = info.size;
    block["requested_size"] = info.requested_size;
    block["state"] = stateOf(info);
    stacks.add(block, info.context_when_allocated);
    blocks.append(block);
    address += info.size;
  }
  py::dict dict;
  dict["device"] = static_cast<int>(segment.device);
  dict["address"] = segment.address;
  dict["total_size"] = segment.total_size;
  dict["allocated_size"] = segment.allocated_size;
  dict["active_size"] = segment.active_size;
  dict["requested_size"] = segment.requested_size;
  dict["stream"] = reinterpret_cast<size_t>(segment.stream);
  dict["segment_type"] = segment.is_large ? "large" : "small";
  dict["segment_pool_id"] = toTuple(segment.owner_private_pool_id);
  dict["is_expandable"] = segment.is_expandable;
  dict["blocks"] = blocks;
  stacks.add(dict, segment.context_when_allocated);
  return dict;
}

// By TraceEntry::Action.
constexpr std::string_view kActions[] = {
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom"};

py::dict toDict(const TraceEntry& entry, Stacks& stacks) {
  py::dict dict;
  dict["action"] = kActions[entry.action_];
  dict[entry.action_ == TraceEntry::OOM ? "device_free" : "addr"] = entry.addr_;
  dict["size"] = entry.size_;
  dict["stream"] = reinterpret_cast<size_t>(entry.stream_);
  dict["time_us"] = entry.time_.t_ / 1000;
  dict["pool_id"] = toTuple(entry.mempool_);
  stacks.add(dict, entry.context_);
  return dict;
}

py::list toList(const std::vector<SegmentInfo>& segments, Stacks& stacks) {
  py::list list;
  for (const SegmentInfo& segment : segments) {
    list.append(toDict(segment, stacks));
  }
  return list;
}

py::list toList(const std::vector<std::vector<TraceEntry>>& traces, Stacks& stacks) {
  py::list list;
  for (const auto& trace : traces) {
    py::list entries;
    for (const TraceEntry& entry : trace) {
      entries.append(toDict(entry, stacks));
    }
    list.append(entries);
  }
  return list;
}

py::list memorySegments() {
  Stacks stacks;
  py::list segments = toList(withoutGil(memorySnapshot), stacks);
  stacks.fill();
  return segments;
}

py::dict allocatorSettings() {
  py::dict settings;
  settings["PYTORCH_ALLOC_CONF"] = AcceleratorAllocatorConfig::last_allocator_settings();
  settings["max_split_size"] = AcceleratorAllocatorConfig::max_split_size();
  settings["garbage_collection_threshold"] =
      AcceleratorAllocatorConfig::garbage_collection_threshold();
  settings["expandable_segments"] = false;
  return settings;
}

py::dict wholeSnapshot() {
  Stacks stacks;
  py::dict snapshot;
  // In this order: the segments leave an entry "snapshot", which says where in the traces they were
  // taken.
  const auto segments = withoutGil(memorySnapshot);
  const auto traces = withoutGil(memoryTraces);
  snapshot["segments"] = toList(segments, stacks);
  snapshot["device_traces"] = toList(traces, stacks);
  snapshot["allocator_settings"] = allocatorSettings();
  snapshot["external_annotations"] = py::list();
  stacks.fill();
  return snapshot;
}

// ---- recording ----

RecordContext contextOf(const std::optional<std::string>& name) {
  if (!name) return RecordContext::NEVER;
  if (*name == "state") return RecordContext::STATE;
  if (*name == "alloc") return RecordContext::ALLOC;
  if (*name == "all") return RecordContext::ALL;
  throw py::value_error("context must be None, 'state', 'alloc' or 'all', but got '" + *name + "'");
}

CreateContextFn recorderOf(const std::string& stacks) {
  if (stacks == "python") return &gatherPythonStack;
  if (stacks == "all") {
    torch::unwind::unwind(); // the first time is slow
    return &gatherAll;
  }
  throw py::value_error("stacks must be 'python' or 'all', but got '" + stacks + "'");
}

uint32_t bitsOf(const std::vector<std::string>& actions) {
  uint32_t bits = 0;
  for (const std::string& action : actions) {
    const auto found = std::find(std::begin(kActions), std::end(kActions), action);
    if (found == std::end(kActions)) throw py::value_error("unknown action '" + action + "'");
    bits |= 1u << (found - std::begin(kActions));
  }
  return bits;
}

void recordHistory(
    const std::optional<std::string>& enabled,
    const std::optional<std::string>& context,
    const std::string& stacks,
    size_t max_entries,
    bool clear,
    const std::vector<std::string>& skipped) {
  if (enabled && *enabled != "state" && *enabled != "all") {
    throw py::value_error("enabled must be None, 'state' or 'all', but got '" + *enabled + "'");
  }
  const RecordContext when = contextOf(context);
  const CreateContextFn recorder = recorderOf(stacks);
  const size_t entries = enabled == "all" ? max_entries : 1;
  const uint32_t bits = bitsOf(skipped);
  withoutGil([&] {
    recordMemoryHistory(enabled.has_value(), recorder, entries, when, clear, bits);
    return 0;
  });
}

// ---- running out of memory ----

// The observer is kept for ever, since allocators call it until the process ends.
void observeOutOfMemory(const py::function& observer) {
  auto* kept = new py::function(observer);
  withoutGil([kept] {
    attachOutOfMemoryObserver([kept](int64_t device, size_t size, size_t total, size_t free) {
      const py::gil_scoped_acquire acquired;
      try {
        (*kept)(device, size, total, free);
      } catch (py::error_already_set& error) {
        error.discard_as_unraisable("an observer of OutOfMemoryError");
      }
    });
    return 0;
  });
}

} // namespace

void bindMemoryHistory(py::module_& m) {
  m.def("memory_snapshot", &memorySegments);
  m.def("whole_memory_snapshot", &wholeSnapshot);
  m.def(
      "record_memory_history",
      &recordHistory,
      py::arg("enabled"),
      py::arg("context"),
      py::arg("stacks"),
      py::arg("max_entries"),
      py::arg("clear_history"),
      py::arg("skip_actions"));
  m.def("attach_out_of_memory_observer", &observeOutOfMemory, py::arg("observer"));
}

} // namespace puone
