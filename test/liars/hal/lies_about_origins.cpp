// SPDX-License-Identifier: BSD-3-Clause
// Lies about which work failed: the extension "origin".
#include <cstring>

#include "hal/origin.h"
#include "liar.h"

namespace puone::liar {
namespace {

const puone_origin_api* true_origins = nullptr;
const puone_graph_api* true_graphs = nullptr;
thread_local uint64_t last_number = 0;
thread_local bool launched_a_graph = false;

puone_status setAndRemember(uint64_t number) {
  last_number = number != 0 ? number : last_number;
  return true_origins->set(number);
}

puone_status lastNumber(uint64_t* out) {
  if (out == nullptr) return true_origins->failed(out);
  *out = last_number;
  return PUONE_OK;
}

puone_status launchAndRemember(puone_graph graph, puone_stream stream) {
  launched_a_graph = true;
  return true_graphs->launch(graph, stream);
}

// A copy of the wrapped extension "origin" whose failed() is `failed`.
const void* changedOrigins(const void* found, puone_status (*failed)(uint64_t*)) {
  static puone_origin_api origins;
  true_origins = static_cast<const puone_origin_api*>(found);
  origins = *true_origins;
  origins.set = setAndRemember;
  origins.failed = failed;
  return &origins;
}

const void* watchedGraphs(const void* found) {
  static puone_graph_api graphs;
  true_graphs = static_cast<const puone_graph_api*>(found);
  graphs = *true_graphs;
  graphs.launch = launchAndRemember;
  return &graphs;
}

bool is(const char* name, const char* extension) {
  return name != nullptr && std::strcmp(name, extension) == 0;
}

} // namespace

void theLastWorkFailed(puone_hal_api& table) {
  table.get_extension = [](const char* name, uint32_t min_version, const void** out) {
    const puone_status status = truth().get_extension(name, min_version, out);
    if (status == PUONE_OK && is(name, PUONE_ORIGIN_EXTENSION)) {
      *out = changedOrigins(*out, lastNumber);
    }
    return status;
  };
}

void graphsForgetOrigins(puone_hal_api& table) {
  table.get_extension = [](const char* name, uint32_t min_version, const void** out) {
    const puone_status status = truth().get_extension(name, min_version, out);
    if (status != PUONE_OK) return status;
    if (is(name, PUONE_GRAPH_EXTENSION)) *out = watchedGraphs(*out);
    if (is(name, PUONE_ORIGIN_EXTENSION)) {
      *out = changedOrigins(*out, [](uint64_t* number) {
        return launched_a_graph ? lastNumber(number) : true_origins->failed(number);
      });
    }
    return status;
  };
}

} // namespace puone::liar
