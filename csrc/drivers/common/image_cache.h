// SPDX-License-Identifier: BSD-3-Clause
// Images of modules on disk, by content: a file for each, named by the digest of all that decides
// about it. Any number of processes may use one cache: a file appears as a whole, and never
// changes. Where the directory cannot be written, or is full, nothing is kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace puone {

class ImageCache {
 public:
  /// In PUONE_MODULE_CACHE ("none": no cache), else puone/modules in XDG_CACHE_HOME or ~/.cache.
  static ImageCache ofEnvironment();

  /// The file of this key, a name of letters and digits. Those of other users are ignored, since
  /// the code in it runs here. It may be damaged, as any file: unpacked() (image.h) detects that.
  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, std::string_view image) const noexcept;

  /// Where the file of this key is or would be; empty without a cache.
  std::string path(const std::string& key) const {
    return directory_.empty() ? "" : directory_ + "/" + key;
  }

 private:
  explicit ImageCache(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_; // empty: no cache
};

/// Hexadecimal digits that change with whatever decides about an image besides its source and
/// options: the compiler and its version, its flags, the dialect.
std::string imageIdentity(std::string_view compiler, const std::vector<std::string>& flags);

/// The key of an image in a cache. `contracts`: whether a * b + c may be rounded once.
std::string imageKey(std::string_view identity, bool contracts, std::string_view source);

/// The packed image (image.h) for this target that the environment's cache has under `key`; else of
/// the code that `compile` makes, which the cache then keeps.
std::string cachedImage(
    std::string_view driver,
    std::string_view target,
    const std::string& key,
    const std::function<std::string()>& compile);

} // namespace puone
