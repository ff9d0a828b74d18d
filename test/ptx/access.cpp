// SPDX-License-Identifier: BSD-3-Clause
#include "access.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "floats.h"
#include "violation.h"
#include "warp.h"

namespace puone::ptx {
namespace {

using Bytes = std::array<std::byte, 32>;

std::byte* local(Warp& warp, uint32_t lane, uint64_t address, uint32_t bytes) {
  demandAligned(address, bytes);
  const uint64_t size = warp.block.grid.program.local_bytes;
  if (address > size || bytes > size - address) {
    throw Violation(
        Kind::kOutOfBounds,
        std::to_string(bytes) + " bytes at " + std::to_string(address) + " of local memory, of " +
            std::to_string(size));
  }
  return warp.local.data() + lane * size + address;
}

std::byte* parameter(Warp& warp, uint64_t address, uint32_t bytes, Access how) {
  if (writes(how)) throw Violation(Kind::kParameter, "of the kernel");
  demandAligned(address, bytes);
  const uint64_t size = warp.block.grid.program.parameter_bytes;
  if (address > size || bytes > size - address) {
    throw Violation(
        Kind::kOutOfBounds,
        std::to_string(bytes) + " bytes at " + std::to_string(address) + " of parameters of " +
            std::to_string(size));
  }
  return const_cast<std::byte*>(warp.block.grid.parameters) + address;
}

/// Checks the access; where the bytes are.
std::byte* locate(
    Warp& warp,
    const Instruction& in,
    uint32_t lane,
    uint64_t address,
    uint32_t bytes,
    Access how,
    const void* value) {
  Space space = in.space;
  const uint64_t window = address & 0xff00'0000'0000'0000;
  // The parameters of functions are local memory of the threads that call them.
  if (space == Space::kGeneric || (space == Space::kParameter && window == kLocalWindow)) {
    address &= ~window;
    switch (window) {
      case kLocalWindow:
        space = Space::kLocal;
        break;
      case kParameterWindow:
        space = Space::kParameter;
        break;
      case kSharedWindow:
        space = Space::kShared;
        break;
      default:
        address |= window;
        space = Space::kGlobal;
    }
  }
  switch (space) {
    case Space::kLocal:
      return local(warp, lane, address, bytes);
    case Space::kParameter:
      return parameter(warp, address, bytes, how);
    case Space::kShared:
      return warp.block.shared.access(warp.accessor(lane), address, bytes, how, value);
    default:
      return warp.block.grid.memory.access(
          warp.accessor(lane), address, bytes, how, in.used, value);
  }
}

/// Which bytes of local memory have values, from one on; NULL where the byte is in another space.
uint8_t* localWritten(Warp& warp, const std::byte* at) {
  const std::byte* const begin = warp.local.data();
  const bool is_local = at >= begin && at < begin + warp.local.size();
  return is_local ? warp.local_written.data() + (at - begin) : nullptr;
}

/// Counts what the instruction moves.
void note(const Warp& warp, const Instruction& in, uint32_t mask) {
  Traffic& traffic = *warp.block.grid.traffic;
  const bool stores = in.dests == 0;
  const uint32_t bytes = in.bytes * (stores ? in.operands - 1u : uint32_t{in.dests});
  traffic.begin();
  forLanes(mask, [&](uint32_t lane) {
    const uint64_t address = warp.get(in.source(0), lane) + static_cast<uint64_t>(in.offset);
    const bool elsewhere = in.space != Space::kGlobal && in.space != Space::kGeneric;
    if (!elsewhere && address < kSharedWindow) traffic.note(address, bytes);
  });
  traffic.end(stores ? traffic.stored : traffic.loaded);
}

/// Runs `body(lane, address)` for the lanes; a violation names the lane.
template <class Body>
void atAddresses(Warp& warp, const Instruction& in, uint32_t mask, const Body& body) {
  if (warp.block.grid.traffic != nullptr) note(warp, in, mask);
  warp.demand(in.source(0), mask);
  forNamedLanes(mask, [&](uint32_t lane) {
    body(lane, warp.get(in.source(0), lane) + static_cast<uint64_t>(in.offset));
  });
}

uint64_t element(const std::byte* from, const Instruction& in) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, in.bytes);
  if (in.is_signed && in.bytes < 8 && (bits >> (8 * in.bytes - 1) & 1) != 0) {
    bits |= ~uint64_t{0} << (8 * in.bytes);
  }
  return bits;
}

void load(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t bytes = in.bytes * uint32_t{in.dests};
  const Access how = in.strong ? Access::kStrongRead : Access::kRead;
  Bytes found;
  atAddresses(warp, in, mask, [&](uint32_t lane, uint64_t address) {
    const std::byte* const at = locate(warp, in, lane, address, bytes, how, nullptr);
    const uint8_t* const written = localWritten(warp, at);
    std::memcpy(found.data(), at, bytes);
    for (uint32_t i = 0; i < in.dests; ++i) {
      const size_t begin = size_t{i} * in.bytes;
      warp.set(in.operand[i], lane, element(found.data() + begin, in));
      const bool known = written == nullptr ||
                         std::all_of(written + begin, written + begin + in.bytes, std::identity{});
      warp.define(in.operand[i], lane, known);
    }
  });
}

void store(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint32_t elements = in.operands - 1u;
  const uint32_t bytes = in.bytes * elements;
  const Access how = in.strong ? Access::kStrongWrite : Access::kWrite;
  Bytes value;
  atAddresses(warp, in, mask, [&](uint32_t lane, uint64_t address) {
    for (uint32_t i = 0; i < elements; ++i) {
      const uint64_t bits = warp.get(in.source(1 + i), lane);
      std::memcpy(value.data() + size_t{i} * in.bytes, &bits, in.bytes);
    }
    std::byte* const at = locate(warp, in, lane, address, bytes, how, value.data());
    std::memcpy(at, value.data(), bytes);
    uint8_t* const written = localWritten(warp, at);
    for (uint32_t i = 0; i < elements; ++i) {
      const Operand& from = in.source(1 + i);
      if (written == nullptr) {
        warp.demand(from, 1u << lane);
      } else {
        std::fill_n(written + size_t{i} * in.bytes, in.bytes, warp.isDefined(from, lane));
      }
    }
  });
}

// ---- atomic operations ----

using Update = uint64_t (*)(uint64_t old, uint64_t a, uint64_t b);

template <class T>
T as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
std::optional<Update> updateOf(const std::string& name) {
  if (name == "add") {
    return [](uint64_t old, uint64_t a, uint64_t) {
      if constexpr (std::is_floating_point_v<T>) return bitsOf(canonical(as<T>(old) + as<T>(a)));
      return bitsOf(static_cast<T>(old + a));
    };
  }
  if constexpr (std::is_integral_v<T>) {
    if (name == "min") {
      return
          [](uint64_t old, uint64_t a, uint64_t) { return bitsOf(std::min(as<T>(old), as<T>(a))); };
    }
    if (name == "max") {
      return
          [](uint64_t old, uint64_t a, uint64_t) { return bitsOf(std::max(as<T>(old), as<T>(a))); };
    }
    if (name == "and") return [](uint64_t old, uint64_t a, uint64_t) { return old & a; };
    if (name == "or") return [](uint64_t old, uint64_t a, uint64_t) { return old | a; };
    if (name == "xor") return [](uint64_t old, uint64_t a, uint64_t) { return old ^ a; };
    if (name == "exch") return [](uint64_t, uint64_t a, uint64_t) { return bitsOf(as<T>(a)); };
    if (name == "cas") {
      return [](uint64_t old, uint64_t a, uint64_t b) {
        return as<T>(old) == as<T>(a) ? bitsOf(as<T>(b)) : old;
      };
    }
    if (name == "inc") {
      return [](uint64_t old, uint64_t a, uint64_t) { return old >= a ? 0 : old + 1; };
    }
    if (name == "dec") {
      return [](uint64_t old, uint64_t a, uint64_t) { return old == 0 || old > a ? a : old - 1; };
    }
  }
  return std::nullopt;
}

std::optional<Update> updateOf(const std::string& name, const std::string& type) {
  if (type == "s32") return updateOf<int32_t>(name);
  if (type == "u32" || type == "b32") return updateOf<uint32_t>(name);
  if (type == "s64") return updateOf<int64_t>(name);
  if (type == "u64" || type == "b64") return updateOf<uint64_t>(name);
  if (type == "b16") return updateOf<uint16_t>(name);
  if (type == "f32") return updateOf<float>(name);
  if (type == "f64") return updateOf<double>(name);
  return std::nullopt;
}

void update(Warp& warp, const Instruction& in, uint32_t mask) {
  const auto function = reinterpret_cast<Update>(in.option);
  for (uint32_t i = 1; i + in.dests < in.operands; ++i) warp.demand(in.source(i), mask);
  atAddresses(warp, in, mask, [&](uint32_t lane, uint64_t address) {
    std::byte* const at = locate(warp, in, lane, address, in.bytes, Access::kAtomic, nullptr);
    uint64_t old = 0;
    std::memcpy(&old, at, in.bytes);
    const uint64_t a = warp.get(in.source(1), lane);
    const uint64_t b = in.operands - in.dests > 2 ? warp.get(in.source(2), lane) : 0;
    const uint64_t value = function(old, a, b);
    std::memcpy(at, &value, in.bytes);
    if (in.dests == 0) return;
    warp.set(in.operand[0], lane, old);
    warp.define(in.operand[0], lane, true);
  });
}

// ---- ldmatrix ----

/// Matrices of 8 rows of 16 bytes: lane 8m + r has the address of row r of matrix m, and lane 4r +
/// c gets word c of row r; of a transposed one elements 2c and 2c + 1 of column r, of 16 bits each.
template <bool kTransposed>
void loadMatrices(Warp& warp, const Instruction& in, uint32_t mask) {
  constexpr uint32_t kRowBytes = 16;
  std::array<std::array<uint16_t, 8>, 32> rows{};
  const auto addressing = static_cast<uint32_t>((uint64_t{1} << 8 * in.dests) - 1);
  atAddresses(warp, in, mask & addressing, [&](uint32_t lane, uint64_t address) {
    const auto* at = locate(warp, in, lane, address, kRowBytes, Access::kRead, nullptr);
    std::memcpy(rows[lane].data(), at, kRowBytes);
  });
  for (uint32_t m = 0; m < in.dests; ++m) {
    const auto* const matrix = &rows[size_t{8} * m];
    forLanes(mask, [&](uint32_t lane) {
      const uint32_t r = lane / 4, c = lane % 4 * 2;
      const uint32_t low = kTransposed ? matrix[c][r] : matrix[r][c];
      const uint32_t high = kTransposed ? matrix[c + 1][r] : matrix[r][c + 1];
      warp.lanes<uint32_t>(in.operand[m]).set(lane, low | high << 16);
      warp.define(in.operand[m], lane, true);
    });
  }
}

struct Matrices {
  uint32_t count;
  Run run;
};

/// ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].shared[::cta].b16
const std::map<std::string, Matrices>& matrixLoads() {
  static const std::map<std::string, Matrices> all = [] {
    std::map<std::string, Matrices> table;
    for (const uint32_t count : {1u, 2u, 4u}) {
      const std::string begin = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count);
      for (const char* const end : {".shared.b16", ".shared::cta.b16"}) {
        table[begin + end] = {count, loadMatrices<false>};
        table[begin + ".trans" + end] = {count, loadMatrices<true>};
      }
    }
    return table;
  }();
  return all;
}

bool decodeMatrices(const std::string& word, Instruction& in, AccessName& name) {
  const auto found = matrixLoads().find(word);
  if (found == matrixLoads().end()) return false;
  name = {AccessName::Verb::kLoad, found->second.count};
  in.run = found->second.run;
  in.flow = Flow::kExchange;
  in.known = Known::kItself;
  in.space = Space::kShared;
  in.bytes = 4;
  return true;
}

std::vector<std::string> parts(const std::string& word) {
  std::vector<std::string> all;
  for (size_t begin = 0; begin <= word.size();) {
    const size_t end = std::min(word.find('.', begin), word.size());
    all.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

bool setSpace(const std::string& part, Instruction& in) {
  if (part == "global") {
    in.space = Space::kGlobal;
  } else if (part == "shared" || part == "shared::cta") {
    in.space = Space::kShared;
  } else if (part == "local") {
    in.space = Space::kLocal;
  } else if (part == "param" || part == "param::entry" || part == "param::func") {
    in.space = Space::kParameter;
  } else if (part == "const") {
    in.space = Space::kGlobal;
  } else {
    return false;
  }
  return true;
}

template <size_t n>
bool isOneOf(const std::string& part, const char* const (&all)[n]) {
  return std::ranges::find(all, part) != std::end(all);
}

/// Parts that say nothing to the executor: which caches, which threads see it.
bool isHint(const std::string& part) {
  constexpr const char* kHints[] = {
      "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak", "cta", "cluster", "gpu", "sys"};
  return isOneOf(part, kHints) || part.starts_with("L1::") || part.starts_with("L2::");
}

bool isStrong(const std::string& part) {
  constexpr const char* kStrong[] = {
      "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"};
  return isOneOf(part, kStrong);
}

} // namespace

bool decodeAccess(const std::string& word, Instruction& in, AccessName& name) {
  if (decodeMatrices(word, in, name)) return true;
  const std::vector<std::string> words = parts(word);
  using Verb = AccessName::Verb;
  if (words[0] == "ld") {
    name.verb = Verb::kLoad;
    in.run = load;
  } else if (words[0] == "st") {
    name.verb = Verb::kStore;
    in.run = store;
  } else if (words[0] == "atom" || words[0] == "red") {
    name.verb = words[0] == "atom" ? Verb::kAtomic : Verb::kReduce;
    in.run = update;
  } else {
    return false;
  }
  in.known = Known::kItself;
  const bool atomic = in.run == update;
  const std::string& type = words.back();
  in.bytes = static_cast<uint8_t>(typeBytes(type));
  in.is_signed = type[0] == 's';
  std::string operation;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& part = words[i];
    if (setSpace(part, in) || isHint(part)) continue;
    if (isStrong(part)) {
      in.strong = true;
    } else if (!atomic && (part == "v2" || part == "v4" || part == "v8")) {
      name.elements = static_cast<uint32_t>(part[1] - '0');
    } else if (atomic && operation.empty()) {
      operation = part;
    } else {
      throw Violation(Kind::kUnknown, word);
    }
  }
  if (name.elements * in.bytes > 16) throw Violation(Kind::kUnknown, word);
  if (atomic) {
    const auto function = updateOf(operation, type);
    if (!function) throw Violation(Kind::kUnknown, word);
    in.option = reinterpret_cast<uint64_t>(*function);
    name.operands = operation == "cas" ? 2 : 1;
  }
  return true;
}

} // namespace puone::ptx
