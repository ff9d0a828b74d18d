// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>

#include "sim.h"

using namespace puone::test;

namespace {

uint64_t freeBytes(int32_t device) {
  uint64_t free_bytes = 0;
  uint64_t total = 0;
  OK(hal().device_memory_info(device, &free_bytes, &total));
  return free_bytes;
}

} // namespace

TEST(allocations_are_aligned_and_accounted_and_come_back) {
  Sim sim({{"PUONE_SIM_MEMORY", "256M"}});
  const uint64_t before = freeBytes(1);
  std::vector<void*> blocks;
  for (const size_t bytes : {size_t{1}, size_t{255}, size_t{4096}, size_t{4097}, size_t{5} << 20}) {
    blocks.push_back(sim.memory<char>(bytes, 1));
    CHECK_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % 256, uintptr_t{0});
    puone_pointer_attributes where{};
    where.struct_size = sizeof where;
    OK(hal().pointer_attributes(static_cast<char*>(blocks.back()) + bytes - 1, &where));
    CHECK_EQ(where.kind, PUONE_MEMORY_DEVICE);
    CHECK_EQ(where.device, 1);
    CHECK(where.base == blocks.back());
    CHECK_EQ(where.size, bytes);
    OK(hal().pointer_attributes(static_cast<char*>(blocks.back()) + bytes, &where));
    CHECK_EQ(where.kind, PUONE_MEMORY_UNREGISTERED);
  }
  CHECK(freeBytes(1) < before);
  CHECK_EQ(freeBytes(0), before);
  for (void* block : blocks) OK(hal().free(block));
  CHECK_EQ(freeBytes(1), before);
}

TEST(allocating_more_than_there_is_fails_and_the_device_stays_usable) {
  Sim sim({{"PUONE_SIM_MEMORY", "16M"}});
  void* block = nullptr;
  STATUS(hal().malloc(0, size_t{17} << 20, &block), PUONE_OUT_OF_MEMORY);
  CHECK(errorSays("16.00 MiB free of 16.00 MiB"));
  STATUS(hal().malloc(0, SIZE_MAX, &block), PUONE_OUT_OF_MEMORY);
  STATUS(hal().malloc(0, size_t{1} << 46, &block), PUONE_OUT_OF_MEMORY);
  STATUS(hal().malloc(0, 0, &block), PUONE_INVALID_ARGUMENT);
  CHECK(block == nullptr);
  char* all = sim.memory<char>(size_t{16} << 20);
  STATUS(hal().malloc(0, 1, &block), PUONE_OUT_OF_MEMORY);
  OK(hal().free(all));
  OK(hal().malloc(0, size_t{16} << 20, &block));
}

TEST(random_allocation_and_free_never_hands_out_overlapping_blocks) {
  Sim sim({{"PUONE_SIM_MEMORY", "64M"}});
  std::mt19937 random(1);
  std::vector<std::pair<char*, size_t>> live;
  const uint64_t before = freeBytes(0);
  for (int step = 0; step < 2000; ++step) {
    if (live.size() > 50 || (!live.empty() && random() % 3 == 0)) {
      const size_t victim = random() % live.size();
      OK(hal().free(live[victim].first));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
    } else {
      const size_t bytes = 1 + random() % (1 << (8 + random() % 12));
      live.emplace_back(sim.memory<char>(bytes), bytes);
    }
  }
  std::sort(live.begin(), live.end());
  for (size_t i = 1; i < live.size(); ++i) {
    CHECK(live[i - 1].first + live[i - 1].second <= live[i].first);
  }
  for (const auto& [block, bytes] : live) OK(hal().free(block));
  CHECK_EQ(freeBytes(0), before);
}

TEST(allocation_and_free_leave_no_mappings_behind) {
  Sim sim;
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  const puone_stream stream = sim.stream();
  long before = 0;
  for (int i = 0; i < 300; ++i) {
    auto* small = sim.memory<unsigned char>(100);
    auto* large = sim.memory<unsigned char>(size_t{2} << 20);
    OK(hal().memset_async(small, 1, 100, stream));
    OK(hal().memset_async(large, 1, 100, stream));
    OK(hal().free(small));
    OK(hal().free(large));
    if (i == 10) before = mappings();
  }
  CHECK(mappings() < before + 50);
}

TEST(free_refuses_what_is_not_a_live_block_start) {
  Sim sim;
  char* block = sim.memory<char>(1024);
  OK(hal().free(nullptr));
  STATUS(hal().free(block + 256), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("inside a block"));
  int local = 0;
  STATUS(hal().free(&local), PUONE_INVALID_ARGUMENT);
  OK(hal().free(block));
  STATUS(hal().free(block), PUONE_INVALID_ARGUMENT);
  STATUS(hal().host_free(&local), PUONE_INVALID_ARGUMENT);
}

TEST(free_waits_for_the_work_of_its_device) {
  Sim sim;
  const puone_stream stream = sim.stream(1);
  constexpr size_t count = 1000;
  int* from = sim.memory<int>(count, 1);
  int* to = sim.memory<int>(count, 1);
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  sim.write(from, values.data(), count * sizeof(int), stream);
  sim.delay(stream, 20'000'000);
  sim.move(to, from, count * sizeof(int), stream);
  OK(hal().free(from)); // the copy still needs it
  STATUS(hal().stream_query(stream), PUONE_OK);
  CHECK_EQ(sim.value(to + 999, stream), 999);
}

TEST(a_copy_is_checked_against_the_kind_and_the_blocks) {
  Sim sim;
  const puone_stream stream = sim.stream();
  char* a = sim.memory<char>(1000);
  char* b = sim.memory<char>(1000, 1);
  char host[1000] = {};
  const auto copy = [&](void* to, const void* from, size_t bytes, puone_memcpy_kind kind) {
    return hal().memcpy_async(to, from, bytes, kind, stream);
  };
  STATUS(copy(a, host, 1001, PUONE_MEMCPY_HOST_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("over the end of its block"));
  STATUS(copy(a + 1, host, 1000, PUONE_MEMCPY_HOST_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  STATUS(copy(a - 1, host, 10, PUONE_MEMCPY_HOST_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  STATUS(copy(host, a, 10, PUONE_MEMCPY_HOST_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  STATUS(copy(a, host, 10, PUONE_MEMCPY_HOST_TO_HOST), PUONE_INVALID_ARGUMENT);
  STATUS(copy(a, b, 10, PUONE_MEMCPY_DEVICE_TO_HOST), PUONE_INVALID_ARGUMENT);
  STATUS(copy(a, a + 5, 10, PUONE_MEMCPY_DEVICE_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("overlap"));
  STATUS(copy(a, host, SIZE_MAX, PUONE_MEMCPY_HOST_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  STATUS(copy(a, host, 10, static_cast<puone_memcpy_kind>(7)), PUONE_INVALID_ARGUMENT);
  STATUS(hal().memset_async(host, 0, 10, stream), PUONE_INVALID_ARGUMENT);
  OK(copy(nullptr, nullptr, 0, PUONE_MEMCPY_DEVICE_TO_DEVICE));
  OK(hal().memset_async(nullptr, 0, 0, stream));
  OK(hal().free(b));
  STATUS(copy(a, b, 10, PUONE_MEMCPY_DEVICE_TO_DEVICE), PUONE_INVALID_ARGUMENT);
  OK(hal().stream_synchronize(stream));
}

TEST(copies_of_all_kinds_and_sizes_move_the_bytes) {
  Sim sim;
  const puone_stream stream = sim.stream();
  for (const size_t bytes : {size_t{1}, size_t{77}, size_t{4096}, size_t{3} << 20}) {
    std::vector<unsigned char> out(bytes);
    std::vector<unsigned char> in(bytes);
    std::mt19937 random(static_cast<unsigned>(bytes));
    for (auto& byte : out) byte = static_cast<unsigned char>(random());
    auto* here = sim.memory<unsigned char>(bytes, 0);
    auto* there = sim.memory<unsigned char>(bytes, 1);
    sim.write(here, out.data(), bytes, stream);
    sim.move(there, here, bytes, stream); // peer copy
    OK(hal().memset_async(here, 0x1ab, bytes, stream));
    sim.read(in.data(), there, bytes, stream);
    OK(hal().stream_synchronize(stream));
    CHECK(in == out);
    CHECK_EQ(sim.value(here + bytes - 1, stream), 0xab);
  }
  char a[4] = "abc";
  char b[4] = "";
  OK(hal().memcpy_async(b, a, 4, PUONE_MEMCPY_HOST_TO_HOST, stream));
  OK(hal().stream_synchronize(stream));
  CHECK(std::strcmp(b, "abc") == 0);
}

TEST(pinned_memory_is_known_by_interior_pointers_and_usable_by_kernels) {
  Sim sim;
  const puone_stream stream = sim.stream();
  void* pinned = nullptr;
  STATUS(hal().host_malloc(0, &pinned), PUONE_INVALID_ARGUMENT);
  STATUS(hal().host_malloc(SIZE_MAX, &pinned), PUONE_OUT_OF_MEMORY);
  OK(hal().host_malloc(1000, &pinned));
  CHECK_EQ(reinterpret_cast<uintptr_t>(pinned) % 64, uintptr_t{0});
  puone_pointer_attributes where{};
  where.struct_size = sizeof where;
  OK(hal().pointer_attributes(static_cast<char*>(pinned) + 999, &where));
  CHECK_EQ(where.kind, PUONE_MEMORY_HOST);
  CHECK_EQ(where.device, -1);
  CHECK(where.base == pinned);
  CHECK_EQ(where.size, size_t{1000});
  int local = 0;
  OK(hal().pointer_attributes(&local, &where));
  CHECK_EQ(where.kind, PUONE_MEMORY_UNREGISTERED);

  puone_fill_args fill{};
  fill.ndim = 1;
  fill.element_size = 1;
  fill.sizes[0] = 1000;
  fill.out.data = pinned;
  fill.out.strides[0] = 1;
  fill.value[0] = 42;
  sim.launch("fill", &fill, sizeof fill, stream);
  OK(hal().stream_synchronize(stream));
  CHECK_EQ(static_cast<int>(static_cast<char*>(pinned)[999]), 42);

  char* device = sim.memory<char>(2000);
  STATUS(
      hal().memcpy_async(
          device, static_cast<char*>(pinned) + 500, 600, PUONE_MEMCPY_HOST_TO_DEVICE, stream),
      PUONE_INVALID_ARGUMENT);
  CHECK(errorSays("crosses the edge"));
  STATUS(hal().host_free(static_cast<char*>(pinned) + 1), PUONE_INVALID_ARGUMENT);
  OK(hal().host_free(pinned));
  OK(hal().pointer_attributes(pinned, &where));
  CHECK_EQ(where.kind, PUONE_MEMORY_UNREGISTERED);
}

TEST(poison_fills_new_memory) {
  Sim sim({{"PUONE_SIM_POISON", "1"}});
  const puone_stream stream = sim.stream();
  const unsigned char* block = sim.memory<unsigned char>(300);
  CHECK_EQ(sim.value(block, stream), 0xff);
  CHECK_EQ(sim.value(block + 299, stream), 0xff);
}
