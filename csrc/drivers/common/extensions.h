// SPDX-License-Identifier: BSD-3-Clause
// The tables of the extensions that several drivers offer. Each entry calls a method of the driver.
#pragma once

#include <cstdint>
#include <vector>

#include "drivers/common/correlation.h"
#include "drivers/common/entries.h"
#include "drivers/common/origin.h"
#include "hal/hal.h"
#include "hal/ipc.h"
#include "hal/origin.h"

namespace puone {

/// The extension "graph". `Traits` as in life.h.
template <class Traits>
class GraphEntries {
  using Table = Entries<Traits>;
  using Driver = typename Traits::Driver;

  static puone_status captureBegin(puone_stream stream) {
    return Table::entry("graph.capture_begin", [=](Driver& d) { d.beginCapture(stream); });
  }

  static puone_status captureEnd(puone_stream stream, puone_graph* out) {
    return Table::entry("graph.capture_end", [=](Driver& d) { *out = d.endCapture(stream); });
  }

  static puone_status isCapturing(puone_stream stream, int32_t* out) {
    return Table::entry(
        "graph.is_capturing", [=](Driver& d) { *out = d.isCapturing(stream) ? 1 : 0; });
  }

  static puone_status instantiate(puone_graph graph) {
    return Table::entry("graph.instantiate", [=](Driver& d) { d.instantiate(graph); });
  }

  static puone_status launch(puone_graph graph, puone_stream stream) {
    return Table::entry("graph.launch", [=](Driver& d) { d.launchGraph(graph, stream); });
  }

  static puone_status destroy(puone_graph graph) {
    return Table::entry("graph.destroy", [=](Driver& d) {
      if (graph != nullptr) d.destroyGraph(graph);
    });
  }

 public:
  static constexpr puone_graph_api kTable = {
      sizeof(puone_graph_api),
      PUONE_GRAPH_VERSION,
      captureBegin,
      captureEnd,
      isCapturing,
      instantiate,
      launch,
      destroy,
  };
};

/// The extension "trace". `Traits` as in life.h.
template <class Traits>
class TraceEntries {
  using Table = Entries<Traits>;
  using Driver = typename Traits::Driver;

  static puone_status start() {
    return Table::entry("trace.start", [](Driver& d) { d.startTrace(); });
  }

  static puone_status stop(const puone_trace_record** out, uint64_t* count) {
    return Table::entry("trace.stop", [=](Driver& d) {
      const std::vector<puone_trace_record>& records = d.stopTrace();
      *out = records.data();
      *count = records.size();
    });
  }

  static puone_status correlation(uint64_t* out) {
    return Table::entry("trace.correlation", [=](Driver&) { *out = Correlation::last(); });
  }

 public:
  static constexpr puone_trace_api kTable = {
      sizeof(puone_trace_api),
      PUONE_TRACE_VERSION,
      start,
      stop,
      correlation,
  };
};

/// The extension "ipc". `Traits` as in life.h.
template <class Traits>
class IpcEntries {
  using Table = Entries<Traits>;
  using Driver = typename Traits::Driver;

  static puone_status exportMemory(void* block, puone_ipc_memory_handle* out) {
    return Table::entry("ipc.export_memory", [=](Driver& d) { *out = d.exportMemory(block); });
  }

  static puone_status openMemory(
      int32_t device, const puone_ipc_memory_handle* handle, void** out) {
    return Table::entry(
        "ipc.open_memory", [=](Driver& d) { *out = d.openMemory(device, *handle); });
  }

  static puone_status closeMemory(void* ptr) {
    return Table::entry("ipc.close_memory", [=](Driver& d) {
      if (ptr != nullptr) d.closeMemory(ptr);
    });
  }

 public:
  static constexpr puone_ipc_api kTable = {
      sizeof(puone_ipc_api),
      PUONE_IPC_VERSION,
      exportMemory,
      openMemory,
      closeMemory,
  };
};

/// The extension "origin". `Traits` as in life.h.
template <class Traits>
class OriginEntries {
  static puone_status set(uint64_t number) {
    Origin::current = number;
    return PUONE_OK;
  }

  static puone_status failed(uint64_t* out) {
    if (out == nullptr) {
      return Entries<Traits>::guarded(
          "origin.failed", [] { fail(PUONE_INVALID_ARGUMENT, "out is NULL"); });
    }
    *out = lastErrorOrigin();
    return PUONE_OK;
  }

 public:
  static constexpr puone_origin_api kTable = {
      sizeof(puone_origin_api),
      PUONE_ORIGIN_VERSION,
      set,
      failed,
  };
};

} // namespace puone
