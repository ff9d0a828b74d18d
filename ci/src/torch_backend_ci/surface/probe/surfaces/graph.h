// SPDX-License-Identifier: BSD-3-Clause
// Graph capture.
#pragma once

#include "version.h"

#if PROBE_TORCH(2, 12)
#include <ATen/accelerator/Graph.h>

namespace probe {
namespace {

struct Graph final : at::GraphImplInterface {
  explicit Graph(const at::GraphImplArgs&) {}
  void capture_begin(c10::MempoolId_t, at::GraphCaptureMode) override;
  void capture_end() override;
  void instantiate() override;
  void replay() override;
  void reset() override;
  c10::MempoolId_t pool() const override;
  void enable_debug_mode() override;
  void debug_dump(const std::string&) override;
};

void useGraphs(const at::GraphImplArgs& args) {
  new Graph(args);
  (void)at::has_graph_impl(c10::DeviceType::PrivateUse1);
  (void)at::create_graph_impl(c10::DeviceType::PrivateUse1, args);
}

} // namespace
} // namespace probe

namespace at {

REGISTER_GRAPH_IMPL(PROBE, probe::Graph)

} // namespace at
#endif
