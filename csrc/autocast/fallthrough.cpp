// SPDX-License-Identifier: BSD-3-Clause
// Without this every operator that has no cast policy would fail inside torch.autocast("puone").
#include <torch/library.h>

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
