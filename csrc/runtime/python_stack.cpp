// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/python_stack.h"

#include <c10/util/StringUtil.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <algorithm>
#include <string_view>

namespace puone {
namespace {

constexpr size_t kMostFrames = 12; // of a text

bool isOfTorch(const PythonFrame& frame) {
  const std::string_view file = frame.file;
  return file.find("/site-packages/torch/") != std::string_view::npos ||
         file.find("/torch_puone/") != std::string_view::npos;
}

} // namespace

PythonStack gatherPythonStack() {
  return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/false, /*cpp=*/false);
}

std::vector<PythonFrame> pythonFrames(const PythonStack& stack) {
  std::vector<PythonFrame> frames;
  if (stack == nullptr) return frames;
  const auto found = torch::symbolize({torch::getCapturedTracebackFromContext(stack)});
  for (const uint64_t index : found.tracebacks.at(0)) {
    const auto& frame = found.all_frames.at(index);
    frames.push_back({frame.filename, frame.funcname, frame.lineno});
  }
  return frames;
}

std::string formatPythonStack(const PythonStack& stack) {
  const auto frames = pythonFrames(stack);
  const bool only_torch = std::all_of(frames.begin(), frames.end(), isOfTorch);
  std::vector<std::string> lines; // the innermost first
  for (const PythonFrame& frame : frames) {
    if (!only_torch && isOfTorch(frame)) continue;
    if (lines.size() == kMostFrames) {
      lines.emplace_back("  ...\n");
      break;
    }
    lines.push_back(
        c10::str("  File \"", frame.file, "\", line ", frame.line, ", in ", frame.function, "\n"));
  }
  std::string text;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) text += *line;
  return text;
}

} // namespace puone
