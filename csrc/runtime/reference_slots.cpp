// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/reference_slots.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

namespace puone {
namespace {

// A slot is free, on its way under the number of its message, or held by a process.
constexpr uint64_t kFree = 0;
constexpr uint64_t kHeld = uint64_t{1} << 63;
constexpr int kStartBits = 40; // of the time at which the holder started; its id is above
static_assert(std::atomic<uint64_t>::is_always_lock_free, "other processes use it, too");

// When a process started, in clock ticks since boot; 0 if it has ended. An id is used again for
// another process, but not with the same time.
uint64_t startOf(pid_t process) noexcept {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(process));
  FILE* file = std::fopen(path.data(), "re");
  if (file == nullptr) return 0;
  std::array<char, 1024> text{};
  const size_t length = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  text[length] = '\0';
  const char* name_end = std::strrchr(text.data(), ')'); // a name may contain anything
  char state = 'X';
  unsigned long long start = 0;
  constexpr const char* kFields =
      ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (name_end == nullptr || std::sscanf(name_end, kFields, &state, &start) != 2) return 0;
  return state == 'Z' || state == 'X' ? 0 : uint64_t{start} + 1;
}

uint64_t holderOf(pid_t process, uint64_t start) noexcept {
  const uint64_t time = start & ((uint64_t{1} << kStartBits) - 1);
  return kHeld | static_cast<uint64_t>(process) << kStartBits | time;
}

uint64_t thisProcess() noexcept {
  static std::atomic<pid_t> known{0};
  static std::atomic<uint64_t> holder{0};
  if (known.load(std::memory_order_acquire) != getpid()) { // the first call, or after fork()
    holder.store(holderOf(getpid(), startOf(getpid())));
    known.store(getpid(), std::memory_order_release);
  }
  return holder.load();
}

bool isAlive(uint64_t holder) noexcept {
  const auto process = static_cast<pid_t>((holder & ~kHeld) >> kStartBits);
  const uint64_t start = startOf(process);
  return start != 0 && holderOf(process, start) == holder;
}

std::atomic<uint64_t>* mapSlots(const SharedFile& file) {
  constexpr size_t bytes = ReferenceSlots::kSlots * sizeof(std::atomic<uint64_t>);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  TORCH_CHECK(
      mapped != MAP_FAILED, "puone: cannot map references of processes: ", std::strerror(errno));
  return static_cast<std::atomic<uint64_t>*>(mapped);
}

// Those of other processes that are in use here.
struct Opened {
  using Key = std::tuple<int32_t, int32_t, uint64_t>;
  std::mutex mutex;
  std::map<Key, std::weak_ptr<ReferenceSlots>> slots;
};

Opened& opened() {
  static auto* all = new Opened(); // leaked: storages may die during static destruction
  return *all;
}

} // namespace

ReferenceSlots::~ReferenceSlots() {
  munmap(slots_, kSlots * sizeof(*slots_));
}

std::shared_ptr<ReferenceSlots> ReferenceSlots::create() {
  SharedFile file = SharedFile::create("puone references", kSlots * sizeof(std::atomic<uint64_t>));
  TORCH_CHECK(file, "puone: cannot share references with processes: ", std::strerror(errno));
  auto* slots = mapSlots(file);
  return std::make_shared<ReferenceSlots>(std::move(file), slots);
}

std::shared_ptr<ReferenceSlots> ReferenceSlots::open(const SharedFile::Name& name) {
  const std::lock_guard lock(opened().mutex);
  std::erase_if(opened().slots, [](const auto& each) { return each.second.expired(); });
  const Opened::Key key{name.process, name.descriptor, name.inode};
  if (const auto known = opened().slots.find(key); known != opened().slots.end()) {
    if (auto slots = known->second.lock()) return slots;
  }
  SharedFile file = SharedFile::open(name);
  TORCH_CHECK(
      file,
      "puone: a tensor of process ",
      name.process,
      " cannot be received: ",
      errno == ESTALE ? "the process has ended. It must live until its tensors were received"
                      : std::strerror(errno));
  TORCH_CHECK(
      file.bytes() == kSlots * sizeof(std::atomic<uint64_t>),
      "puone: the tensor's message is damaged");
  auto* mapped = mapSlots(file);
  auto slots = std::make_shared<ReferenceSlots>(SharedFile(), mapped);
  opened().slots[key] = slots;
  return slots;
}

ReferenceSlots::Ticket ReferenceSlots::send(uint64_t slot) {
  const uint64_t number = next_number_.fetch_add(1);
  slots_[slot].store(number, std::memory_order_release);
  return {file_.name(), slot, number};
}

bool LivingProcesses::has(uint64_t holder) {
  const auto [found, is_new] = known_.try_emplace(holder, true);
  if (is_new) found->second = isAlive(holder);
  return found->second;
}

bool ReferenceSlots::isReleased(uint64_t slot, LivingProcesses& living) {
  const uint64_t state = slots_[slot].load(std::memory_order_acquire);
  if (state == kFree) return true;
  if ((state & kHeld) == 0 || living.has(state)) return false;
  slots_[slot].store(kFree);
  return true;
}

void ReferenceSlots::claim(const Ticket& ticket) {
  uint64_t expected = ticket.number;
  TORCH_CHECK(ticket.slot < kSlots, "puone: the tensor's message is damaged");
  TORCH_CHECK(
      slots_[ticket.slot].compare_exchange_strong(expected, thisProcess()),
      "puone: the tensor was received before: a message carries it to one process, once");
}

void ReferenceSlots::release(uint64_t slot) noexcept {
  slots_[slot].store(kFree, std::memory_order_release);
}

} // namespace puone
