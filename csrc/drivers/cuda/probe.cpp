// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/cuda/probe.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "drivers/common/error.h"
#include "drivers/cuda/status.h"

namespace puone::cuda {
namespace {

constexpr int kPatienceMs = 30'000;

/// In the environment of a process that is started to ask: the descriptor that the answer goes to.
constexpr const char* kAnswerTo = "PUONE_CUDA_PROBE";
/// A program that does nothing if the library is not loaded into it.
constexpr const char* kHost = "/bin/true";

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

[[noreturn]] void sendAnswer(int to) {
  const Answer answer = ask();
  const bool sent = write(to, &answer, sizeof answer) == sizeof answer;
  _exit(sent ? 0 : 1);
}

/// Runs when the library is loaded: in a process that was started to ask, and no other, it answers.
__attribute__((constructor)) void answerIfAsked() {
  if (const char* to = std::getenv(kAnswerTo)) sendAnswer(std::atoi(to));
}

/// The file that this code was loaded from; nullopt if it is linked into the program.
std::optional<std::string> ownLibrary() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&answerIfAsked), &self) == 0) return std::nullopt;
  char library[PATH_MAX];
  char program[PATH_MAX];
  if (realpath(self.dli_fname, library) == nullptr) return std::nullopt;
  if (realpath("/proc/self/exe", program) == nullptr || std::strcmp(library, program) == 0) {
    return std::nullopt;
  }
  return library;
}

/// A new process with `library` loaded into it, which answers to `to`. It inherits no lock that
/// another thread of this process holds, as a forked one would.
pid_t startWith(const std::string& library, int to) {
  const char* preloaded = std::getenv("LD_PRELOAD");
  std::vector<std::string> variables = {
      std::string("LD_PRELOAD=") + (preloaded != nullptr ? std::string(preloaded) + " " : "") +
          library,
      std::string(kAnswerTo) + "=" + std::to_string(to)};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  char name[] = "puone-probe";
  char* const arguments[] = {name, nullptr};
  pid_t child = -1;
  return posix_spawn(&child, kHost, nullptr, nullptr, arguments, environment.data()) == 0 ? child
                                                                                          : -1;
}

/// The answer of another process; nullopt if it could not be started or did not answer.
std::optional<Answer> askInChild() {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const std::optional<std::string> library = ownLibrary();
  const pid_t child = library ? startWith(*library, ends[1]) : fork();
  if (child == 0) sendAnswer(ends[1]);
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
  // A forked child of a process that already uses CUDA cannot use it; then ask in this process.
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
