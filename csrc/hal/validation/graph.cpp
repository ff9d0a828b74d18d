// SPDX-License-Identifier: BSD-3-Clause
// The entries of the extension "graph".
#include "hal/hal.h"
#include "hal/validation/checks.h"
#include "hal/validation/extensions.h"
#include "hal/validation/live_objects.h"
#include "hal/validation/refusals.h"

namespace puone::validation {
namespace {

const puone_graph_api* graphs = nullptr;

puone_status checkGraph(const char* entry, puone_graph graph) {
  uint64_t bits = 0;
  return checkHandle(entry, "graph", live().graphs, graph, bits);
}

puone_status captureBegin(puone_stream stream) {
  CHECKED(checkStream("graph.capture_begin", stream));
  return answered(graphs->capture_begin(stream));
}

puone_status captureEnd(puone_stream stream, puone_graph* out) {
  constexpr const char* entry = "graph.capture_end";
  CHECKED(checkOut(entry, out));
  CHECKED(checkStream(entry, stream));
  puone_graph made = nullptr;
  CHECKED(answered(graphs->capture_end(stream, &made)));
  CHECKED(keep(entry, live().graphs, made, 0, graphs->destroy));
  *out = made;
  return PUONE_OK;
}

puone_status isCapturing(puone_stream stream, int32_t* out) {
  constexpr const char* entry = "graph.is_capturing";
  CHECKED(checkOut(entry, out));
  CHECKED(checkStream(entry, stream));
  return answered(graphs->is_capturing(stream, out));
}

puone_status instantiate(puone_graph graph) {
  CHECKED(checkGraph("graph.instantiate", graph));
  return answered(graphs->instantiate(graph));
}

puone_status launchGraph(puone_graph graph, puone_stream stream) {
  constexpr const char* entry = "graph.launch";
  CHECKED(checkGraph(entry, graph));
  CHECKED(checkStream(entry, stream));
  return answered(graphs->launch(graph, stream));
}

puone_status destroyGraph(puone_graph graph) {
  return destroy("graph.destroy", "graph", live().graphs, graph, graphs->destroy);
}

puone_graph_api wrapped(const puone_graph_api& api) {
  puone_graph_api result = api;
  result.capture_begin = captureBegin;
  result.capture_end = captureEnd;
  result.is_capturing = isCapturing;
  result.instantiate = instantiate;
  result.launch = launchGraph;
  result.destroy = destroyGraph;
  return result;
}

} // namespace

const void* wrappedGraph(const void* found) {
  return wrappedOnce<wrapped>(found, graphs);
}

} // namespace puone::validation
