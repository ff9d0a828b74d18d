// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/launch_debugging.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "hal/origin.h"
#include "runtime/extension.h"

namespace puone {
namespace {

// ---- stacks ----

// The stacks of the latest launches, by number. Thread-safe.
class RecentStacks {
 public:
  uint64_t add(LaunchStack stack) {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t number = ++last_;
    auto& place = stacks_[number % kMost];
    place.swap(stack); // the older one dies without the lock
    return number;
  }

  // Nothing: it is too old. NULL: there was no stack to gather.
  std::optional<LaunchStack> find(uint64_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (last_ - number >= kMost) return std::nullopt;
    return stacks_[number % kMost];
  }

  static constexpr size_t kMost = 1 << 15; // about 10 MB

 private:
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::vector<LaunchStack> stacks_ = std::vector<LaunchStack>(kMost);
};

RecentStacks& recentStacks() {
  static auto* instance = new RecentStacks(); // leaked: launches may outlive static objects
  return *instance;
}

std::atomic<LaunchStack (*)()> gather_stack{nullptr};
std::atomic<std::string (*)(const LaunchStack&)> format_stack{nullptr};

thread_local int without_stacks = 0;

// ---- the table ----

// The driver's own entries, and what the replaced ones do. Written once, before they can be called.
puone_hal_api driver{};
const puone_origin_api* origin = nullptr;
const puone_graph_api* graphs = nullptr;
bool blocking = false;

bool isSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

bool isCapturing(puone_stream stream) {
  int32_t capturing = 0;
  return graphs != nullptr && graphs->is_capturing(stream, &capturing) == PUONE_OK && capturing;
}

// The status of a call that queued work, or where each is waited for that of the work.
puone_status waitedFor(puone_stream stream, puone_status status) {
  if (status != PUONE_OK || !blocking || isCapturing(stream)) return status;
  return driver.stream_synchronize(stream);
}

// Makes a call that queues work.
template <class Call>
puone_status launched(puone_stream stream, const Call& call) {
  if (origin != nullptr) {
    const auto gather = gather_stack.load();
    if (gather != nullptr) origin->set(recentStacks().add(gather()));
  }
  return waitedFor(stream, call());
}

puone_status memcpyAsync(
    void* dst, const void* src, size_t bytes, puone_memcpy_kind kind, puone_stream stream) {
  return launched(stream, [=] { return driver.memcpy_async(dst, src, bytes, kind, stream); });
}

puone_status memsetAsync(void* dst, int32_t value, size_t bytes, puone_stream stream) {
  return launched(stream, [=] { return driver.memset_async(dst, value, bytes, stream); });
}

puone_status hostFunction(puone_stream stream, puone_host_func function, void* user_data) {
  return launched(stream, [=] { return driver.stream_host_func(stream, function, user_data); });
}

puone_status kernelLaunch(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  return launched(
      stream, [=] { return driver.kernel_launch(kernel, args, bytes, stream, context); });
}

// Its work keeps the stacks of the captured calls.
puone_status launchGraph(puone_graph graph, puone_stream stream) {
  return waitedFor(stream, graphs->launch(graph, stream));
}

puone_status getExtension(const char* name, uint32_t min_version, const void** out) {
  const puone_status status = driver.get_extension(name, min_version, out);
  if (status == PUONE_OK && std::string_view(name) == PUONE_GRAPH_EXTENSION) {
    static const puone_graph_api table = [] {
      puone_graph_api copy = *graphs;
      copy.launch = launchGraph;
      return copy;
    }();
    *out = &table;
  }
  return status;
}

} // namespace

void setLaunchStacks(LaunchStack (*gather)(), std::string (*format)(const LaunchStack&)) noexcept {
  format_stack.store(format);
  gather_stack.store(gather);
}

void debugLaunches(puone_hal_api& table) {
  blocking = isSet("PUONE_LAUNCH_BLOCKING");
  const bool stacks = isSet("PUONE_STACKS");
  if (!blocking && !stacks) return;
  driver = table;
  graphs = findExtension<puone_graph_api>(driver, PUONE_GRAPH_EXTENSION, PUONE_GRAPH_VERSION);
  if (stacks) {
    origin = findExtension<puone_origin_api>(driver, PUONE_ORIGIN_EXTENSION, PUONE_ORIGIN_VERSION);
  }
  table.memcpy_async = memcpyAsync;
  table.memset_async = memsetAsync;
  table.stream_host_func = hostFunction;
  table.kernel_launch = kernelLaunch;
  if (blocking && graphs != nullptr) table.get_extension = getExtension;
}

std::string launchStack() {
  if (blocking) return {};
  if (origin == nullptr || without_stacks > 0) {
    return "\nThe error may be of an earlier call: PUONE_LAUNCH_BLOCKING=1 raises it where it "
           "occurs, PUONE_STACKS=1 adds the Python stack of that call.";
  }
  uint64_t number = 0;
  origin->failed(&number);
  if (number == 0) return {}; // the driver cannot tell
  const std::optional<LaunchStack> stack = recentStacks().find(number);
  if (!stack) {
    return "\nThe stack of the call that queued the work is not kept any more: more than " +
           std::to_string(RecentStacks::kMost) +
           " calls came after it. PUONE_LAUNCH_BLOCKING=1 raises the error where it occurs.";
  }
  const std::string text = *stack == nullptr ? "" : format_stack.load()(*stack);
  return text.empty() ? "\nThe work was queued by a thread without Python, such as autograd's."
                      : "\nThe work was queued by (most recent call last):\n" + text;
}

WithoutLaunchStacks::WithoutLaunchStacks() noexcept {
  ++without_stacks;
}

WithoutLaunchStacks::~WithoutLaunchStacks() {
  --without_stacks;
}

} // namespace puone
