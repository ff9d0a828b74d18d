// SPDX-License-Identifier: BSD-3-Clause
// Owns a descriptor of a file, which is read and written as a whole.
#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

namespace puone {

class File {
 public:
  explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const noexcept {
    return descriptor_ >= 0;
  }
  int descriptor() const noexcept {
    return descriptor_;
  }

  /// Writes all bytes at the file's position. False, with errno set, if that is not possible.
  bool write(std::string_view bytes) const noexcept {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  /// All bytes from the start; nothing if they cannot be read.
  std::optional<std::string> read() const {
    std::string all;
    std::array<char, 1 << 16> part;
    for (;;) {
      const ssize_t count =
          pread(descriptor_, part.data(), part.size(), static_cast<off_t>(all.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return std::nullopt;
      if (count == 0) return all;
      all.append(part.data(), static_cast<size_t>(count));
    }
  }

 private:
  const int descriptor_;
};

} // namespace puone
