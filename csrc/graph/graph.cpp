// SPDX-License-Identifier: BSD-3-Clause
#include "graph/graph.h"

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <atomic>
#include <utility>

#include "runtime/capture.h"
#include "runtime/device_allocator.h"
#include "runtime/driver.h"

namespace puone::graph {
namespace {

constexpr c10::MempoolId_t kNoPool{0, 0};

// PyTorch's convention: the first number for the pool of one graph, the second for one that the
// user asked for.
c10::MempoolId_t ownPool() {
  static std::atomic<c10::CaptureId_t> last{0};
  return {++last, 0};
}

// Ends the capture; then what was freed in it can be looked at.
puone_graph end(const Stream& stream) {
  const auto over = c10::make_scope_exit(&recordDeferredFrees);
  return endCapture(stream);
}

} // namespace

c10::MempoolId_t newPool() {
  static std::atomic<c10::CaptureId_t> last{0};
  return {0, ++last};
}

Graph::~Graph() {
  try {
    reset();
  } catch (const std::exception& error) {
    TORCH_WARN("puone: a graph could not be destroyed: ", error.what());
  }
}

void Graph::captureBegin(c10::MempoolId_t pool) {
  TORCH_CHECK(
      resources_ == nullptr,
      "puone: the graph was captured before: call reset() to capture it again");
  const Stream stream = getCurrentStream();
  TORCH_CHECK(
      !(stream == getDefaultStream(stream.deviceIndex())),
      "puone: a graph must be captured on a stream other than the default stream, which work of "
      "other threads may use: make another stream current first");
  auto resources = std::make_shared<Resources>(pool == kNoPool ? ownPool() : pool);
  retainPool(resources->pool);
  try {
    beginCapture(resources, stream);
  } catch (...) {
    releasePool(resources->pool);
    throw;
  }
  resources_ = std::move(resources);
  capturing_ = stream;
  device_ = stream.deviceIndex();
  try {
    resources_->reserveStates(stream);
  } catch (...) {
    reset();
    throw;
  }
}

void Graph::captureEnd() {
  TORCH_CHECK(capturing_.has_value(), "puone: no capture of this graph has begun");
  const Stream stream = *std::exchange(capturing_, std::nullopt);
  try {
    graph_ = end(stream);
    if (!keep_) instantiate();
  } catch (...) {
    reset();
    throw;
  }
}

void Graph::instantiate() {
  TORCH_CHECK(graph_ != nullptr, "puone: the graph has not been captured");
  PUONE_CHECK_STATUS(graphApi().instantiate(graph_), "graph.instantiate");
  ready_ = true;
}

void Graph::replay() {
  if (!ready_) instantiate();
  const Stream stream = getCurrentStream(device_);
  refuseInCapture(stream, "a graph cannot be replayed");
  resources_->beforeLaunch(stream);
  PUONE_CHECK_STATUS(graphApi().launch(graph_, stream.handle()), "graph.launch");
  resources_->afterLaunch(stream);
}

void Graph::abandonCapture() noexcept {
  try {
    graph_ = end(*std::exchange(capturing_, std::nullopt));
  } catch (const std::exception&) {
    // The driver has dropped what was captured.
  }
}

void Graph::reset() {
  if (resources_ == nullptr) return;
  const puone_hal_api* const api = halOrNull(); // NULL after shutdown and in a forked child
  if (api != nullptr && capturing_) abandonCapture();
  if (api != nullptr && graph_ != nullptr) graphApi().destroy(graph_);
  graph_ = nullptr;
  ready_ = false;
  const c10::MempoolId_t pool = resources_->pool;
  resources_ = nullptr; // it has memory of the pool
  releasePool(pool);
}

c10::MempoolId_t Graph::pool() const {
  TORCH_CHECK(resources_ != nullptr, "puone: the graph has no pool: it has not been captured");
  return resources_->pool;
}

} // namespace puone::graph
