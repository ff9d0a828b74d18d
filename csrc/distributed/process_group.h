// SPDX-License-Identifier: BSD-3-Clause
// The process group `pccl`: c10d's interface over a Session. Each collective of c10d becomes parts
// that are copied and exchanged; arguments are checked on the caller.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace puone::distributed {

constexpr const char* kBackendName = "pccl";

struct Options : c10d::Backend::Options {
  explicit Options(std::chrono::milliseconds timeout = kBackendDefaultTimeout)
      : c10d::Backend::Options(kBackendName, timeout) {}
};

class ProcessGroup : public c10d::Backend {
 public:
  // `host` exchanges host memory between the same ranks, and belongs to the group from now on; its
  // timeout is the group's.
  static c10::intrusive_ptr<ProcessGroup> create(
      c10::intrusive_ptr<c10d::Backend> host,
      int rank,
      int size,
      c10::intrusive_ptr<Options> options);

  // The calls that have not ended, oldest first, a line for each.
  virtual std::vector<std::string> pending() const = 0;
  virtual c10::intrusive_ptr<Options> options() const = 0;

 protected:
  using c10d::Backend::Backend;
};

} // namespace puone::distributed
