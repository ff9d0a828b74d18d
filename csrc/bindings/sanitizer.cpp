// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>

#include "bindings/bindings.h"
#include "runtime/stream.h"
#include "sanitizer/layer.h"

namespace py = pybind11;

namespace puone {
namespace {

using sanitizer::OnReport;

OnReport parse(const std::string& on_report) {
  if (on_report == "raise") return OnReport::Raise;
  if (on_report == "warn") return OnReport::Warn;
  return OnReport::Collect;
}

py::list toList(const std::vector<PythonFrame>& frames) {
  py::list list;
  for (const PythonFrame& frame : frames) {
    list.append(py::make_tuple(frame.file, frame.line, frame.function));
  }
  return list;
}

py::dict toDict(const sanitizer::ReportedAccess& access) {
  py::dict dict;
  dict["mode"] = access.mode;
  dict["argument"] = access.argument;
  dict["work"] = access.work;
  dict["operator"] = access.operation;
  dict["backward"] = access.backward;
  dict["stream"] = access.stream;
  dict["frames"] = toList(access.frames);
  return dict;
}

py::dict toDict(const sanitizer::Report& report) {
  py::list accesses;
  for (const auto& access : report.accesses) accesses.append(toDict(access));
  py::dict dict;
  dict["kind"] = sanitizer::nameOf(report.kind);
  dict["accesses"] = accesses;
  dict["address"] = report.memory.address;
  dict["bytes"] = report.memory.bytes;
  dict["allocated_by"] = report.memory.operation;
  dict["advice"] = report.advice;
  dict["text"] = report.text;
  return dict;
}

const char* nameOf(OnReport on_report) {
  switch (on_report) {
    case OnReport::Raise:
      return "raise";
    case OnReport::Warn:
      return "warn";
    default:
      return "collect";
  }
}

/// What `get` gives, which is called without the GIL.
template <class Get>
py::list reportsOf(const Get& get) {
  std::vector<sanitizer::Report> found;
  {
    const py::gil_scoped_release released;
    found = get();
  }
  py::list list;
  for (const auto& report : found) list.append(toDict(report));
  return list;
}

void neverRecorded(int64_t id, c10::DeviceIndex index, int64_t type) {
  const Stream stream(c10::Stream::unpack3(id, index, static_cast<c10::DeviceType>(type)));
  sanitizer::neverRecorded(&stream);
}

} // namespace

void bindSanitizer(py::module_& m) {
  m.def(
      "sanitizer_enable",
      [](const std::string& on_report) { sanitizer::enable(parse(on_report)); },
      py::arg("on_report"),
      py::call_guard<py::gil_scoped_release>());
  m.def("sanitizer_disable", &sanitizer::disable, py::call_guard<py::gil_scoped_release>());
  m.def("sanitizer_is_enabled", &sanitizer::isEnabled);
  m.def("sanitizer_reaction", []() -> std::optional<std::string> {
    const auto on_report = sanitizer::reaction();
    return on_report ? std::optional<std::string>(nameOf(*on_report)) : std::nullopt;
  });
  m.def("sanitizer_reports", [] { return reportsOf(&sanitizer::reports); });
  m.def("sanitizer_begin_block", &sanitizer::beginBlock, py::call_guard<py::gil_scoped_release>());
  m.def(
      "sanitizer_end_block",
      [](uint64_t number) { return reportsOf([=] { return sanitizer::endBlock(number); }); },
      py::arg("number"));
  m.def("sanitizer_clear", &sanitizer::clearReports, py::call_guard<py::gil_scoped_release>());
  m.def(
      "sanitizer_never_recorded",
      &neverRecorded,
      py::arg("stream_id"),
      py::arg("device_index"),
      py::arg("device_type"));
}

} // namespace puone
