// SPDX-License-Identifier: BSD-3-Clause
// Lies about kernels that are compiled at run time: the extension "module".
#include "hal/module.h"

#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "liar.h"

namespace puone::liar {
namespace {

const puone_module_api* true_module = nullptr;
puone_module_api module; // what the caller gets: the true entries but for one
bool compile_failed = false;
std::string last_image;
std::mutex mutex;
std::set<puone_kernel> generated; // that find() has given

// get_extension() of the driver, with `change` made to the table of "module".
template <auto change>
puone_status changedModule(const char* name, uint32_t min_version, const void** out) {
  const puone_status status = truth().get_extension(name, min_version, out);
  if (status != PUONE_OK || name == nullptr || std::strcmp(name, PUONE_MODULE_EXTENSION) != 0) {
    return status;
  }
  true_module = static_cast<const puone_module_api*>(*out);
  module = *true_module;
  change();
  *out = &module;
  return status;
}

puone_status compileSilently(
    const char* source, const puone_module_options* options, void** image, size_t* bytes) {
  const puone_status status = true_module->compile(source, options, image, bytes);
  compile_failed = status != PUONE_OK;
  return status;
}

const char* silence() {
  return compile_failed ? "module.compile: it does not compile" : truth().last_error_message();
}

puone_status loadOnDevice0(int32_t, const void* image, size_t bytes, puone_module* out) {
  return true_module->load(0, image, bytes, out);
}

puone_status compileAndRemember(
    const char* source, const puone_module_options* options, void** image, size_t* bytes) {
  const puone_status status = true_module->compile(source, options, image, bytes);
  if (status == PUONE_OK) last_image.assign(static_cast<const char*>(*image), *bytes);
  return status;
}

puone_status loadAnything(int32_t device, const void* image, size_t bytes, puone_module* out) {
  const puone_status status = true_module->load(device, image, bytes, out);
  if (status != PUONE_INVALID_ARGUMENT) return status;
  return true_module->load(device, last_image.data(), last_image.size(), out);
}

puone_status findBySomeSize(
    puone_module from, const puone_module_kernel* kernel, puone_kernel* out) {
  puone_module_kernel tried = *kernel;
  puone_status status = true_module->find(from, &tried, out);
  for (uint64_t size = 0; status == PUONE_INVALID_ARGUMENT && size < 1024; size += 8) {
    tried.args_size = size;
    status = true_module->find(from, &tried, out);
  }
  return status;
}

puone_status findAndRemember(
    puone_module from, const puone_module_kernel* kernel, puone_kernel* out) {
  const puone_status status = true_module->find(from, kernel, out);
  const std::lock_guard guard(mutex);
  if (status == PUONE_OK) generated.insert(*out);
  return status;
}

bool isGenerated(puone_kernel kernel) {
  const std::lock_guard guard(mutex);
  return generated.count(kernel) != 0;
}

puone_status launchElsewhere(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  if (!isGenerated(kernel)) return truth().kernel_launch(kernel, args, bytes, stream, context);
  puone_stream own = nullptr;
  truth().stream_create(0, 0, &own);
  const puone_status status = truth().kernel_launch(kernel, args, bytes, own, context);
  truth().stream_synchronize(own);
  truth().stream_destroy(own);
  return status;
}

puone_status withoutInternalErrors(puone_status status) {
  return status == PUONE_INTERNAL ? PUONE_OK : status;
}

bool isCapturing(puone_stream stream) {
  const void* graph = nullptr;
  int32_t capturing = 0;
  if (truth().get_extension(PUONE_GRAPH_EXTENSION, 1, &graph) == PUONE_OK) {
    static_cast<const puone_graph_api*>(graph)->is_capturing(stream, &capturing);
  }
  return capturing != 0;
}

puone_status launchUnlessCaptured(
    puone_kernel kernel,
    const void* args,
    size_t bytes,
    puone_stream stream,
    const puone_launch_context* context) {
  if (isGenerated(kernel) && isCapturing(stream)) return PUONE_OK;
  return truth().kernel_launch(kernel, args, bytes, stream, context);
}

} // namespace

void compilersAreSilent(puone_hal_api& table) {
  table.get_extension = changedModule<[] { module.compile = compileSilently; }>;
  table.last_error_message = silence;
}

void modulesAreOnDevice0(puone_hal_api& table) {
  table.get_extension = changedModule<[] { module.load = loadOnDevice0; }>;
}

void damagedImagesAreLoaded(puone_hal_api& table) {
  table.get_extension = changedModule<[] {
    module.compile = compileAndRemember;
    module.load = loadAnything;
  }>;
}

void sizesOfArgumentsAreIgnored(puone_hal_api& table) {
  table.get_extension = changedModule<[] { module.find = findBySomeSize; }>;
}

void generatedKernelsJumpTheQueue(puone_hal_api& table) {
  table.get_extension = changedModule<[] { module.find = findAndRemember; }>;
  table.kernel_launch = launchElsewhere;
}

void errorsOfGeneratedKernelsAreLost(puone_hal_api& table) {
  table.stream_synchronize = [](puone_stream stream) {
    return withoutInternalErrors(truth().stream_synchronize(stream));
  };
  table.device_synchronize = [](int32_t device) {
    return withoutInternalErrors(truth().device_synchronize(device));
  };
}

void graphsLackGeneratedKernels(puone_hal_api& table) {
  table.get_extension = changedModule<[] { module.find = findAndRemember; }>;
  table.kernel_launch = launchUnlessCaptured;
}

void unloadingDoesNotWait(puone_hal_api& table) {
  table.get_extension =
      changedModule<[] { module.unload = [](puone_module) { return PUONE_OK; }; }>;
}

} // namespace puone::liar
