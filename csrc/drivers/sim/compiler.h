// SPDX-License-Identifier: BSD-3-Clause
// The machine's C++ compiler, which makes shared objects of the sources of modules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace puone::sim {

class Compiler {
 public:
  /// What CXX names, or else the first of c++, g++ and clang++ on PATH. It is asked for its version
  /// once in a process. Throws Error(UNSUPPORTED) if there is none.
  static const Compiler& ofMachine();

  /// Changes with the compiler.
  const std::string& identity() const {
    return identity_;
  }

  /// The shared object of a source in the dialect. `isa` is an instruction set (kernels/isa.h).
  /// Throws Error(INVALID_ARGUMENT) with all that the compiler says if the source does not compile.
  std::string compile(const std::string& source, const std::string& isa, bool contracts) const;

  /// Its flags for whatever it compiles.
  static std::vector<std::string> flags(const std::string& isa, bool contracts);

  /// Makes a precompiled header of a file. Returns whether it could.
  bool precompile(
      const std::string& header,
      const std::string& result,
      const std::string& isa,
      bool contracts) const;

 private:
  Compiler(std::vector<std::string> command, std::string identity)
      : command_(std::move(command)), identity_(std::move(identity)) {}
  static Compiler find(const char* chosen);
  std::string linked(const std::vector<std::string>& flags, const std::string& text) const;

  const std::vector<std::string> command_; // a program, and perhaps arguments
  const std::string identity_;
};

} // namespace puone::sim
