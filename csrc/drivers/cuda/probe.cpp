// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/probe.h"

#include <cuda_runtime_api.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

constexpr int kPatienceMs = 30'000;

struct Answer {
  int32_t count;
  cudaError_t error;
};

Answer ask() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  return {error == cudaSuccess ? count : 0, error};
}

std::optional<Answer> readAnswer(int from) {
  pollfd poll_for{from, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&poll_for, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  Answer answer;
  if (ready <= 0 || read(from, &answer, sizeof answer) != sizeof answer) return std::nullopt;
  return answer;
}

/// What a forked child sees; nothing if there could be none or it did not answer.
std::optional<Answer> askInChild() {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    const Answer answer = ask();
    const bool sent = write(ends[1], &answer, sizeof answer) == sizeof answer;
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::optional<Answer> answer;
  if (child > 0) {
    answer = readAnswer(ends[0]);
    if (!answer) kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  return answer;
}

int32_t probe() {
  std::optional<Answer> answer = askInChild();
  // The child of a process that uses CUDA already cannot; nothing is lost by asking here then.
  if (!answer || answer->error == cudaErrorInitializationError) answer = ask();
  switch (answer->error) {
    case cudaSuccess:
      return std::min(answer->count, kMaxDevices);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver: // also where there is no driver at all
    case cudaErrorStubLibrary:
      return 0;
    default:
      fail(PUONE_INTERNAL, "%s", errorText("cudaGetDeviceCount", answer->error).c_str());
  }
}

} // namespace

int32_t deviceCount() {
  // No lock: a fork() while it is held would leave it held in the child. Asking twice is harmless.
  static std::atomic<int32_t> known{-1};
  int32_t count = known.load(std::memory_order_relaxed);
  if (count < 0) {
    count = probe();
    known.store(count, std::memory_order_relaxed);
  }
  return count;
}

} // namespace puone::cuda
