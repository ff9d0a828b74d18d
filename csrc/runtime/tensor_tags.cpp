// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/tensor_tags.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include <torch/csrc/jit/serialization/pickler.h>

#include "runtime/device.h"

namespace puone {
namespace {

// [quote: meta]
// It is never changed after construction, so tensors may share one. A BackendMeta that is changed
// in place must override clone(): PyTorch calls it when a tensor takes over the metadata of
// another.
struct TagsMeta final : c10::BackendMeta {
  explicit TagsMeta(TensorTags tags) : tags(std::move(tags)) {}

  const TensorTags tags;
};

const TagsMeta* findMeta(const at::Tensor& tensor) {
  return dynamic_cast<const TagsMeta*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
}
// [end: meta]

// [quote: hooks]
// torch.save and pickle store a map of text to bool beside each tensor, in which PyTorch's own
// entries are "conj" and "neg". The prefix keeps these apart from tags.
using Metadata = std::unordered_map<std::string, bool>;
constexpr std::string_view kPrefix = "puone.tag:";

void writeTags(const at::Tensor& tensor, Metadata& metadata) {
  for (const auto& tag : tensorTags(tensor)) {
    metadata.emplace(std::string(kPrefix) + tag, true);
  }
}

void readTags(const at::Tensor& tensor, Metadata& metadata) {
  TensorTags tags;
  for (const auto& [key, value] : metadata) {
    if (value && key.starts_with(kPrefix)) {
      tags.insert(key.substr(kPrefix.size()));
    }
  }
  if (!tags.empty()) {
    setTensorTags(tensor, std::move(tags));
  }
}

// Once per process and device type: a second registration throws.
const bool tags_registered = [] {
  torch::jit::TensorBackendMetaRegistry(kDeviceType, &writeTags, &readTags);
  return true;
}();
// [end: hooks]

} // namespace

// [quote: access]
TensorTags tensorTags(const at::Tensor& tensor) {
  const auto* meta = findMeta(tensor);
  return meta != nullptr ? meta->tags : TensorTags{};
}

void setTensorTags(const at::Tensor& tensor, TensorTags tags) {
  TORCH_CHECK(
      tensor.device().type() == kDeviceType,
      "only tensors of the device have tags, not tensors on ",
      tensor.device());
  auto meta = tags.empty() ? nullptr : c10::make_intrusive<TagsMeta>(std::move(tags));
  tensor.unsafeGetTensorImpl()->set_backend_meta(std::move(meta));
}
// [end: access]

} // namespace puone
