// SPDX-License-Identifier: BSD-3-Clause
#include "sim.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace puone::test {

ScopedEnvironment::ScopedEnvironment(Environment variables) : variables_(variables) {
  for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
}

ScopedEnvironment::~ScopedEnvironment() {
  for (const auto& [name, value] : variables_) unsetenv(name.c_str());
}

const puone_fault_api& fault() {
  const void* found = nullptr;
  if (hal().get_extension(PUONE_FAULT_EXTENSION, PUONE_FAULT_VERSION, &found) != PUONE_OK) {
    std::abort();
  }
  return *static_cast<const puone_fault_api*>(found);
}

Sim::Sim(Environment variables) : environment_(variables) {
  OK(hal().init());
}

Sim::~Sim() {
  OK(hal().shutdown());
}

puone_stream Sim::stream(int32_t device, int32_t priority) {
  puone_stream created = nullptr;
  OK(hal().stream_create(device, priority, &created));
  return created;
}

puone_event Sim::event(uint32_t flags, int32_t device) {
  puone_event created = nullptr;
  OK(hal().event_create(device, flags, &created));
  return created;
}

void* Sim::allocate(size_t bytes, int32_t device) {
  void* block = nullptr;
  OK(hal().malloc(device, bytes, &block));
  REQUIRE(block != nullptr);
  return block;
}

void Sim::write(void* device, const void* host, size_t bytes, puone_stream stream) {
  OK(hal().memcpy_async(device, host, bytes, PUONE_MEMCPY_HOST_TO_DEVICE, stream));
}

void Sim::read(void* host, const void* device, size_t bytes, puone_stream stream) {
  OK(hal().memcpy_async(host, device, bytes, PUONE_MEMCPY_DEVICE_TO_HOST, stream));
}

void Sim::move(void* to, const void* from, size_t bytes, puone_stream stream) {
  OK(hal().memcpy_async(to, from, bytes, PUONE_MEMCPY_DEVICE_TO_DEVICE, stream));
}

void Sim::launch(const char* kernel, const void* args, size_t bytes, puone_stream stream) {
  puone_kernel handle = nullptr;
  OK(hal().kernel_find(kernel, nullptr, &handle));
  OK(hal().kernel_launch(handle, args, bytes, stream, nullptr));
}

void Sim::delay(puone_stream stream, uint64_t ns) {
  const puone_delay_args args{ns};
  launch("delay", &args, sizeof args, stream);
}

Gate::Gate(puone_stream stream) : state_(new State) {
  OK(hal().stream_host_func(
      stream,
      [](void* data) {
        auto* state = static_cast<State*>(data);
        {
          std::unique_lock lock(state->mutex);
          state->changed.wait(lock, [=] { return state->open; });
        }
        delete state;
      },
      state_));
}

void Gate::open() {
  static std::mutex closing; // open() may come from any thread, and again from the destructor
  const std::lock_guard once(closing);
  if (state_ == nullptr) return;
  State* state = std::exchange(state_, nullptr);
  const std::lock_guard guard(state->mutex);
  state->open = true;
  state->changed.notify_all();
}

Outcome runAgain(const std::vector<std::string>& arguments) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> argv{const_cast<char*>("driver_tests")};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    alarm(20);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome{};
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    outcome.standard_error.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  REQUIRE(waitpid(child, &outcome.status, 0) == child);
  return outcome;
}

int runForked(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

} // namespace puone::test
