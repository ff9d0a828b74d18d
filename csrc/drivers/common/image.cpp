// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/common/image.h"

#include <algorithm>
#include <cstring>

#include "drivers/common/error.h"
#include "kernels/module_dialect.h"

namespace puone {
namespace {

constexpr char kMagic[8] = {'p', 'u', 'o', 'n', 'e', 'm', 'o', 'd'};

/// In front of the code.
struct Header {
  char magic[sizeof kMagic];
  char driver[24]; // NUL at the end, as target
  char target[64];
  Sha256::Digest dialect;
  Sha256::Digest contents; // of target and code
};

Sha256::Digest contentsOf(const Image& image) {
  return Sha256().addPart(image.target).addPart(image.code).digest();
}

template <size_t kSize>
std::string_view textOf(const char (&field)[kSize]) {
  return {field, strnlen(field, kSize)};
}

template <size_t kSize>
void setText(char (&field)[kSize], std::string_view text) {
  if (text.size() >= kSize) {
    fail(PUONE_INTERNAL, "%.*s is too long a name", static_cast<int>(text.size()), text.data());
  }
  std::copy(text.begin(), text.end(), field);
}

[[noreturn]] void refuse(const char* why) {
  fail(PUONE_INVALID_ARGUMENT, "the image %s", why);
}

} // namespace

const Sha256::Digest& dialectDigest() {
  static const Sha256::Digest digest = Sha256().add(kernels::moduleDialect()).digest();
  return digest;
}

std::string packed(std::string_view driver, const Image& image) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  setText(header.driver, driver);
  setText(header.target, image.target);
  header.dialect = dialectDigest();
  header.contents = contentsOf(image);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(image.code);
}

Image unpacked(std::string_view driver, std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof header) refuse("is incomplete");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) refuse("is not one of a module");
  if (textOf(header.driver) != driver) refuse("was compiled by another driver");
  if (header.dialect != dialectDigest()) refuse("was compiled by another version of the driver");
  // The view must be into the caller's bytes.
  const char* const target = bytes.data() + offsetof(Header, target);
  const Image image{{target, strnlen(target, sizeof header.target)}, bytes.substr(sizeof header)};
  if (header.contents != contentsOf(image)) refuse("is damaged or incomplete");
  return image;
}

} // namespace puone
