// SPDX-License-Identifier: BSD-3-Clause
#include "bindings/bindings.h"
#include "runtime/device_allocator.h"
#include "runtime/host_allocator.h"

namespace py = pybind11;

namespace puone {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

py::dict toDict(const Stat& stat) {
  py::dict dict;
  dict["current"] = stat.current;
  dict["peak"] = stat.peak;
  dict["allocated"] = stat.allocated;
  dict["freed"] = stat.freed;
  return dict;
}

py::dict toDict(const StatArray& array) {
  constexpr const char* kinds[] = {"all", "small_pool", "large_pool"};
  py::dict dict;
  for (size_t i = 0; i < array.size(); ++i) {
    dict[kinds[i]] = toDict(array[i]);
  }
  return dict;
}

py::dict toDict(const c10::CachingAllocator::DurationStat& stat) {
  py::dict dict;
  dict["total"] = stat.total;
  dict["max"] = stat.max;
  dict["min"] = stat.min;
  dict["count"] = stat.count;
  dict["avg"] = stat.count == 0 ? 0 : stat.total / stat.count;
  return dict;
}

py::dict memoryStats(c10::DeviceIndex device) {
  const auto stats = withoutGil([&] { return deviceAllocator().getDeviceStats(device); });
  py::dict dict;
  dict["num_alloc_retries"] = stats.num_alloc_retries;
  dict["num_ooms"] = stats.num_ooms;
  dict["num_sync_all_streams"] = stats.num_sync_all_streams;
  dict["num_device_alloc"] = stats.num_device_alloc;
  dict["num_device_free"] = stats.num_device_free;
  dict["max_split_size"] = stats.max_split_size;
  dict["allocation"] = toDict(stats.allocation);
  dict["segment"] = toDict(stats.segment);
  dict["active"] = toDict(stats.active);
  dict["inactive_split"] = toDict(stats.inactive_split);
  dict["allocated_bytes"] = toDict(stats.allocated_bytes);
  dict["reserved_bytes"] = toDict(stats.reserved_bytes);
  dict["active_bytes"] = toDict(stats.active_bytes);
  dict["inactive_split_bytes"] = toDict(stats.inactive_split_bytes);
  dict["requested_bytes"] = toDict(stats.requested_bytes);
  dict["oversize_allocations"] = toDict(stats.oversize_allocations);
  dict["oversize_segments"] = toDict(stats.oversize_segments);
  return dict;
}

py::dict hostMemoryStats() {
  const auto stats = withoutGil([] { return hostAllocator().get_stats(); });
  py::dict dict;
  dict["num_host_alloc"] = stats.num_host_alloc;
  dict["num_host_free"] = stats.num_host_free;
  dict["allocations"] = toDict(stats.allocations);
  dict["allocated_bytes"] = toDict(stats.allocated_bytes);
  dict["active_requests"] = toDict(stats.active_requests);
  dict["active_bytes"] = toDict(stats.active_bytes);
  dict["host_alloc_time"] = toDict(stats.host_alloc_time);
  dict["host_free_time"] = toDict(stats.host_free_time);
  return dict;
}

} // namespace

void bindMemory(py::module_& m) {
  m.def(
      "empty_cache",
      [] { deviceAllocator().emptyCache({0, 0}); },
      py::call_guard<py::gil_scoped_release>());
  m.def("memory_stats", &memoryStats, py::arg("device"));
  m.def(
      "reset_peak_memory_stats",
      [](c10::DeviceIndex device) { deviceAllocator().resetPeakStats(device); },
      py::arg("device"),
      py::call_guard<py::gil_scoped_release>());
  m.def(
      "reset_accumulated_memory_stats",
      [](c10::DeviceIndex device) { deviceAllocator().resetAccumulatedStats(device); },
      py::arg("device"),
      py::call_guard<py::gil_scoped_release>());
  m.def(
      "mem_get_info",
      [](c10::DeviceIndex device) {
        const auto [unused, total] =
            withoutGil([&] { return deviceAllocator().getMemoryInfo(device); });
        return py::make_tuple(unused, total);
      },
      py::arg("device"));
  m.def(
      "set_memory_fraction",
      &setMemoryFraction,
      py::arg("fraction"),
      py::arg("device"),
      py::call_guard<py::gil_scoped_release>());
  m.def("host_memory_stats", &hostMemoryStats);
  m.def(
      "host_empty_cache",
      [] { hostAllocator().empty_cache(); },
      py::call_guard<py::gil_scoped_release>());
}

} // namespace puone
