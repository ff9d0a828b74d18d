// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/module_kernel.h"

#include <ATen/core/Tensor.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/python_variable.h>

#include <bit>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.h"
#include "extension/tensor_argument.h"
#include "runtime/device.h"

namespace py = pybind11;

namespace puone {
namespace {

using Kind = ModuleParameter::Kind;

// (name, "buffer" | "integer" | "real", access flags, bytes of an element)
using PackedParameter = std::tuple<std::string, std::string, uint32_t, uint32_t>;

ModuleParameter unpack(const PackedParameter& packed) {
  const auto& [name, kind, access, element] = packed;
  if (kind == "buffer") return {name, Kind::kBuffer, access, element};
  return {name, kind == "real" ? Kind::kReal : Kind::kInteger};
}

std::shared_ptr<ModuleKernel> makeKernel(
    const py::bytes& image,
    std::string name,
    const std::vector<PackedParameter>& packed,
    std::vector<std::string> errors) {
  std::vector<ModuleParameter> parameters;
  for (const PackedParameter& each : packed) parameters.push_back(unpack(each));
  return std::make_shared<ModuleKernel>(
      image, std::move(name), std::move(parameters), std::move(errors));
}

const at::Tensor& bufferOf(
    const py::handle& given, const ModuleParameter& parameter, c10::DeviceIndex device) {
  TORCH_CHECK_TYPE(
      THPVariable_Check(given.ptr()), "the argument ", parameter.name, " must be a tensor");
  const at::Tensor& tensor = THPVariable_Unpack(given.ptr());
  checkTensorArgument(tensor, parameter.name, device);
  TORCH_CHECK(
      tensor.element_size() == parameter.element,
      "the argument ",
      parameter.name,
      " has elements of ",
      tensor.element_size(),
      " bytes instead of ",
      parameter.element);
  return tensor;
}

// The bits of an int64_t or uint64_t.
uint64_t integerOf(const py::handle& given) {
  const unsigned long long bits = PyLong_AsUnsignedLongLongMask(given.ptr());
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return bits;
}

void launch(
    const ModuleKernel& kernel,
    c10::DeviceIndex device,
    int64_t count,
    int64_t work,
    const py::args& args) {
  const auto parameters = kernel.parameters();
  TORCH_CHECK_TYPE(
      args.size() == parameters.size(),
      "the kernel ",
      kernel.name(),
      " takes ",
      parameters.size(),
      " arguments, not ",
      args.size());
  c10::SmallVector<uint64_t, 48> values;
  c10::SmallVector<uint64_t, 24> extents;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const py::handle given = args[i];
    switch (parameters[i].kind) {
      case Kind::kBuffer: {
        const at::Tensor& tensor = bufferOf(given, parameters[i], device);
        values.push_back(addressOf(tensor, (parameters[i].access & PUONE_MODULE_WRITE) != 0));
        extents.push_back(extentOf(tensor));
        break;
      }
      case Kind::kInteger:
        values.push_back(integerOf(given));
        break;
      case Kind::kReal:
        values.push_back(std::bit_cast<uint64_t>(given.cast<double>()));
        break;
    }
  }
  values.append(extents.begin(), extents.end());
  withoutGil([&] { kernel.launch(getCurrentStream(device), count, work, values); });
}

py::tuple targetOf(c10::DeviceIndex device) {
  const puone_module_target target = withoutGil([&] { return moduleTarget(device); });
  return py::make_tuple(target.name, target.flavour, target.identity);
}

// Of the library that extensions are linked with.
std::string libraryPath() {
  Dl_info found{};
  TORCH_CHECK(
      dladdr(reinterpret_cast<const void*>(&moduleTarget), &found) != 0,
      "the file of libtorch_puone.so is not known");
  return found.dli_fname;
}

} // namespace

void bindModuleKernel(py::module_& m) {
  m.def("library_path", &libraryPath);
  m.def("module_target", &targetOf, py::arg("device"));
  m.def(
      "compile_module",
      [](const std::string& source, const std::string& target, bool contracts) {
        return py::bytes(withoutGil([&] { return compileModule(source, target, contracts); }));
      },
      py::arg("source"),
      py::arg("target"),
      py::arg("contracts"));
  py::class_<ModuleKernel, std::shared_ptr<ModuleKernel>>(m, "ModuleKernel")
      .def(
          py::init(&makeKernel),
          py::arg("image"),
          py::arg("name"),
          py::arg("parameters"),
          py::arg("errors"))
      .def("__call__", &launch, py::arg("device"), py::arg("count"), py::arg("work"));
}

} // namespace puone
