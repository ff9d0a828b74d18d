// SPDX-License-Identifier: BSD-3-Clause
// torch.profiler's view of the device: a child profiler of Kineto
// (torch/csrc/profiler/standalone/privateuse1_profiler.h, since PyTorch 2.13).
//
// What the driver's trace says becomes Kineto's activities: kernels, copies and fills in a row for
// each stream; the calls that queued them, in the rows of the threads, with an arrow to the work;
// and the user's ranges, stretched over the work that was queued inside of them.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)

#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/clock.h"
#include "profiler/launches.h"
#include "profiler/trace.h"
#include "runtime/driver.h"
#include "runtime/stream_lookup.h"

namespace puone::profiler {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

const std::set<ActivityType>& activities() {
  static const std::set<ActivityType> types{
      ActivityType::CONCURRENT_KERNEL,
      ActivityType::GPU_MEMCPY,
      ActivityType::GPU_MEMSET,
      ActivityType::GPU_USER_ANNOTATION,
      ActivityType::PRIVATEUSE1_RUNTIME};
  return types;
}

/// A host function occupies its stream as a kernel does.
ActivityType typeOf(const puone_trace_record& record) {
  switch (record.kind) {
    case PUONE_TRACE_COPY:
      return ActivityType::GPU_MEMCPY;
    case PUONE_TRACE_FILL:
      return ActivityType::GPU_MEMSET;
    default:
      return ActivityType::CONCURRENT_KERNEL;
  }
}

/// The rows of a trace: the streams of each device, the default stream always. A row has the
/// stream's id, as the sanitizer's reports have it.
class Rows {
 public:
  explicit Rows(const std::vector<puone_trace_record>& records) {
    for (const puone_trace_record& record : records) {
      auto& rows = devices_[record.device];
      if (rows.count(record.stream) != 0) continue;
      const auto stream = findStream(record.stream);
      const auto others = static_cast<int32_t>(rows.size());
      rows[record.stream] = stream ? static_cast<int32_t>(stream->id()) : kFirstOther + others;
    }
  }

  int32_t of(const puone_trace_record& record) const {
    return devices_.at(record.device).at(record.stream);
  }

  static libkineto::DeviceInfo infoOf(int32_t device) {
    const std::string label = "puone:" + std::to_string(device);
    return {device, libkineto::kExceedMaxPid + device, "puone", label};
  }

  void describe(libkineto::ActivityLogger& logger, int64_t time) const {
    for (const auto& [device, rows] : devices_) {
      logger.handleDeviceInfo(infoOf(device), time);
      logger.handleResourceInfo({0, 0, device, "default stream"}, time);
      for (const auto& [stream, row] : rows) {
        if (row != 0) logger.handleResourceInfo({row, row, device, nameOf(row)}, time);
      }
    }
  }

 private:
  static constexpr int32_t kFirstOther = 1 << 20; // beyond the ids of the runtime's streams

  static std::string nameOf(int32_t row) {
    return row < kFirstOther ? "stream " + std::to_string(row) : "a stream of another library";
  }

  std::map<int32_t, std::map<puone_stream, int32_t>> devices_;
};

class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(std::set<ActivityType> types) : types_(std::move(types)) {}
  ~Session() override {
    // Of a profiler that an exception ended; perhaps when the process exits.
    if (status_ == libkineto::TraceStatus::RECORDING && halOrNull() != nullptr) stop();
  }

  void start() override {
    collect([this] {
      observeLaunches();
      status_ = libkineto::TraceStatus::RECORDING;
    });
  }

  void stop() override {
    if (status_ != libkineto::TraceStatus::RECORDING) return;
    status_ = libkineto::TraceStatus::PROCESSING;
    collect([this] {
      launches_ = observedLaunches();
      const puone_trace_record* records = nullptr;
      uint64_t count = 0;
      PUONE_CHECK_STATUS(tracing().stop(&records, &count), "trace.stop");
      records_.assign(records, records + count);
    });
  }

  std::vector<std::string> errors() override {
    return errors_;
  }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(
      libkineto::ActivityLogger& logger,
      libkineto::getLinkedActivityCallback linked,
      int64_t begin,
      int64_t /*end*/) override {
    const Rows rows(records_);
    rows.describe(logger, begin);
    to_day_ns_ = dayMinusMonotonicNs();
    std::unordered_map<uint64_t, const Launch*> launched;
    for (const Launch& launch : launches_) launched.emplace(launch.correlation, &launch);
    std::map<std::pair<uint64_t, std::pair<int32_t, int32_t>>, GenericTraceActivity*> ranges;
    for (const puone_trace_record& record : records_) {
      GenericTraceActivity& work = addWork(record, rows.of(record));
      const auto found = launched.find(record.correlation);
      if (found == launched.end()) continue; // queued before all threads were observed
      const Launch& launch = *found->second;
      const libkineto::ITraceActivity* operation = linkedTo(linked, launch.operation);
      const libkineto::ITraceActivity* range = linkedTo(linked, launch.range);
      // What no operator queued, as the launch of a graph, is the range's own.
      work.linked = operation != nullptr ? operation : range;
      addCall(launch).linked = work.linked;
      if (range != nullptr) {
        const auto key = std::make_pair(launch.range, std::make_pair(work.device, work.resource));
        stretch(ranges[key], *range, work);
      }
    }
    for (const auto& activity : buffer_->activities) {
      if (types_.count(activity->activityType) != 0) activity->log(logger);
    }
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    // processTrace() has named all devices. Kineto then calls each "GPU n", and asks for one last
    // name.
    if (records_.empty()) return nullptr;
    return std::make_unique<libkineto::DeviceInfo>(Rows::infoOf(records_.front().device));
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    return {};
  }
  /// The activities refer to its span.
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    buffer_->activities.clear(); // they were logged
    return std::move(buffer_);
  }

  void pushCorrelationId(uint64_t id) override {
    enterOperation(id);
  }
  void popCorrelationId() override {
    leaveOperation();
  }
  void pushUserCorrelationId(uint64_t id) override {
    enterRange(id);
  }
  void popUserCorrelationId() override {
    leaveRange();
  }

 private:
  /// Kineto takes no exceptions.
  template <class Body>
  void collect(const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      status_ = libkineto::TraceStatus::ERROR;
      errors_.emplace_back(error.what());
      TORCH_WARN("torch.profiler records no work of puone: ", error.what());
    }
  }

  static const libkineto::ITraceActivity* linkedTo(
      const libkineto::getLinkedActivityCallback& linked, uint64_t id) {
    return id == 0 ? nullptr : linked(static_cast<int32_t>(id));
  }

  GenericTraceActivity& add(ActivityType type, const std::string& name) {
    buffer_->emplace_activity(buffer_->span, type, name);
    return *buffer_->activities.back();
  }

  static void setFlow(GenericTraceActivity& activity, uint64_t correlation, bool start) {
    activity.id = static_cast<int32_t>(correlation);
    activity.flow.id = static_cast<uint32_t>(correlation);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = start;
  }

  GenericTraceActivity& addWork(const puone_trace_record& record, int32_t row) {
    GenericTraceActivity& work = add(typeOf(record), record.name);
    work.startTime = static_cast<int64_t>(record.begin_ns) + to_day_ns_;
    work.endTime = static_cast<int64_t>(record.end_ns) + to_day_ns_;
    work.device = record.device;
    work.resource = row;
    work.threadId = row;
    setFlow(work, record.correlation, false);
    work.addMetadata("device", record.device);
    work.addMetadata("stream", row);
    work.addMetadata("correlation", record.correlation);
    if (record.kind == PUONE_TRACE_COPY || record.kind == PUONE_TRACE_FILL) {
      work.addMetadata("bytes", record.bytes);
    }
    return work;
  }

  GenericTraceActivity& addCall(const Launch& launch) {
    GenericTraceActivity& call = add(ActivityType::PRIVATEUSE1_RUNTIME, launch.entry);
    call.startTime = launch.begin_ns + to_day_ns_;
    call.endTime = launch.end_ns + to_day_ns_;
    call.device = static_cast<int32_t>(getpid());
    call.resource = launch.thread;
    call.threadId = launch.thread;
    setFlow(call, launch.correlation, true);
    call.addMetadata("correlation", launch.correlation);
    return call;
  }

  /// The user's range as a bar over the work of one stream that was queued inside of it.
  void stretch(
      GenericTraceActivity*& bar,
      const libkineto::ITraceActivity& range,
      const GenericTraceActivity& work) {
    if (bar == nullptr) {
      bar = &add(ActivityType::GPU_USER_ANNOTATION, range.name());
      bar->startTime = work.startTime;
      bar->device = work.device;
      bar->resource = work.resource;
      bar->threadId = work.threadId;
      bar->id = static_cast<int32_t>(range.correlationId());
    }
    bar->startTime = std::min(bar->startTime, work.startTime);
    bar->endTime = std::max(bar->endTime, work.endTime);
  }

  const std::set<ActivityType> types_;
  std::vector<Launch> launches_;
  std::vector<puone_trace_record> records_;
  std::vector<std::string> errors_;
  int64_t to_day_ns_ = 0;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_ =
      std::make_unique<libkineto::CpuTraceBuffer>();
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    static const std::string name = "puone";
    return name;
  }
  const std::set<ActivityType>& availableActivities() const override {
    return activities();
  }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config& /*config*/) override {
    std::set<ActivityType> wanted;
    std::set_intersection(
        types.begin(),
        types.end(),
        activities().begin(),
        activities().end(),
        std::inserter(wanted, wanted.end()));
    // The calls alone say nothing that the operators do not say.
    wanted.erase(ActivityType::PRIVATEUSE1_RUNTIME);
    if (wanted.empty() || !driverState().available()) return nullptr;
    wanted.insert(ActivityType::PRIVATEUSE1_RUNTIME);
    return std::make_unique<Session>(std::move(wanted));
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t /*begin_ms*/,
      int64_t /*duration_ms*/,
      const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

} // namespace
} // namespace puone::profiler

#endif
