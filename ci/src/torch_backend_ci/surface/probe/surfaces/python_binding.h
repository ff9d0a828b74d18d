// SPDX-License-Identifier: BSD-3-Clause
// The C++ side of Python: devices, generators, streams, tensors, exceptions.
#pragma once

#include "version.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Event.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Stream.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_arg_parser.h>

namespace probe {
namespace {

struct PythonError final : torch::PyTorchError {
  PyObject* python_type() override;
  const char* what() const noexcept override;
};

PyObject* wrap(PyObject*, PyObject* tensor) {
  HANDLE_TH_ERRORS
  TORCH_CHECK(THPVariable_Check(tensor), "not a tensor");
  const at::Tensor& unpacked = THPVariable_Unpack(tensor);
  torch::utils::device_lazy_init(c10::DeviceType::PrivateUse1);
  THPDevice_New(unpacked.device());
  return THPVariable_Wrap(unpacked);
  END_HANDLE_TH_ERRORS
}

PyObject* parse(PyObject*, PyObject* args, PyObject* kwargs) {
  HANDLE_TH_ERRORS
  static torch::PythonArgParser parser({"parse(Tensor self, int64_t size)"});
  torch::ParsedArgs<2> parsed;
  torch::PythonArgs read = parser.parse(args, kwargs, parsed);
  (void)read.tensor(0);
  (void)read.toInt64(1);
  throw PythonError();
  END_HANDLE_TH_ERRORS
}

int64_t useStream(THPStream* stream, THPEvent* event) {
  event->event.record(
      c10::Stream::unpack3(
          stream->stream_id,
          stream->device_index,
          static_cast<c10::DeviceType>(stream->device_type)));
  return stream->stream_id;
}

void useGenerator(const at::Generator& generator) {
  auto* wrapped = reinterpret_cast<THPGenerator*>(THPGenerator_Wrap(generator));
  (void)wrapped->cdata;
  (void)THPGenerator_initDefaultGenerator(generator);
}

void bind(py::module_& module) {
  torch::utils::set_requires_device_init(c10::DeviceType::PrivateUse1, true);
  module.def("identity", [](const at::Tensor& tensor, c10::ScalarType) { return tensor; });
  module.def("guarded", torch::wrap_pybind_function([] { return 1; }));
}

} // namespace
} // namespace probe
