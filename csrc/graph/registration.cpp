// SPDX-License-Identifier: BSD-3-Clause
// torch.accelerator.Graph, which finds this by the name of the device type in capital letters
// (since PyTorch 2.13).
#if __has_include(<ATen/core/GraphImplInterface.h>)

#include <ATen/core/GraphImplInterface.h>
#include <c10/util/Exception.h>

#include <string>

#include "graph/graph.h"

namespace puone::graph {

class GraphImpl final : public at::GraphImplInterface {
 public:
  explicit GraphImpl(const at::GraphImplArgs& args) : graph_(args.keep_graph) {}

  // All modes are the same here: what a capture does not allow is refused on the captured streams,
  // and other threads and streams are not affected.
  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode /*mode*/) override {
    graph_.captureBegin(pool);
  }
  void capture_end() override {
    graph_.captureEnd();
  }
  void instantiate() override {
    graph_.instantiate();
  }
  void replay() override {
    graph_.replay();
  }
  void reset() override {
    graph_.reset();
  }
  c10::MempoolId_t pool() const override {
    return graph_.pool();
  }

  void enable_debug_mode() override {
    refuseDump();
  }
  void debug_dump(const std::string& /*path*/) override {
    refuseDump();
  }

 private:
  [[noreturn]] static void refuseDump() {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "puone cannot write a graph to a file");
  }

  Graph graph_;
};

} // namespace puone::graph

namespace at {
REGISTER_GRAPH_IMPL(PUONE, puone::graph::GraphImpl)
} // namespace at

#endif
