// SPDX-License-Identifier: BSD-3-Clause
// Errors, warnings, registries, environment, reference counting.
#pragma once

#include "version.h"

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>
#include <c10/util/Registry.h>
#include <c10/util/env.h>
#include <c10/util/intrusive_ptr.h>

namespace probe {

struct Counted : c10::intrusive_ptr_target {
  ~Counted() override = default;

#if PROBE_TORCH(2, 10)
 private:
  void incref_pyobject() const noexcept override;
  void decref_pyobject() const noexcept override;
  bool try_incref_pyobject() const noexcept override;
#endif
};

C10_DECLARE_REGISTRY(ProbeRegistry, Counted);
C10_DEFINE_REGISTRY(ProbeRegistry, Counted)
C10_REGISTER_CLASS(ProbeRegistry, counted, Counted)

namespace {

struct Warnings final : c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    (void)warning.msg();
  }
};

void useErrors(bool fine) {
  new Warnings();
  try {
    TORCH_CHECK(fine, "not ", 1);
    TORCH_CHECK_INDEX(fine, "not");
    TORCH_CHECK_VALUE(fine, "not");
    TORCH_CHECK_TYPE(fine, "not");
    TORCH_CHECK_NOT_IMPLEMENTED(fine, "not");
    TORCH_CHECK_WITH(OutOfMemoryError, fine, "not");
    TORCH_INTERNAL_ASSERT(fine, "not");
    TORCH_INTERNAL_ASSERT_DEBUG_ONLY(fine);
    TORCH_WARN("warning");
    TORCH_WARN_ONCE("warning");
  } catch (const c10::OutOfMemoryError& error) {
    (void)error.what_without_backtrace();
  } catch (const c10::NotImplementedError&) {
  } catch (const c10::Error& error) {
    (void)error.msg();
    (void)error.what();
  }
  throw c10::Error(c10::SourceLocation{__func__, __FILE__, __LINE__}, "message");
}

void useCounting() {
  auto counted = c10::make_intrusive<Counted>();
  auto again = c10::intrusive_ptr<Counted>::reclaim(counted.release());
  c10::weak_intrusive_ptr<Counted> weak(again);
  (void)weak.lock();
  (void)again.use_count();
  (void)c10::utils::check_env("PROBE");
#if PROBE_TORCH(2, 6)
  (void)c10::utils::get_env("PROBE");
  (void)c10::utils::has_env("PROBE");
#endif
  (void)ProbeRegistry()->Has("counted");
}

C10_EXPORT void exported() {}

} // namespace
} // namespace probe
