// SPDX-License-Identifier: BSD-3-Clause
#include "coverage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace puone::ptx {
namespace {

/// A file of zeros in memory; NULL if that is not possible.
uint64_t* mapped(const std::string& path, size_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<uint64_t*>(memory);
}

void write(const std::string& text, const std::string& path) {
  if (std::filesystem::exists(path)) return;
  const std::string fresh = path + "." + std::to_string(getpid());
  std::ofstream(fresh) << text;
  std::filesystem::rename(fresh, path);
}

} // namespace

Coverage::Coverage(const Module& module) : bytes_((module.lines() + 1) * sizeof(uint64_t)) {
  static std::atomic<unsigned> serial = 0;
  if (const char* const directory = std::getenv("PUONE_PTX_COVERAGE")) {
    const std::string path = std::string(directory) + "/" + module.id();
    write(module.text(), path + ".ptx");
    stem_ = path + "." + std::to_string(getpid()) + "." + std::to_string(++serial);
    counts_ = mapped(stem_ + ".counts", bytes_);
  }
  if (counts_ == nullptr) {
    own_.resize(module.lines() + 1);
    counts_ = own_.data();
  }
}

Coverage::~Coverage() {
  if (own_.empty()) munmap(counts_, bytes_);
}

void Coverage::noteEntry(const std::string& name) const {
  if (!stem_.empty()) std::ofstream(stem_ + ".entries", std::ios::app) << name << '\n';
}

void noteKernels(const std::vector<std::string>& names) {
  const char* const directory = std::getenv("PUONE_PTX_COVERAGE");
  if (directory == nullptr) return;
  std::string lines;
  for (const std::string& name : names) lines += name + '\n';
  write(lines, std::string(directory) + "/kernels");
}

} // namespace puone::ptx
