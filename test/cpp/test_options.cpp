// SPDX-License-Identifier: BSD-3-Clause
#include "sim.h"

using namespace puone::test;

TEST(options_decide_devices_and_memory) {
  const Sim sim({{"PUONE_SIM_DEVICES", "3"}, {"PUONE_SIM_MEMORY", "64M"}});
  int32_t count = 0;
  OK(hal().device_count(&count));
  CHECK_EQ(count, 3);
  uint64_t free_bytes = 0;
  uint64_t total = 0;
  OK(hal().device_memory_info(2, &free_bytes, &total));
  CHECK_EQ(total, uint64_t{64} << 20);
  CHECK_EQ(free_bytes, total);
}

TEST(no_device_is_not_an_error) {
  const Sim sim({{"PUONE_SIM_DEVICES", "0"}});
  int32_t count = -1;
  OK(hal().device_count(&count));
  CHECK_EQ(count, 0);
  STATUS(hal().device_synchronize(0), PUONE_INVALID_DEVICE);
  void* block = nullptr;
  STATUS(hal().malloc(0, 1, &block), PUONE_INVALID_DEVICE);
  CHECK(block == nullptr);
}

TEST(a_bad_option_names_itself_and_the_right_values) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"PUONE_SIM_DEVICES", "two"},
      {"PUONE_SIM_DEVICES", "65"},
      {"PUONE_SIM_DEVICES", "-1"},
      {"PUONE_SIM_MEMORY", "4Q"},
      {"PUONE_SIM_MEMORY", "4GB"},
      {"PUONE_SIM_MEMORY", "12"},
      {"PUONE_SIM_SEED", "0x12"},
      {"PUONE_SIM_POISON", "yes"},
      {"PUONE_SIM_LATENCY_US", "1.5"},
      {"PUONE_SIM_MEMORY", "99999999999999999999G"},
      {"PUONE_SIM_CORES", "0"},
      {"PUONE_SIM_ISA", "v9"}};
  for (const auto& [name, value] : bad) {
    const ScopedEnvironment environment({{name, value}});
    STATUS(hal().init(), PUONE_INTERNAL);
    CHECK(errorSays(name + "=" + value));
    CHECK(errorSays("expected"));
  }
}

TEST(an_unknown_option_is_refused_with_the_known_ones) {
  const ScopedEnvironment environment({{"PUONE_SIM_DEVICE", "3"}});
  STATUS(hal().init(), PUONE_INTERNAL);
  CHECK(errorSays("PUONE_SIM_DEVICE=3"));
  CHECK(errorSays("PUONE_SIM_DEVICES"));
}

TEST(entries_before_init_and_after_shutdown_say_so) {
  int32_t count = -1;
  STATUS(hal().device_count(&count), PUONE_INTERNAL);
  CHECK(errorSays("init() has not been called"));
  CHECK_EQ(count, -1);
  {
    const Sim sim;
  }
  STATUS(hal().device_count(&count), PUONE_INTERNAL);
}

TEST(init_is_idempotent_and_possible_again_after_shutdown) {
  for (int round = 0; round < 3; ++round) {
    Sim sim;
    OK(hal().init());
    const puone_stream stream = sim.stream();
    sim.delay(stream, 1000);
    OK(hal().stream_synchronize(stream));
  }
}

TEST(another_abi_major_is_refused) {
  const puone_hal_api* table = nullptr;
  STATUS(puone_hal_get(PUONE_HAL_ABI_MAJOR + 1, &table), PUONE_UNSUPPORTED);
  CHECK(table == nullptr);
  CHECK(errorSays("ABI"));
}

TEST(describe_declares_only_what_is_there) {
  puone_driver_info info{};
  info.struct_size = sizeof info;
  OK(hal().describe(&info));
  CHECK(std::string(info.name) == "sim");
  CHECK_EQ(hal().struct_size, sizeof(puone_hal_api));
  const auto* entries = reinterpret_cast<void* const*>(&hal().init);
  const size_t count = (sizeof(puone_hal_api) - offsetof(puone_hal_api, init)) / sizeof(void*);
  CHECK_EQ(count, size_t{4 + 6 + 7 + 8 + 6 + 2 + 1});
  for (size_t i = 0; i < count; ++i) CHECK(entries[i] != nullptr);
}

TEST(an_unknown_extension_or_version_is_unsupported) {
  const void* found = nullptr;
  STATUS(hal().get_extension("nosuch", 1, &found), PUONE_UNSUPPORTED);
  STATUS(
      hal().get_extension(PUONE_FAULT_EXTENSION, PUONE_FAULT_VERSION + 1, &found),
      PUONE_UNSUPPORTED);
  CHECK(found == nullptr);
}
