// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/common/image_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "drivers/common/error.h"
#include "drivers/common/file.h"
#include "drivers/common/image.h"
#include "drivers/common/sha256.h"

namespace puone {
namespace {

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string directoryOfEnvironment() {
  if (const char* chosen = variable("PUONE_MODULE_CACHE")) {
    return std::string_view(chosen) == "none" ? "" : chosen;
  }
  if (const char* caches = variable("XDG_CACHE_HOME"))
    return std::string(caches) + "/puone/modules";
  if (const char* home = variable("HOME")) return std::string(home) + "/.cache/puone/modules";
  return "";
}

bool isUsable(std::string_view driver, std::string_view target, std::string_view image) {
  try {
    return unpacked(driver, image).target == target;
  } catch (const Error&) { // it is compiled again, and replaced
    return false;
  }
}

} // namespace

ImageCache ImageCache::ofEnvironment() {
  return ImageCache(directoryOfEnvironment());
}

std::optional<std::string> ImageCache::find(const std::string& key) const {
  if (directory_.empty()) return std::nullopt;
  const File file(open((directory_ + "/" + key).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.descriptor(), &status) != 0 || status.st_uid != geteuid()) {
    return std::nullopt;
  }
  return file.read();
}

void ImageCache::keep(const std::string& key, std::string_view image) const noexcept {
  if (directory_.empty()) return;
  try {
    std::error_code ignored;
    std::filesystem::create_directories(directory_, ignored);
    std::string path = directory_ + "/.new-XXXXXX";
    const File file(mkostemp(path.data(), O_CLOEXEC));
    if (!file) return;
    // Nobody sees a part of it: it gets its name when it is complete.
    if (!file.write(image) || rename(path.c_str(), (directory_ + "/" + key).c_str()) != 0) {
      unlink(path.c_str());
    }
  } catch (const std::bad_alloc&) { // then it is not kept
  }
}

std::string imageIdentity(std::string_view compiler, const std::vector<std::string>& flags) {
  const Sha256::Digest& dialect = dialectDigest();
  Sha256 all;
  all.addPart(compiler).addPart({reinterpret_cast<const char*>(dialect.data()), dialect.size()});
  for (const std::string& flag : flags) all.addPart(flag);
  return all.hex();
}

std::string imageKey(std::string_view identity, bool contracts, std::string_view source) {
  return Sha256()
      .addPart(identity)
      .addPart(contracts ? "contracted" : "uncontracted")
      .addPart(source)
      .hex();
}

std::string cachedImage(
    std::string_view driver,
    std::string_view target,
    const std::string& key,
    const std::function<std::string()>& compile) {
  const ImageCache cache = ImageCache::ofEnvironment();
  std::optional<std::string> found = cache.find(key);
  if (found && isUsable(driver, target, *found)) return *std::move(found);
  const std::string code = compile();
  std::string image = packed(driver, {target, code});
  cache.keep(key, image);
  return image;
}

} // namespace puone
