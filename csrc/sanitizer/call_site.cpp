// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer/call_site.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/driver.h"

namespace puone::sanitizer {
namespace {

// ---- which operators the thread is in ----

struct Nesting {
  std::vector<SitePtr> sites; // the outermost operator first
  uint64_t observation = 0;
  const Moment* moment = nullptr;
};

std::atomic<uint64_t> observation{0};

Nesting& nesting() {
  thread_local Nesting mine;
  const uint64_t now = observation.load(std::memory_order_relaxed);
  if (mine.observation != now) {
    mine.sites.clear();
    mine.observation = now;
  }
  return mine;
}

/// The sites of forward operators, for the backward pass: by the number that autograd gave.
class ForwardSites {
 public:
  void put(uint64_t thread, int64_t sequence, const SitePtr& site) {
    const std::lock_guard guard(mutex_);
    at(sequence) = {thread, sequence, site};
  }
  SitePtr get(uint64_t thread, int64_t sequence) {
    const std::lock_guard guard(mutex_);
    const Entry& entry = at(sequence);
    return entry.thread == thread && entry.sequence == sequence ? entry.site : nullptr;
  }
  void clear() {
    const std::lock_guard guard(mutex_);
    entries_ = {};
  }

 private:
  struct Entry {
    uint64_t thread = 0;
    int64_t sequence = -1;
    SitePtr site;
  };
  static constexpr size_t kKept = 1 << 14;

  Entry& at(int64_t sequence) {
    if (entries_.empty()) entries_.resize(kKept);
    return entries_[static_cast<size_t>(sequence) % kKept];
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

ForwardSites& forwardSites() {
  static auto* instance = new ForwardSites();
  return *instance;
}

SitePtr outermost(const at::RecordFunction& function) {
  auto site = std::make_shared<Site>();
  site->name = function.name();
  // The engine's own frame around a node; the node comes next.
  if (!site->name.starts_with("autograd::engine::")) site->stack = gatherPythonStack();
  return site;
}

SitePtr backwardNode(const at::RecordFunction& function) {
  auto site = std::make_shared<Site>();
  site->name = function.name();
  const SitePtr forward = forwardSites().get(function.forwardThreadId(), function.seqNr());
  if (forward != nullptr) {
    site->backward = true;
    site->stack = forward->stack;
  }
  return site;
}

// ---- pinned memory ----

/// What an operator does to the elements of its tensor arguments.
struct HostAccess {
  bool any = false;
  std::vector<std::pair<const char*, Flags>> arguments; // static names
};

/// Operators with a kernel for the CPU work on the elements; those without are made of others. So
/// do views, which name an alias that they do not write, and what concerns only the storage.
HostAccess hostAccessOf(const c10::OperatorName& name) {
  static constexpr std::array<std::string_view, 5> metadata{
      "aten::set_", "aten::resize_", "aten::is_set_to", "aten::_resize_output_", "aten::is_pinned"};
  HostAccess access;
  const auto found = c10::Dispatcher::singleton().findSchema(name);
  if (!found || !std::string_view(name.name).starts_with("aten::")) return access;
  if (std::find(metadata.begin(), metadata.end(), name.name) != metadata.end()) return access;
  if (name.name != "aten::copy_" && !found->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
    return access;
  }
  for (const c10::Argument& argument : found->schema().arguments()) {
    const c10::AliasInfo* alias = argument.alias_info();
    if (alias != nullptr && !alias->isWrite()) return {};
    const bool writes = alias != nullptr;
    // An operator in place reads what it writes, except these.
    const bool only_writes = name.name == "aten::copy_" || name.name == "aten::fill_" ||
                             name.name == "aten::zero_" || argument.is_out();
    access.arguments.emplace_back(
        argument.name().c_str(), Flags{.reads = !writes || !only_writes, .writes = writes});
  }
  access.any = true;
  return access;
}

const HostAccess& hostAccessOf(const at::RecordFunction& function) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<const char*, HostAccess>();
  const std::lock_guard guard(mutex);
  const char* const key = function.name();
  const auto [entry, is_new] = known->try_emplace(key); // references stay valid
  if (is_new) {
    if (const auto name = function.operator_name()) entry->second = hostAccessOf(*name);
  }
  return entry->second;
}

void addTensor(Piece& piece, const char* name, Flags flags, const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != c10::kStrided ||
      !tensor.has_storage() || tensor.numel() == 0) {
    return;
  }
  const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  if (!sanitizer().isPinned({begin, begin + tensor.itemsize()})) return;
  Operand& operand = piece.operands.add(
      name, tensor.const_data_ptr(), static_cast<int64_t>(tensor.itemsize()), flags);
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    operand.step(tensor.size(d), tensor.stride(d) * static_cast<int64_t>(tensor.itemsize()));
  }
}

bool isOnDevice(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_privateuseone();
}

/// An operator of the device takes a tensor of the CPU for a number if it has no dimension: the
/// host reads it at the call. These copy it instead, and a copy is seen as the driver's.
bool readsNumbers(std::string_view name) {
  static constexpr std::array<std::string_view, 5> copying{
      "aten::copy_",
      "aten::_copy_from",
      "aten::_to_copy",
      "aten::index_put_",
      "aten::_index_put_impl_"};
  return std::find(copying.begin(), copying.end(), name) == copying.end();
}

void accessPinned(const at::RecordFunction& function, const SitePtr& site) {
  const auto inputs = function.inputs();
  const bool on_device = std::any_of(inputs.begin(), inputs.end(), isOnDevice);
  if (on_device && !readsNumbers(function.name())) return;
  Piece piece{kHostsWork, site, {}, false};
  const HostAccess* access = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isTensor() && !inputs[i].isTensorList()) continue;
    if (access == nullptr) access = &hostAccessOf(function);
    if (!access->any || i >= access->arguments.size()) return;
    const auto& [name, flags] = access->arguments[i];
    if (on_device) {
      const bool number = inputs[i].isTensor() && inputs[i].toTensor().dim() == 0;
      if (number) addTensor(piece, name, {.reads = true}, inputs[i].toTensor());
    } else if (inputs[i].isTensor()) {
      addTensor(piece, name, flags, inputs[i].toTensor());
    } else {
      for (const at::Tensor& tensor : inputs[i].toTensorVector()) {
        addTensor(piece, name, flags, tensor);
      }
    }
  }
  if (piece.operands.all.empty()) return;
  piece.operands.finish();
  sanitizer().hostAccess(piece, nesting().moment);
  deliverFromHost();
}

// ---- the observer ----

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  // A child has no device, and another thread of its parent may have held a lock at the fork.
  if (inBadFork()) return nullptr;
  auto& sites = nesting().sites;
  if (function.forwardThreadId() != 0) {
    sites.push_back(backwardNode(function));
  } else if (sites.empty()) {
    sites.push_back(outermost(function));
  } else {
    sites.push_back(sites.back());
  }
  if (function.seqNr() >= 0 && function.forwardThreadId() == 0) {
    forwardSites().put(at::RecordFunction::currentThreadId(), function.seqNr(), sites.back());
  }
  if (sanitizer().hasPinned()) accessPinned(function, sites.back());
  return nullptr;
}

void leave(const at::RecordFunction& /*function*/, at::ObserverContext* /*context*/) {
  auto& sites = nesting().sites;
  if (!sites.empty()) sites.pop_back(); // it may have been entered before the observation
}

std::optional<at::CallbackHandle> handle;

} // namespace

void observeOperators() {
  observation.fetch_add(1, std::memory_order_relaxed);
  handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&enter, &leave)
          .needsInputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

void ignoreOperators() {
  if (handle) at::removeCallback(*std::exchange(handle, std::nullopt));
  forwardSites().clear();
}

SitePtr operatorSite() {
  const auto& sites = nesting().sites;
  return sites.empty() ? nullptr : sites.back();
}

SitePtr callSite() {
  if (SitePtr site = operatorSite()) return site;
  auto site = std::make_shared<Site>();
  site->stack = gatherPythonStack();
  return site;
}

InHostFunction::InHostFunction(const Moment& moment) {
  nesting().moment = &moment;
}

InHostFunction::~InHostFunction() {
  nesting().moment = nullptr;
}

} // namespace puone::sanitizer
