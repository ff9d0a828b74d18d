// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/compiler.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>

#include "drivers/common/error.h"
#include "drivers/common/file.h"
#include "drivers/common/module_source.h"
#include "drivers/sim/precompiled_dialect.h"
#include "drivers/sim/program.h"

namespace puone::sim {
namespace {

constexpr const char* kUsual[] = {"c++", "g++", "clang++"};

std::vector<std::string> wordsOf(const char* text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> operator+(
    std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// A directory of its own, removed with what is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    path_ = (error ? "/tmp" : parent.string()) + "/puone-module-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      fail(PUONE_INTERNAL, "there can be no temporary directory %s", path_.c_str());
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const char* name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

} // namespace

const Compiler& Compiler::ofMachine() {
  static std::mutex mutex;
  // By what CXX says. Leaked: threads may compile while the process exits.
  static auto* const found = new std::map<std::string, Compiler>();
  const char* const value = std::getenv("CXX");
  const std::string chosen = value != nullptr ? value : "";
  {
    const std::lock_guard guard(mutex);
    const auto known = found->find(chosen);
    if (known != found->end()) return known->second;
  }
  Compiler asked = find(chosen.c_str()); // without the lock, which a fork may copy
  const std::lock_guard guard(mutex);
  return found->emplace(chosen, std::move(asked)).first->second;
}

Compiler Compiler::find(const char* chosen) {
  std::vector<std::vector<std::string>> candidates;
  if (const auto words = wordsOf(chosen); !words.empty()) {
    candidates = {words};
  } else {
    for (const char* name : kUsual) candidates.push_back({name});
  }
  for (const std::vector<std::string>& command : candidates) {
    const Ended ended = run(command + std::vector<std::string>{"--version"}, "");
    if (!ended.succeeded()) continue;
    std::string identity;
    for (const std::string& word : command) identity += word + ' ';
    return {command, identity + ended.output};
  }
  if (*chosen != '\0') {
    fail(PUONE_UNSUPPORTED, "CXX=%s is not a C++ compiler that can be run", chosen);
  }
  fail(
      PUONE_UNSUPPORTED,
      "there is no C++ compiler: CXX is not set, and none of c++, g++ and clang++ is on PATH");
}

std::vector<std::string> Compiler::flags(const std::string& isa, bool contracts) {
  // Those of the driver's own kernels.
  std::vector<std::string> flags = wordsOf(PUONE_KERNEL_OPTIONS);
  if (isa != "baseline") {
    flags = flags + std::vector<std::string>{"-march=x86-64-" + isa, "-mprefer-vector-width=512"};
  }
  if (!contracts) flags.push_back("-ffp-contract=off");
  return flags + std::vector<std::string>{
                     "-O3",
                     "-DPUONE_ISA=" + isa,
                     "-std=c++20",
                     "-w",
                     "-pipe",
                     "-fPIC",
                     "-fvisibility=hidden"};
}

bool Compiler::precompile(
    const std::string& header,
    const std::string& result,
    const std::string& isa,
    bool contracts) const {
  const std::vector<std::string> files{"-x", "c++-header", header, "-o", result};
  return run(command_ + flags(isa, contracts) + files, "").succeeded();
}

std::string Compiler::compile(
    const std::string& source, const std::string& isa, bool contracts) const {
  const std::vector<std::string> flags = Compiler::flags(isa, contracts);
  const std::string header = precompiledDialect(*this, isa, contracts);
  if (!header.empty()) {
    try {
      return linked(flags + std::vector<std::string>{"-include", header}, inNamespace(source));
    } catch (const Error&) { // If it is not the header's fault, it is said below.
    }
  }
  return linked(flags, inDialect(source));
}

/// The shared object of a text.
std::string Compiler::linked(const std::vector<std::string>& flags, const std::string& text) const {
  const TemporaryDirectory directory;
  const std::string object = directory / "module.so";
  const std::vector<std::string> files{"-shared", "-x", "c++", "-", "-o", object};
  const Ended ended = run(command_ + flags + files, text);
  if (!ended.started) {
    throw Error{PUONE_INTERNAL, command_[0] + " cannot be run: " + ended.output};
  }
  if (WIFSIGNALED(ended.status)) {
    fail(PUONE_INTERNAL, "%s ended by signal %d", command_[0].c_str(), WTERMSIG(ended.status));
  }
  if (ended.status != 0) throw Error{PUONE_INVALID_ARGUMENT, ended.output};
  const File made(open(object.c_str(), O_RDONLY | O_CLOEXEC));
  std::optional<std::string> bytes = made ? made.read() : std::nullopt;
  if (!bytes) fail(PUONE_INTERNAL, "%s left no result", command_[0].c_str());
  return *std::move(bytes);
}

} // namespace puone::sim
