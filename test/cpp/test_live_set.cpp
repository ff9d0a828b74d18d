// SPDX-License-Identifier: BSD-3-Clause
// The validation layer's set of live handles: alone, grown, worn, and amid threads.
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "check.h"
#include "hal/live_set.h"

using namespace puone;

namespace {

const void* handle(uintptr_t number) {
  return reinterpret_cast<const void*>(number << 4);
}

} // namespace

TEST(a_handle_is_live_from_its_insertion_to_its_end) {
  LiveSet set;
  CHECK(!set.get(handle(7)));
  CHECK(!set.get(nullptr));
  set.insert(handle(7), 42);
  CHECK(set.get(handle(7)) == std::optional<uint64_t>(42));
  set.add(handle(7), 1u << 8);
  CHECK(set.get(handle(7)) == std::optional<uint64_t>(42 | 1u << 8));
  CHECK(!set.get(handle(8)));
  CHECK(set.erase(handle(7)));
  CHECK(!set.erase(handle(7)));
  CHECK(!set.erase(nullptr));
  CHECK(!set.get(handle(7)));
}

TEST(a_set_keeps_what_it_holds_while_it_grows_and_wears) {
  LiveSet set;
  constexpr uintptr_t kept = 2000;
  for (uintptr_t i = 1; i <= kept; ++i) set.insert(handle(i), i);
  // Many more handles than the table has places, one after the other.
  for (uintptr_t i = kept + 1; i <= 100 * kept; ++i) {
    set.insert(handle(i), i);
    CHECK(set.erase(handle(i)));
  }
  CHECK_EQ(set.size(), size_t{kept});
  for (uintptr_t i = 1; i <= kept; ++i) {
    if (!CHECK_EQ(set.get(handle(i)).value_or(0), uint64_t{i})) break;
  }
  CHECK(!set.get(handle(kept + 1)));
  set.clear();
  CHECK_EQ(set.size(), size_t{0});
  CHECK(!set.get(handle(1)));
}

TEST(readers_find_live_handles_while_others_come_and_go) {
  LiveSet set;
  constexpr uintptr_t kept = 100;
  for (uintptr_t i = 1; i <= kept; ++i) set.insert(handle(i), i);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        for (uintptr_t i = 1; i <= kept; ++i) {
          if (set.get(handle(i)) != std::optional<uint64_t>(i)) ++wrong;
        }
      }
    });
  }
  for (uintptr_t i = kept + 1; i <= 50'000; ++i) {
    set.insert(handle(i), i);
    if (i % 3 != 0) set.erase(handle(i)); // grows and wears at once
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK_EQ(wrong.load(), 0);
}
