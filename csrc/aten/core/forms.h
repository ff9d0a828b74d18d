// SPDX-License-Identifier: BSD-3-Clause
// The forms of an operator, and what each does about the outputs: makes them, or checks or resizes
// what the caller gave. The errors and warnings are PyTorch's
// (torchgen/dest/register_dispatch_key.py).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

namespace puone {

enum class Form {
  kFunctional,
  kInplace,
  kOut
};

// Resizes an output of the out form to the sizes, and gives it the strides, or if they are empty
// the options' memory format, where it had to be resized. Throws c10::Error if it is of another
// type or device.
void resizeOut(
    const at::Tensor& out,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    const c10::TensorOptions& options);

// Makes the output of the functional form; checks or resizes the one that the caller gave.
void settleOutput(
    Form form,
    at::Tensor& output,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    const c10::TensorOptions& options);

// If the settled output has other strides than these, moves it to `given` and puts a temporary in
// its place.
void replaceOutput(
    Form form,
    at::Tensor& output,
    at::Tensor& given,
    c10::IntArrayRef sizes,
    c10::IntArrayRef strides,
    const c10::TensorOptions& options);

} // namespace puone
