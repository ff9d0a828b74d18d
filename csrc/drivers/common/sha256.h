// SPDX-License-Identifier: BSD-3-Clause
// SHA-256 (FIPS 180-4): names images by their content, and recognises damaged ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace puone {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256& add(std::string_view bytes);
  /// add() of a part that cannot run into the next one: its length comes first.
  Sha256& addPart(std::string_view part);

  /// Of all that was added. Nothing may be added afterwards.
  Digest digest();
  /// The same as 64 hexadecimal digits.
  std::string hex();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_{
      0x6a09e667,
      0xbb67ae85,
      0x3c6ef372,
      0xa54ff53a,
      0x510e527f,
      0x9b05688c,
      0x1f83d9ab,
      0x5be0cd19};
  std::array<uint8_t, 64> rest_{}; // bytes that do not fill a block yet
  size_t rest_bytes_ = 0;
  uint64_t bytes_ = 0;
};

} // namespace puone
