# SPDX-License-Identifier: BSD-3-Clause
"""Modules on the cuda driver without a GPU: sources compile for the card by NVRTC itself."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from pathlib import Path

import pytest
from driver_in_child import with_driver
from nvrtc import NVRTC, needs_nvrtc
from suites import CUDA, NO_GPU, STANDIN, needs_cuda_driver, needs_standin

from hal_conformance import abi, modules
from hal_conformance.abi import Status
from hal_conformance.driver import Driver

ELF = b"\x7fELF"
#: Much of the dialect in one source.
SOURCE = b"""\
struct Args {
  Arguments arguments;
  const float* x;
  const double* d;
  const Half* h;
  const BFloat16* b;
  const int64_t* index;
  float* out;
  int64_t n;
};
PUONE_MODULE_MAP(functions, Args) {
  const float x = args.x[i];
  float sum = exp(x) + exp2(x) + expm1(x) + log(x) + log2(x) + log10(x) + log1p(x) + sigmoid(x);
  sum += sin(x) + cos(x) + tan(x) + asin(x) + acos(x) + atan(x) + sinh(x) + cosh(x) + tanh(x);
  sum += erf(x) + erfc(x) + pow(x, 2.0f) + atan2(x, 2.0f) + sqrt(x) + floor(x) + abs(x);
  const double d = args.d[i];
  sum += static_cast<float>(exp(d) + tanh(d) + pow(d, 3.0) + sqrt(d) + erf(d));
  args.out[i] = x < kInfinity<float> ? sum : kNaN<float>;
}
PUONE_MODULE_MAP(casts, Args) {
  const float h = cast<float>(args.h[i]), b = cast<float>(args.b[i]);
  args.out[i] = cast<float>(cast<Half>(h * b)) + cast<float>(cast<BFloat16>(h)) +
                cast<float>(cast<uint8_t>(h)) + cast<float>(cast<Bool>(b).bits) +
                static_cast<float>(std::numeric_limits<int64_t>::max());
}
PUONE_MODULE_BLOCKS(softmax, Args) {
  const float* const x = args.x + index * args.n;
  float* const out = args.out + index * args.n;
  const auto larger = [](float a, float b) { return a < b ? b : a; };
  const auto plus = [](float a, float b) { return a + b; };
  const float top =
      block.reduce(args.n, -kInfinity<float>, [=](int64_t j) { return x[j]; }, larger);
  const float sum =
      block.reduce(args.n, 0.0f, [=](int64_t j) { return exp(x[j] - top); }, plus);
  block.each(args.n, [=](int64_t j) { out[j] = exp(x[j] - top) / sum; });
}
PUONE_MODULE_BLOCKS(sums_so_far, Args) {
  const float* const x = args.x + index * args.n;
  float* const out = args.out + index * args.n;
  block.scan(
      args.n,
      0.0f,
      [=](int64_t j) { return x[j]; },
      [](float a, float b) { return a + b; },
      [=](int64_t j, float sum) { out[j] = sum; });
}
"""


def run(work: Callable[[Driver], object], library: Path, **environment: str) -> str:
    """What `work` gives with the driver, in a process of its own."""

    def run_work(hal: Driver) -> object:
        hal.ok(hal.api.init())
        return work(hal)

    ending = with_driver(library, {"PUONE_MODULE_CACHE": "none", **environment}, run_work)
    assert str(ending) == "exit status 0"
    return ending.payload.decode()


def is_code(hal: Driver) -> bool:
    """Whether both sources give images with code for a card, and the kernels' names in it."""
    for source, names in (
        (SOURCE, (b"functions", b"casts", b"softmax", b"sums_so_far")),
        (modules.SOURCE, (b"scale", b"row_sums", b"gather")),
    ):
        image = modules.compiled(hal, source)
        code = image[image.index(ELF) :]
        assert code[18:20] == b"\xbe\x00"  # EM_CUDA
        for name in names:
            assert b"puone_module_" + name in code
    return True


@needs_cuda_driver
@needs_nvrtc
def test_sources_compile_for_the_card_without_one() -> None:
    assert run(is_code, CUDA, PUONE_CUDA_NVRTC=str(NVRTC), **NO_GPU) == "True"


@needs_cuda_driver
@needs_nvrtc
def test_a_target_is_any_card_that_nvrtc_knows() -> None:

    def work(hal: Driver) -> list[Status]:
        return [
            modules.try_compile(hal, modules.SOURCE, abi.ModuleOptions(target=target))[0]
            for target in (b"sm_90", b"sm_80", b"sm_100", b"sm_71", b"sm_90x", b"sm_", b"v4")
        ]

    expected = [Status.OK] * 3 + [Status.INVALID_ARGUMENT] * 4
    assert run(work, CUDA, PUONE_CUDA_NVRTC=str(NVRTC), **NO_GPU) == str(expected)


@needs_standin
@pytest.mark.parametrize("chosen", ["none", "/no/such/library.so"])
def test_without_nvrtc_the_text_says_what_was_looked_for(chosen: str) -> None:
    def work(hal: Driver) -> str:
        target = hal.module().target(-1, byref(abi.ModuleTarget()))
        statuses = (Status(target), modules.try_compile(hal, modules.SOURCE)[0])
        assert statuses == (Status.UNSUPPORTED,) * 2
        return hal.message()

    text = run(work, STANDIN, PUONE_CUDA_NVRTC=chosen)
    assert f"PUONE_CUDA_NVRTC={chosen}" in text and "libnvrtc.so" in text
