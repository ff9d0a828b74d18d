// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "drivers/common/error.h"
#include "drivers/common/file.h"

namespace puone::sim {
namespace {

[[noreturn]] void failed(const char* call) {
  fail(PUONE_INTERNAL, "%s: %s", call, std::strerror(errno));
}

/// The streams of a program that is started.
class Streams {
 public:
  Streams(int input, int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
  }
  ~Streams() {
    posix_spawn_file_actions_destroy(&actions_);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  const posix_spawn_file_actions_t* get() const {
    return &actions_;
  }

 private:
  posix_spawn_file_actions_t actions_;
};

/// This process's, but for libraries that are preloaded into it, which are not meant for others.
std::vector<char*> inheritedEnvironment() {
  std::vector<char*> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

} // namespace

Ended run(const std::vector<std::string>& command, std::string_view input) {
  // Files in memory rather than pipes: neither side ever waits for the other.
  const File in(memfd_create("puone-input", MFD_CLOEXEC));
  const File out(memfd_create("puone-output", MFD_CLOEXEC));
  if (!in || !out) failed("memfd_create");
  if (!in.write(input) || lseek(in.descriptor(), 0, SEEK_SET) != 0) failed("write");

  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> variables = inheritedEnvironment();
  const Streams streams(in.descriptor(), out.descriptor());
  pid_t process = -1;
  const int error = posix_spawnp(
      &process, arguments[0], streams.get(), nullptr, arguments.data(), variables.data());
  if (error != 0) return {false, error, std::strerror(error)};
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) failed("waitpid");
  }
  std::optional<std::string> text = out.read();
  if (!text) failed("pread");
  return {true, status, *std::move(text)};
}

} // namespace puone::sim
