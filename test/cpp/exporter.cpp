// SPDX-License-Identifier: BSD-3-Clause
#include "exporter.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace puone::test {

const puone_ipc_api& ipc() {
  const void* table = nullptr;
  OK(hal().get_extension(PUONE_IPC_EXTENSION, PUONE_IPC_VERSION, &table));
  return *static_cast<const puone_ipc_api*>(table);
}

puone_ipc_memory_handle exported(void* block) {
  puone_ipc_memory_handle handle{};
  OK(ipc().export_memory(block, &handle));
  return handle;
}

void* opened(const puone_ipc_memory_handle& handle) {
  void* block = nullptr;
  OK(ipc().open_memory(0, &handle, &block));
  return block;
}

Exporter::Exporter(size_t bytes, int value) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // it must not outlive the tests
    Sim sim;
    const puone_stream stream = sim.stream();
    auto* block = sim.memory<unsigned char>(bytes);
    OK(hal().memset_async(block, value, bytes, stream));
    OK(hal().stream_synchronize(stream));
    const puone_ipc_memory_handle handle = exported(block);
    if (write(ends[1], &handle, sizeof handle) != sizeof handle) _exit(1);
    for (;;) pause();
  }
  close(ends[1]);
  const ssize_t heard = read(ends[0], &handle_, sizeof handle_);
  close(ends[0]);
  REQUIRE(heard == sizeof handle_);
}

Exporter::~Exporter() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

} // namespace puone::test
