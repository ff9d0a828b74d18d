// SPDX-License-Identifier: BSD-3-Clause
#include "graph/graph.h"

#include <pybind11/stl.h>

#include <memory>

#include "bindings/bindings.h"
#include "runtime/capture.h"

namespace py = pybind11;

namespace puone {

namespace {

// Its destructor may wait for the device.
struct DeleteWithoutGil {
  void operator()(graph::Graph* graph) const {
    const py::gil_scoped_release released;
    delete graph;
  }
};

} // namespace

// Functions that take the allocator's locks or may wait for the device are called without the GIL.
void bindGraph(py::module_& m) {
  using graph::Graph;
  using Release = py::call_guard<py::gil_scoped_release>;
  py::class_<Graph, std::unique_ptr<Graph, DeleteWithoutGil>>(m, "Graph")
      .def(py::init<bool>(), py::arg("keep_graph"))
      .def("capture_begin", &Graph::captureBegin, py::arg("pool"), Release())
      .def("capture_end", &Graph::captureEnd, Release())
      .def("instantiate", &Graph::instantiate, Release())
      .def("replay", &Graph::replay) // waits for nothing
      .def("reset", &Graph::reset, Release())
      .def("pool", &Graph::pool);
  m.def("graph_pool_handle", &graph::newPool);
  m.def("is_current_stream_capturing", [] { return isCapturing(getCurrentStream()); });
}

} // namespace puone
