// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture.h"

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <mutex>
#include <utility>

#include "runtime/driver.h"
#include "runtime/extension.h"

namespace puone {
namespace {

struct Underway {
  std::mutex mutex;
  std::shared_ptr<Capture> capture; // guarded by the mutex
};

Underway& underway() {
  // Leaked: threads may ask during static destruction.
  static auto* instance = new Underway();
  return *instance;
}

bool claim(std::shared_ptr<Capture> capture) {
  const std::lock_guard<std::mutex> lock(underway().mutex);
  if (underway().capture != nullptr) return false;
  underway().capture = std::move(capture);
  detail::capture_underway.store(true, std::memory_order_relaxed);
  return true;
}

void release() noexcept {
  const std::lock_guard<std::mutex> lock(underway().mutex);
  underway().capture = nullptr;
  detail::capture_underway.store(false, std::memory_order_relaxed);
}

} // namespace

const puone_graph_api& graphApi() {
  return requireExtension<puone_graph_api>(PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION);
}

bool isCaptureUnderway() noexcept {
  return detail::capture_underway.load(std::memory_order_relaxed);
}

void beginCapture(std::shared_ptr<Capture> capture, const Stream& stream) {
  const puone_graph_api& graphs = graphApi();
  const puone_stream handle = stream.handle();
  TORCH_CHECK(
      claim(std::move(capture)),
      "puone: a graph is being captured already, and one is captured at a time");
  auto undo = c10::make_scope_exit(&release);
  PUONE_CHECK_STATUS(graphs.capture_begin(handle), "graph.capture_begin");
  undo.release();
}

puone_graph endCapture(const Stream& stream) {
  const auto over = c10::make_scope_exit(&release);
  puone_graph graph = nullptr;
  PUONE_CHECK_STATUS(graphApi().capture_end(stream.handle(), &graph), "graph.capture_end");
  return graph;
}

namespace detail {

std::atomic<bool> capture_underway{false};

std::shared_ptr<Capture> findCapture(const Stream& stream) {
  const puone_stream handle = stream.handleIfCreated();
  if (handle == nullptr) return nullptr;
  int32_t captured = 0;
  PUONE_CHECK_STATUS(graphApi().is_capturing(handle, &captured), "graph.is_capturing");
  const std::lock_guard<std::mutex> lock(underway().mutex);
  return captured != 0 ? underway().capture : nullptr;
}

} // namespace detail

void refuseInCapture(const Stream& stream, const char* what) {
  TORCH_CHECK(
      !isCapturing(stream),
      what,
      " while a graph is being captured on the current puone stream: do it before or after the "
      "capture");
}

} // namespace puone
