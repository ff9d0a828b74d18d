// SPDX-License-Identifier: BSD-3-Clause
// cp.async (PTX ISA 9.7.9.25.3): a thread has bytes of global memory copied to shared memory, and
// goes on. They are there when it has waited for them; until then nobody may touch where they go
// to, or change them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace puone::ptx {

struct Instruction;

/// A thread's copies that are under way, the oldest first.
struct Copies {
  struct Copy {
    uint64_t to, from;                // in shared and global memory
    uint32_t bytes;                   // in all
    uint32_t read;                    // of them; zeros take the place of the others
    uint32_t group;                   // that cp.async.commit_group makes
    std::array<std::byte, 16> source; // what is read
  };
  std::vector<Copy> under_way;
  uint32_t group = 0; // that the next copy belongs to
};

/// Whether the name is that of a cp.async of bytes; fills `in` as far as the name says. Throws
/// Violation(kUnknown) for a name of this kind that is not known.
bool decodeCopy(const std::string& word, Instruction& in);

} // namespace puone::ptx
