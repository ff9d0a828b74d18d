// SPDX-License-Identifier: BSD-3-Clause
// A process that exports a block of device memory, for the tests of another one.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "hal/ipc.h"
#include "sim.h"

namespace puone::test {

const puone_ipc_api& ipc();
puone_ipc_memory_handle exported(void* block);
void* opened(const puone_ipc_memory_handle& handle);

/// Forked with a block of device 0 that is filled with a byte; ends with this object. To be made
/// before this process uses the driver.
class Exporter {
 public:
  Exporter(size_t bytes, int value);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  const puone_ipc_memory_handle& handle() const {
    return handle_;
  }

 private:
  pid_t process_ = -1;
  puone_ipc_memory_handle handle_{};
};

} // namespace puone::test
