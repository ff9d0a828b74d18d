// SPDX-License-Identifier: BSD-3-Clause
// The Python stack of the calling thread, kept compactly until somebody reads it.
//
// libtorch_python registers how Python frames are walked
// (torch/csrc/profiler/combined_traceback.h), so this library needs no Python: in a process without
// an interpreter every stack is empty.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace puone {

// References to the code objects of the frames; about 16 bytes a frame. Shared and immutable. It
// may be destroyed on any thread, with or without the GIL.
using PythonStack = std::shared_ptr<c10::GatheredContext>;

// One frame of a stack.
struct PythonFrame {
  std::string file;     // its path
  std::string function; // its name
  uint64_t line;        // from 1
};

// The stack as it is now, about a microsecond for ten frames. It takes the GIL where the thread
// does not have it: the caller holds no lock that a thread with the GIL may wait for. A thread that
// Python does not know, such as one of the driver's, has an empty stack.
PythonStack gatherPythonStack();

// The frames of a stack that gatherPythonStack() gave, the innermost first; empty for NULL. Looks
// up file names and lines, which takes long, and takes the GIL.
std::vector<PythonFrame> pythonFrames(const PythonStack& stack);

// The same as text in the manner of Python's tracebacks, "most recent call last", without the
// frames of PyTorch's own modules unless there are no others, and at most the innermost twelve. ""
// for an empty stack.
std::string formatPythonStack(const PythonStack& stack);

} // namespace puone
