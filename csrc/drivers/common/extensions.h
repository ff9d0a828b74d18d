// SPDX-License-Identifier: BSD-3-Clause
// The tables of the extensions that several drivers offer. Each entry calls a method of the driver.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "drivers/common/correlation.h"
#include "drivers/common/entries.h"
#include "drivers/common/module_kernels.h"
#include "drivers/common/origin.h"
#include "hal/collective.h"
#include "hal/hal.h"
#include "hal/ipc.h"
#include "hal/module.h"
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

/// The extension "module". `Traits` as in life.h.
template <class Traits>
class ModuleEntries {
  using Table = Entries<Traits>;
  using Driver = typename Traits::Driver;

  static puone_status target(int32_t device, puone_module_target* out) {
    return Table::entry(
        "module.target", [=](Driver& d) { fillStruct(out, d.moduleTarget(device)); });
  }

  static puone_status compile(
      const char* source, const puone_module_options* options, void** image, size_t* bytes) {
    return Table::entry("module.compile", [=](Driver& d) {
      constexpr puone_module_options kUsual{sizeof(puone_module_options), 0, nullptr};
      const std::string made = d.compile(source, options != nullptr ? *options : kUsual);
      void* const memory = std::malloc(made.size());
      if (memory == nullptr) throw std::bad_alloc();
      std::memcpy(memory, made.data(), made.size());
      *image = memory;
      *bytes = made.size();
    });
  }

  static puone_status freeImage(void* image) {
    std::free(image);
    return PUONE_OK;
  }

  static puone_status load(int32_t device, const void* image, size_t bytes, puone_module* out) {
    return Table::entry("module.load", [=](Driver& d) {
      *out = d.loadModule(device, {static_cast<const char*>(image), bytes});
    });
  }

  static puone_status find(
      puone_module module, const puone_module_kernel* kernel, puone_kernel* out) {
    return Table::entry("module.find", [=](Driver& d) { *out = d.findInModule(module, *kernel); });
  }

  static puone_status declaration(puone_kernel kernel, const puone_module_kernel** out) {
    return Table::entry("module.declaration", [=](Driver&) { *out = &declarationOf(kernel); });
  }

  static puone_status unload(puone_module module) {
    return Table::entry("module.unload", [=](Driver& d) {
      if (module != nullptr) d.unloadModule(module);
    });
  }

 public:
  static constexpr puone_module_api kTable = {
      sizeof(puone_module_api),
      PUONE_MODULE_VERSION,
      target,
      compile,
      freeImage,
      load,
      find,
      declaration,
      unload,
  };
};

/// The extension "collective". `Traits` as in life.h.
template <class Traits>
class CollectiveEntries {
  using Table = Entries<Traits>;
  using Driver = typename Traits::Driver;

  static puone_status identify(int32_t device, puone_device_identity* out) {
    return Table::entry("collective.identify", [=](Driver& d) { *out = d.identity(device); });
  }

  static puone_status createId(puone_collective_id* out) {
    return Table::entry("collective.create_id", [=](Driver& d) { *out = d.createCollectiveId(); });
  }

  static puone_status init(
      int32_t device,
      const puone_collective_id* id,
      int32_t rank,
      int32_t size,
      uint32_t timeout_ms,
      puone_communicator* out) {
    return Table::entry("collective.init", [=](Driver& d) {
      *out = d.initCommunicator(device, *id, rank, size, timeout_ms);
    });
  }

  static puone_status destroy(puone_communicator communicator) {
    return Table::entry("collective.destroy", [=](Driver& d) {
      if (communicator != nullptr) d.destroyCommunicator(communicator);
    });
  }

  static puone_status abort(puone_communicator communicator) {
    return Table::entry("collective.abort", [=](Driver& d) { d.abortCommunicator(communicator); });
  }

  static puone_status query(puone_communicator communicator) {
    return Table::entry("collective.query", [=](Driver& d) { d.queryCommunicator(communicator); });
  }

  static puone_status allReduce(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      puone_stream stream) {
    return Table::entry("collective.all_reduce", [=](Driver& d) {
      d.allReduce(communicator, send, recv, count, type, reduction, stream);
    });
  }

  static puone_status broadcast(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      int32_t root,
      puone_stream stream) {
    return Table::entry("collective.broadcast", [=](Driver& d) {
      d.broadcast(communicator, send, recv, count, type, root, stream);
    });
  }

  static puone_status reduce(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      int32_t root,
      puone_stream stream) {
    return Table::entry("collective.reduce", [=](Driver& d) {
      d.reduce(communicator, send, recv, count, type, reduction, root, stream);
    });
  }

  static puone_status allGather(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_stream stream) {
    return Table::entry("collective.all_gather", [=](Driver& d) {
      d.allGather(communicator, send, recv, count, type, stream);
    });
  }

  static puone_status reduceScatter(
      puone_communicator communicator,
      const void* send,
      void* recv,
      uint64_t count,
      int32_t type,
      puone_collective_reduction reduction,
      puone_stream stream) {
    return Table::entry("collective.reduce_scatter", [=](Driver& d) {
      d.reduceScatter(communicator, send, recv, count, type, reduction, stream);
    });
  }

  static puone_status send(
      puone_communicator communicator,
      const void* buffer,
      uint64_t count,
      int32_t type,
      int32_t peer,
      puone_stream stream) {
    return Table::entry("collective.send", [=](Driver& d) {
      d.send(communicator, buffer, count, type, peer, stream);
    });
  }

  static puone_status recv(
      puone_communicator communicator,
      void* buffer,
      uint64_t count,
      int32_t type,
      int32_t peer,
      puone_stream stream) {
    return Table::entry("collective.recv", [=](Driver& d) {
      d.receive(communicator, buffer, count, type, peer, stream);
    });
  }

  static puone_status groupBegin(puone_communicator communicator) {
    return Table::entry("collective.group_begin", [=](Driver& d) { d.beginGroup(communicator); });
  }

  static puone_status groupEnd(puone_communicator communicator) {
    return Table::entry("collective.group_end", [=](Driver& d) { d.endGroup(communicator); });
  }

 public:
  static constexpr puone_collective_api kTable = {
      sizeof(puone_collective_api),
      PUONE_COLLECTIVE_VERSION,
      identify,
      createId,
      init,
      destroy,
      abort,
      query,
      allReduce,
      broadcast,
      reduce,
      allGather,
      reduceScatter,
      send,
      recv,
      groupBegin,
      groupEnd,
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
