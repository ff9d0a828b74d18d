// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture.h"

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/device_allocator.h"
#include "runtime/driver.h"
#include "runtime/host_allocator.h"
#include "runtime/kernels.h"

namespace puone {
namespace {

constexpr size_t kStateBytes = 2 * sizeof(uint64_t);

struct Underway {
  std::mutex mutex;
  std::shared_ptr<Capture> capture; // guarded by the mutex
};

Underway& underway() {
  // Leaked: threads may ask during static destruction.
  static auto* instance = new Underway();
  return *instance;
}

bool claim(const std::shared_ptr<Capture>& capture) {
  const std::lock_guard<std::mutex> lock(underway().mutex);
  if (underway().capture != nullptr) return false;
  underway().capture = capture;
  detail::capture_underway.store(true, std::memory_order_relaxed);
  return true;
}

void release() noexcept {
  {
    const std::lock_guard<std::mutex> lock(underway().mutex);
    underway().capture = nullptr;
    detail::capture_underway.store(false, std::memory_order_relaxed);
  }
  recordDeferredFrees();
}

// Queues writing {seed, offset}.
void writeState(void* state, uint64_t seed, uint64_t offset, const Stream& stream) {
  puone_fill_args args{};
  args.ndim = 1;
  args.element_size = kStateBytes;
  args.sizes[0] = 1;
  args.out.data = state;
  args.out.strides[0] = kStateBytes;
  static_assert(sizeof(args.value) >= kStateBytes);
  std::memcpy(args.value, &seed, sizeof(seed));
  std::memcpy(args.value + sizeof(seed), &offset, sizeof(offset));
  kernel::fill.launch(args, stream);
}

} // namespace

// ---- what a graph needs ----

// Launches may still run: pinned memory is reused when they are done.
Capture::~Capture() {
  for (const c10::Storage& storage : kept_) {
    const at::DataPtr& memory = storage.data_ptr();
    for (const Stream& stream : launched_on_) {
      hostAllocator().record_event(memory.get(), memory.get_context(), stream.unwrap());
    }
  }
}

Capture::Draws& Capture::drawsOf(GeneratorImpl& generator, const Stream& stream) {
  const auto known = std::find_if(draws_.begin(), draws_.end(), [&](const Draws& draws) {
    return draws.generator.unsafeGetGeneratorImpl() == &generator;
  });
  if (known != draws_.end()) return *known;
  TORCH_CHECK_NOT_IMPLEMENTED(
      kernel::fill.available(),
      "puone: random numbers cannot be captured, because the driver \"",
      driverState().name,
      "\" does not have the kernel \"fill\", which sets their state before each replay");
  auto reference = c10::intrusive_ptr<GeneratorImpl>::reclaim_copy(&generator);
  draws_.push_back({at::Generator(std::move(reference)), StreamMemory(kStateBytes, stream), 0});
  return draws_.back();
}

PhiloxPosition Capture::draw(GeneratorImpl& generator, uint64_t numbers, const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Draws& draws = drawsOf(generator, stream);
  const uint64_t before = draws.numbers;
  draws.numbers += GeneratorImpl::rounded(numbers);
  return {0, before, draws.state.get()};
}

void Capture::keep(const c10::Storage& storage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back(storage);
}

void Capture::advance(const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (draws_.empty()) return;
  last_.block(stream); // the work of the last launch reads the state that is written here
  for (const Draws& draws : draws_) {
    const auto [seed, offset] = draws.generator.get<GeneratorImpl>()->reserve(draws.numbers);
    writeState(draws.state.get(), seed, offset, stream);
  }
}

void Capture::launched(const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!draws_.empty()) last_.record(stream);
  const bool known = std::find(launched_on_.begin(), launched_on_.end(), stream) != launched_on_.end();
  if (!kept_.empty() && !known) launched_on_.push_back(stream);
}

// ---- the one that is underway ----

const puone_graph_api& graphApi() {
  const puone_hal_api& api = hal(); // throws after shutdown and in a bad fork
  static const void* const table = [&] {
    const void* found = nullptr;
    PUONE_CHECK_STATUS(
        api.get_extension(PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION, &found),
        "get_extension(\"graph\")");
    return found;
  }();
  return *static_cast<const puone_graph_api*>(table);
}

void beginCapture(const std::shared_ptr<Capture>& capture, const Stream& stream) {
  const puone_graph_api& graphs = graphApi();
  const puone_stream handle = stream.handle();
  TORCH_CHECK(
      claim(capture), "puone: a graph is being captured already, and one is captured at a time");
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
