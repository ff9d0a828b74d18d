// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/precompiled_dialect.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <mutex>

#include "drivers/common/image_cache.h"
#include "kernels/module_dialect.h"

namespace puone::sim {
namespace {

// What compilers look for beside a header.
constexpr const char* kSuffix = ".gch";

/// Code of other users does not run here.
bool isOurs(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && status.st_uid == geteuid();
}

/// Whether this is the second time in this process.
bool isSecond(const std::string& key) {
  static std::mutex mutex;
  // Leaked: threads may compile while the process exits.
  static auto* const times = new std::map<std::string, int>();
  const std::lock_guard guard(mutex);
  return ++(*times)[key] == 2;
}

} // namespace

std::string precompiledDialect(const Compiler& compiler, const std::string& isa, bool contracts) {
  const ImageCache cache = ImageCache::ofEnvironment();
  const std::string identity = imageIdentity(compiler.identity(), Compiler::flags(isa, contracts));
  const std::string name = "dialect-" + identity + ".h";
  const std::string header = cache.path(name);
  if (header.empty()) return "";
  const std::string result = header + kSuffix;
  if (isSecond(name) && !isOurs(result)) {
    cache.keep(name, kernels::moduleDialect());
    // Nobody sees a part of it: it gets its name when it is complete.
    const std::string made = cache.path(".new-" + std::to_string(getpid()) + "-" + identity);
    if (!compiler.precompile(header, made, isa, contracts) ||
        std::rename(made.c_str(), result.c_str()) != 0) {
      unlink(made.c_str());
    }
  }
  return isOurs(header) && isOurs(result) ? header : "";
}

} // namespace puone::sim
