// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/sim/host_guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>

#include "drivers/common/error.h"

namespace puone::sim {
namespace {

// All data that the handler reads. Plain atomics, so that it is async-signal-safe.
std::atomic<uintptr_t> front{0};
std::atomic<size_t> half{0}; // size of the user's half in bytes; 0: nothing to watch
std::atomic<size_t> span{1}; // bytes per device
struct sigaction previous_action;

/// The name of the calling thread's work. The handler reads it on any thread and must not allocate
/// memory: a thread_local of the usual model may allocate at its first use in a thread. One of the
/// model initial-exec does not, but it takes static TLS, of which a process has little for the
/// libraries that it loads later. A key takes none, and reading one that the thread has never set
/// does not allocate in glibc.
class WorkName {
 public:
  // If the process has no key left, watchAccesses() refuses to create the driver.
  WorkName() : exists_(pthread_key_create(&key_, nullptr) == 0) {}
  // Not deleted: threads may run work until the process ends, and the library stays until then.

  bool exists() const {
    return exists_;
  }
  const char* get() const {
    return exists_ ? static_cast<const char*>(pthread_getspecific(key_)) : nullptr;
  }
  /// Throws std::bad_alloc if there is no memory for the thread's first name. Restoring what get()
  /// returned before cannot fail.
  void set(const char* name) const {
    if (pthread_setspecific(key_, name) != 0 && name != nullptr) throw std::bad_alloc();
  }

 private:
  pthread_key_t key_{};
  const bool exists_;
};
const WorkName work_name;

/// A line built and written without stdio or the heap.
class Line {
 public:
  Line& text(const char* s) {
    while (*s != '\0' && used_ < sizeof buffer_) buffer_[used_++] = *s++;
    return *this;
  }
  Line& decimal(size_t value) {
    return digits(value, 10);
  }
  Line& hex(size_t value) {
    return text("0x").digits(value, 16);
  }
  void write() {
    text("\n");
    // A failed write cannot be handled here.
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, buffer_, used_);
  }

 private:
  Line& digits(size_t value, size_t base) {
    char reversed[24];
    int count = 0;
    do {
      reversed[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count > 0 && used_ < sizeof buffer_) buffer_[used_++] = reversed[--count];
    return *this;
  }

  char buffer_[256];
  size_t used_ = 0;
};

Line& place(Line& line, size_t offset) {
  const size_t bytes = span.load(std::memory_order_relaxed);
  return line.text("puone:").decimal(offset / bytes).text(" + ").hex(offset % bytes);
}

void explain(uintptr_t fault) {
  const size_t bytes = half.load(std::memory_order_relaxed);
  const size_t offset = fault - front.load(std::memory_order_relaxed);
  if (bytes == 0 || offset >= 2 * bytes) return;
  const char* const running = runningWork();
  Line line;
  line.text("puone sim: ");
  if (offset < bytes) {
    line.text("host dereferenced device memory (");
    place(line, offset).text(")");
    if (running != nullptr) line.text(" while running ").text(running);
  } else if (running != nullptr) {
    line.text(running).text(" ran out of its memory: it touched ");
    place(line, offset - bytes).text(", which is in no live block");
  } else {
    line.text("bad access behind device memory (");
    place(line, offset - bytes).text(")");
  }
  line.write();
}

/// Passes the signal to the previous handler.
void chain(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    // A real segmentation fault occurs again on return, now with the default action; a sent signal
    // must be raised again.
    if (info->si_code <= 0) raise(signal);
  }
}

/// The stack pointer of the interrupted code.
uintptr_t stackPointer(const ucontext_t& interrupted) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return interrupted.uc_mcontext.sp;
#else
#error "say where the stack pointer is"
#endif
}

/// Whether a handler that was installed later has handled a segmentation fault on the signal stack,
/// restored this handler and raised the signal again. The address is lost, but after a return the
/// instruction faults again, and this handler gets it.
bool raisedByLaterHandler(const siginfo_t* info, const void* context) {
  const auto& interrupted = *static_cast<const ucontext_t*>(context);
  const auto stack = reinterpret_cast<uintptr_t>(interrupted.uc_stack.ss_sp);
  return info->si_code == SI_TKILL && info->si_pid == getpid() &&
         stackPointer(interrupted) - stack < interrupted.uc_stack.ss_size;
}

void onSegmentationFault(int signal, siginfo_t* info, void* context) {
  if (raisedByLaterHandler(info, context)) return;
  if (info->si_code > 0) explain(reinterpret_cast<uintptr_t>(info->si_addr));
  chain(signal, info, context);
}

} // namespace

void watchAccesses(const Memory& memory) {
  if (!work_name.exists()) fail(PUONE_INTERNAL, "the process has no pthread key left");
  front.store(memory.front(), std::memory_order_relaxed);
  span.store(memory.span(), std::memory_order_relaxed);
  half.store(memory.span() * static_cast<size_t>(memory.devices()), std::memory_order_relaxed);
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action = {};
    action.sa_sigaction = onSegmentationFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_action);
  });
}

void forgetAccesses() {
  half.store(0, std::memory_order_relaxed);
}

namespace {
constexpr size_t kSignalStackBytes = 64 << 10;
}

SignalStack::SignalStack()
    : memory_(mmap(
          nullptr,
          kSignalStackBytes,
          PROT_READ | PROT_WRITE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
          -1,
          0)) {
  if (memory_ == MAP_FAILED) return;
  stack_t current = {};
  sigaltstack(nullptr, &current);
  if ((current.ss_flags & SS_DISABLE) == 0) { // it belongs to a sanitizer, which releases it
    munmap(memory_, kSignalStackBytes);
    memory_ = MAP_FAILED;
    return;
  }
  stack_t stack = {};
  stack.ss_sp = memory_;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == MAP_FAILED) return;
  stack_t off = {};
  off.ss_flags = SS_DISABLE;
  sigaltstack(&off, nullptr);
  munmap(memory_, kSignalStackBytes);
}

Running::Running(const char* name) : outer_(work_name.get()) {
  work_name.set(name);
}
Running::~Running() {
  work_name.set(outer_);
}

const char* runningWork() {
  return work_name.get();
}

} // namespace puone::sim
