// SPDX-License-Identifier: BSD-3-Clause
// A file in memory that processes of one user share. It has no name in the file system, so nothing
// is left behind when processes end, however they end: it exists as long as a process has it open
// or mapped. Linux.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace puone {

/// Owns a descriptor. The functions that fail say so in `errno`; none throws.
class SharedFile {
 public:
  /// Says to another process which file it is: a descriptor of a process, and what tells the file
  /// from later ones with the same two numbers.
  struct Name {
    int32_t process;
    int32_t descriptor;
    uint64_t inode;
    bool operator==(const Name&) const = default;
  };

  SharedFile() = default;
  ~SharedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  SharedFile(SharedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  SharedFile& operator=(SharedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /// A new file of `bytes` zeros, which take memory as they are written. `label` is for people.
  static SharedFile create(const char* label, size_t bytes) noexcept {
    SharedFile file(memfd_create(label, MFD_CLOEXEC));
    if (file && ftruncate(file.descriptor_, static_cast<off_t>(bytes)) != 0) return {};
    return file;
  }

  /// The file of this name. Fails with ESTALE if it is gone: its process has closed it, or ended.
  static SharedFile open(const Name& name) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", name.process, name.descriptor);
    SharedFile file(::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (file && file.inode() == name.inode) return file;
    if (file || errno == ENOENT || errno == ESRCH || errno == ENXIO) errno = ESTALE;
    return {};
  }

  explicit operator bool() const noexcept {
    return descriptor_ >= 0;
  }
  int descriptor() const noexcept {
    return descriptor_;
  }
  /// Valid while this process has the file open.
  Name name() const noexcept {
    return {getpid(), descriptor_, inode()};
  }
  /// The number of the file in its file system; 0 without a file.
  uint64_t inode() const noexcept {
    return status().st_ino;
  }
  size_t bytes() const noexcept {
    return static_cast<size_t>(status().st_size);
  }

 private:
  explicit SharedFile(int descriptor) noexcept : descriptor_(descriptor) {}

  struct stat status() const noexcept {
    struct stat result{};
    const int before = errno;
    if (fstat(descriptor_, &result) != 0) errno = before;
    return result;
  }

  int descriptor_ = -1;
};

} // namespace puone
