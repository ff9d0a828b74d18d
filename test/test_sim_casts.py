# SPDX-License-Identifier: BSD-3-Clause
"""The sim driver's copy kernel casts as torch.Tensor.to does on the CPU, between all types."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator

import pytest
import torch
from suites import SIM

from hal_conformance import kernels
from hal_conformance.abi import Status
from hal_conformance.driver import Driver
from hal_conformance.kernels import DType

pytestmark = pytest.mark.filterwarnings(
    "ignore:ComplexHalf support is experimental", "ignore:Casting complex values to real"
)

TYPES = {
    DType.BOOL: torch.bool,
    DType.UINT8: torch.uint8,
    DType.INT8: torch.int8,
    DType.INT16: torch.int16,
    DType.INT32: torch.int32,
    DType.INT64: torch.int64,
    DType.UINT16: torch.uint16,
    DType.UINT32: torch.uint32,
    DType.UINT64: torch.uint64,
    DType.FLOAT16: torch.float16,
    DType.BFLOAT16: torch.bfloat16,
    DType.FLOAT32: torch.float32,
    DType.FLOAT64: torch.float64,
    DType.COMPLEX32: torch.complex32,
    DType.COMPLEX64: torch.complex64,
    DType.COMPLEX128: torch.complex128,
}
PAIRS = list(itertools.product(TYPES, TYPES))

# Every float here fits the narrowest integer type: torch leaves the others unspecified.
REALS = [0.0, -0.0, 1.0, 0.3, 0.5, 1.5, 2.5, 3.999, 100.7, 127.0, 1e-3, 6e-8, 5.96e-8, 1e-7]
# For floating outputs also what only they can hold, and where rounding to half decides.
FLOATS = [*REALS, -1.0, -2.5, 65504.0, 65519.9, 65520.0, 1e5, 1e30, 2049.0, 2051.0, 1.0009765625]
FLOATS += [float("inf"), float("-inf"), float("nan"), 3.14159265358979, 1 / 3, 1e-40, -1e-45]


@pytest.fixture(scope="module", params=["baseline", "v3", "v4"])
def driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Driver]:
    """The driver with its kernels as compiled for one instruction set.

    A copy of the library is a driver of its own: the one that other tests of this process may use
    is not shut down here.
    """
    driver = Driver(shutil.copy(SIM, tmp_path_factory.mktemp("driver")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUONE_SIM_ISA", request.param)
        status = driver.api.init()
    if status != Status.OK and "PUONE_SIM_ISA" in driver.message():
        # `make test` compiles for this processor alone, `make test-all` for each.
        pytest.skip(f"not in this build, or not of this processor: {driver.message()}")
    driver.ok(status)
    yield driver
    driver.ok(driver.api.shutdown())


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


def source(dtype: torch.dtype, out: torch.dtype) -> torch.Tensor:
    """Values of `dtype` whose cast to `out` torch defines."""
    if dtype.is_complex:
        part = source(dtype.to_real(), out)
        return torch.complex(part.double(), part.double().flip(0)).to(dtype)
    if dtype.is_floating_point:
        values = FLOATS if out.is_floating_point or out.is_complex or out == torch.bool else REALS
        return torch.tensor(values, dtype=torch.float64).to(dtype)
    if dtype == torch.bool:
        return torch.tensor([False, True])
    info = torch.iinfo(dtype)
    wide = torch.tensor([0, 1, 2, 127, 100, 65535, 65537, 2**24 + 1, 2**53 + 1, -1, -128])
    limits = torch.tensor([info.min, info.max], dtype=dtype)
    return torch.cat([wide.to(dtype), limits])


def cast(
    driver: Driver,
    tensor: torch.Tensor,
    in_type: DType,
    out_type: DType,
    *,
    conj: bool = False,
    neg: bool = False,
) -> torch.Tensor:
    """What the kernel makes of a contiguous one-dimensional tensor."""
    stream = driver.stream()
    out_size = TYPES[out_type].itemsize
    count = tensor.numel()
    here = driver.malloc(count * tensor.element_size())
    there = driver.malloc(count * out_size)
    driver.write(here, bits(tensor), stream)
    args = kernels.copy(
        [count],
        (there, [out_size], out_type),
        (here, [tensor.element_size()], in_type),
        conj=conj,
        neg=neg,
    )
    driver.launch("copy", args, stream)
    raw = driver.read(there, count * out_size, stream)
    driver.free(here)
    driver.free(there)
    driver.ok(driver.api.stream_destroy(stream))
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(TYPES[out_type])


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal bit for bit, but any NaN is as good as another."""
    if expected.is_complex():
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if expected.is_floating_point():
        nan = expected.isnan()
        assert torch.equal(actual.isnan(), nan), (actual, expected)
        actual, expected = actual.masked_fill(nan, 0.0), expected.masked_fill(nan, 0.0)
    assert bits(actual) == bits(expected), (actual, expected)


@pytest.mark.parametrize(("in_type", "out_type"), PAIRS, ids=lambda t: t.name.lower())
def test_a_cast_gives_torchs_bits(driver: Driver, in_type: DType, out_type: DType) -> None:
    tensor = source(TYPES[in_type], TYPES[out_type])
    tensor = tensor.repeat(1 + 200 // tensor.numel())  # long enough for the vectorised loops
    assert_same(cast(driver, tensor, in_type, out_type), tensor.to(TYPES[out_type]))


@pytest.mark.parametrize("in_type", [DType.COMPLEX32, DType.COMPLEX64, DType.COMPLEX128])
@pytest.mark.parametrize("out_type", [DType.COMPLEX64, DType.COMPLEX128, DType.FLOAT32])
def test_conj_and_neg_apply_before_the_cast(
    driver: Driver, in_type: DType, out_type: DType
) -> None:
    tensor = source(TYPES[in_type], TYPES[out_type]).repeat(30)
    parts = torch.view_as_real(tensor.to(torch.complex128))
    for conj, neg in itertools.product([False, True], repeat=2):
        # By parts: the sign of a zero that torch.neg gives a complex number is not defined.
        signs = torch.tensor([-1.0 if neg else 1.0, -1.0 if neg != conj else 1.0])
        expected = torch.view_as_complex(parts * signs).to(tensor.dtype).to(TYPES[out_type])
        assert_same(cast(driver, tensor, in_type, out_type, conj=conj, neg=neg), expected)


def test_every_half_widens_and_narrows_back_exactly(driver: Driver) -> None:
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    for in_type in (DType.FLOAT16, DType.BFLOAT16):
        tensor = every.view(TYPES[in_type])
        widened = cast(driver, tensor, in_type, DType.FLOAT32)
        assert_same(widened, tensor.float())
        assert_same(cast(driver, widened, DType.FLOAT32, in_type), tensor)
