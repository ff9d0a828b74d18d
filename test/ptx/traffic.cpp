// SPDX-License-Identifier: BSD-3-Clause
#include "traffic.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace puone::ptx {

void Traffic::end(Moved& to) {
  auto* const last = sectors_.begin() + count_;
  std::sort(sectors_.begin(), last);
  to.sectors += static_cast<uint64_t>(std::unique(sectors_.begin(), last) - sectors_.begin());
  to.bytes += bytes_;
  to.accesses += accesses_;
  bytes_ = accesses_ = 0;
}

bool Traffic::isWanted() {
  return std::getenv("PUONE_PTX_TRAFFIC") != nullptr;
}

void Traffic::write(const std::string& entry, uint64_t instructions) const {
  std::ofstream file(std::getenv("PUONE_PTX_TRAFFIC"), std::ios::app);
  file << entry;
  for (const Moved& moved : {loaded, stored}) {
    file << ' ' << moved.bytes << ' ' << moved.accesses << ' ' << moved.sectors;
  }
  file << ' ' << instructions << '\n';
}

} // namespace puone::ptx
