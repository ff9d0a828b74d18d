// SPDX-License-Identifier: BSD-3-Clause
#include "fatbin.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace puone::ptx {
namespace {

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint16_t kPtx = 1;
constexpr uint64_t kZstd = 0x8000;
constexpr uint64_t kOtherCompression = 0x1000 | 0x2000;

struct Header {
  uint32_t magic;
  uint16_t version, bytes;
  uint64_t size; // of all entries
};

struct Entry {
  uint16_t kind, version;
  uint32_t header;
  uint64_t size;
  uint32_t compressed;
  uint32_t unknown;
  uint16_t minor, major;
  uint32_t architecture;
  uint64_t name;
  uint64_t flags;
  uint64_t zero;
  uint64_t uncompressed;
};
static_assert(sizeof(Entry) == 64);

/// zstd has no stable place for its header; of its library only this function is needed.
size_t decompress(void* to, size_t capacity, const void* from, size_t bytes) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("the PTX needs libzstd.so.1 to be read");
  static const auto function = reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress"));
  return function(to, capacity, from, bytes);
}

std::string textOf(const Entry& entry) {
  const char* const data = reinterpret_cast<const char*>(&entry) + entry.header;
  std::string text;
  if ((entry.flags & kZstd) != 0) {
    text.resize(entry.uncompressed);
    const size_t bytes = decompress(text.data(), text.size(), data, entry.compressed);
    if (bytes != text.size()) throw std::runtime_error("the PTX cannot be decompressed");
  } else if ((entry.flags & kOtherCompression) != 0) {
    throw std::runtime_error("the PTX is not compressed by zstd");
  } else {
    text.assign(data, entry.size);
  }
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

} // namespace

std::string ptxOf(const void* fatbin) {
  const auto& header = *static_cast<const Header*>(fatbin);
  if (header.magic != kMagic) throw std::runtime_error("this is not a fat binary");
  const char* at = static_cast<const char*>(fatbin) + header.bytes;
  const char* const end = at + header.size;
  const Entry* newest = nullptr;
  while (at < end) {
    const auto* const entry = reinterpret_cast<const Entry*>(at);
    const bool is_newer = newest == nullptr || entry->architecture > newest->architecture;
    if (entry->kind == kPtx && is_newer) newest = entry;
    at += entry->header + entry->size;
  }
  if (newest == nullptr) throw std::runtime_error("the fat binary has no PTX");
  return textOf(*newest);
}

} // namespace puone::ptx
