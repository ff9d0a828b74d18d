// SPDX-License-Identifier: BSD-3-Clause
// Profiler: stubs for the legacy profiler, an observer, a tracer for Kineto.
#pragma once

#include "version.h"

#include <ATen/record_function.h>
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/api.h>
#include <torch/csrc/profiler/standalone/privateuse1_observer.h>
#include <torch/csrc/profiler/stubs/base.h>
#if PROBE_TORCH(2, 12)
#include <GenericTraceActivity.h>
#include <IActivityProfiler.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#endif

namespace probe {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct ProfilerMethods final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex*, ProfilerVoidEventStub*, int64_t*) const override;
  float elapsed(const ProfilerVoidEventStub*, const ProfilerVoidEventStub*) const override;
  void mark(const char*) const override;
  void rangePush(const char*) const override;
  void rangePop() const override;
  bool enabled() const override;
  void onEachDevice(std::function<void(int)>) const override;
  void synchronize() const override;
};

#if PROBE_TORCH(2, 12)
struct Session final : libkineto::IActivityProfilerSession {
  void start() override;
  void stop() override;
  std::vector<std::string> errors() override;
  void processTrace(libkineto::ActivityLogger&) override;
  void processTrace(
      libkineto::ActivityLogger&, libkineto::getLinkedActivityCallback, int64_t, int64_t) override;
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override;
  std::vector<libkineto::ResourceInfo> getResourceInfos() override;
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override;
  void pushCorrelationId(uint64_t) override;
  void popCorrelationId() override;
  void pushUserCorrelationId(uint64_t) override;
  void popUserCorrelationId() override;
  std::string getDeviceProperties() override;
  std::unordered_map<std::string, std::string> getMetadata() override;
#if PROBE_TORCH(2, 14)
  void toggleCollectionDynamic(bool) override;
#endif
};

struct Profiler final : libkineto::IActivityProfiler {
  const std::string& name() const override;
  const std::set<libkineto::ActivityType>& availableActivities() const override;
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<libkineto::ActivityType>&, const libkineto::Config&) override;
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t,
      int64_t,
      const std::set<libkineto::ActivityType>&,
      const libkineto::Config&) override;
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

void useTracers() {
  new Profiler();
  new Session();
  (void)torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().hasFactory();
}
#endif

void pushCallbacks(
    const torch::profiler::impl::ProfilerConfig& config,
    const std::unordered_set<at::RecordScope>&) {
  (void)(config.state == torch::profiler::impl::ProfilerState::PRIVATEUSE1);
}

void useProfiler() {
  static ProfilerMethods methods;
  torch::profiler::impl::registerPrivateUse1Methods(&methods);
  (void)torch::profiler::impl::privateuse1Stubs();
  (void)torch::profiler::impl::ProfilerState::KINETO_PRIVATEUSE1_FALLBACK;
  RECORD_FUNCTION("probe", std::vector<c10::IValue>{});
  (void)at::RecordScope::USER_SCOPE;
  (void)c10::getTime();
}

} // namespace
} // namespace probe

namespace torch::profiler::impl {

#if PROBE_TORCH(2, 11)
REGISTER_PRIVATEUSE1_OBSERVER(probe::pushCallbacks)
#else
REGISTER_PRIVATEUSE1_OBSERVER(pushPRIVATEUSE1CallbacksStub, &probe::pushCallbacks)
#endif

} // namespace torch::profiler::impl
