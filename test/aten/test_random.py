# SPDX-License-Identifier: BSD-3-Clause
"""Random operators: which number an element gets, that nothing else decides it, and bounds.

What every backend must do is in torch_conformance.checks.random; this is what this one promises
beyond it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from interpreter import Python
from torch import Tensor

import torch_puone as puone

DEVICE = "puone"
MASK = 2**32 - 1


def philox(counter: int, key: int) -> list[int]:
    """Philox 4x32-10 in Python: four words of 32 bits."""
    c = [counter >> shift & MASK for shift in (0, 32, 64, 96)]
    k = [key & MASK, key >> 32 & MASK]
    for _ in range(10):
        even, odd = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [odd >> 32 ^ c[1] ^ k[0], odd & MASK, even >> 32 ^ c[3] ^ k[1], even & MASK]
        k = [k[0] + 0x9E3779B9 & MASK, k[1] + 0xBB67AE85 & MASK]
    return c


def words(seed: int, offset: int, count: int) -> list[int]:
    """The words of 32 bits that elements 0, 1, 2 ... get when each draws one."""
    blocks = (philox(group << 64 | offset // 4, seed) for group in range(count // 4 + 1))
    return [word for block in blocks for word in block][:count]


def doubles(seed: int, offset: int, count: int) -> list[int]:
    """The same when each draws 64 bits."""
    narrow = words(seed, offset, 2 * count)
    return [low | high << 32 for low, high in zip(narrow[::2], narrow[1::2], strict=True)]


def state(seed: int, offset: int) -> Tensor:
    """A generator's state."""
    raw = seed.to_bytes(8, "little") + offset.to_bytes(8, "little")
    return torch.tensor(list(raw), dtype=torch.uint8)


def generator(seed: int, offset: int = 0) -> torch.Generator:
    result = torch.Generator(device=DEVICE)
    result.set_state(state(seed, offset))
    return result


def offset_of(source: torch.Generator) -> int:
    return int.from_bytes(bytes(source.get_state()[8:].tolist()), "little")


STATES = [(0, 0), (1, 4), (2**64 - 1, 8), (123456789 << 30, 2**63), (7, 4 * (2**33 + 5))]


def test_the_reference_gives_the_published_answers() -> None:
    ones = 2**128 - 1
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(ones, ones >> 64) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox(0x0370734413198A2E85A308D3243F6A88, 0x299F31D0A4093822) == [
        0xD16CFE09,
        0x94FDCCEB,
        0x5001E420,
        0x24126EA1,
    ]


@pytest.mark.parametrize(("seed", "offset"), STATES)
@pytest.mark.parametrize("count", [1, 5, 1030])
class TestKnownAnswers:
    def test_full_range_integers_are_the_bits_themselves(
        self, seed: int, offset: int, count: int
    ) -> None:
        x = torch.empty(count, dtype=torch.int64, device=DEVICE)
        x.random_(-(2**63), None, generator=generator(seed, offset))
        assert [value & 2**64 - 1 for value in x.tolist()] == doubles(seed, offset, count)

    def test_bounded_integers_are_the_high_part_of_a_product(
        self, seed: int, offset: int, count: int
    ) -> None:
        x = torch.randint(-5, 1000, (count,), generator=generator(seed, offset), device=DEVICE)
        expected = [bits * 1005 // 2**64 - 5 for bits in doubles(seed, offset, count)]
        assert x.tolist() == expected

    def test_uniform_numbers_are_the_high_bits_scaled(
        self, seed: int, offset: int, count: int
    ) -> None:
        x = torch.rand(count, generator=generator(seed, offset), device=DEVICE)
        assert x.tolist() == [(word >> 8) / 2**24 for word in words(seed, offset, count)]
        y = torch.rand(count, generator=generator(seed, offset), device=DEVICE, dtype=torch.float64)
        assert y.tolist() == [(bits >> 11) / 2**53 for bits in doubles(seed, offset, count)]

    def test_normal_numbers_are_points_on_circles(self, seed: int, offset: int, count: int) -> None:
        x = torch.randn(count, generator=generator(seed, offset), device=DEVICE).tolist()
        source = words(seed, offset, count + 3)
        for i in range(0, count - 1, 2):
            radius, angle = source[i], source[i + 1]
            r = math.sqrt(-2 * math.log(min(((radius >> 1) + 0.5) / 2**31, 1 - 2**-24)))
            place = (angle + 2**29) % 2**30 - 2**29  # in its quadrant, from the middle
            turn = (angle >> 30) / 4 + (place + 0.5) / 2**32
            assert x[i] == pytest.approx(r * math.cos(2 * math.pi * turn), abs=2e-5)
            assert x[i + 1] == pytest.approx(r * math.sin(2 * math.pi * turn), abs=2e-5)


Draw = Callable[[Tensor, torch.Generator | None], Tensor]

FILLS: dict[str, Draw] = {
    "uniform": lambda x, g: x.uniform_(-1, 3, generator=g),
    "normal": lambda x, g: x.normal_(1, 2, generator=g),
    "log_normal": lambda x, g: x.log_normal_(0.5, 0.5, generator=g),
    "exponential": lambda x, g: x.exponential_(0.5, generator=g),
    "cauchy": lambda x, g: x.cauchy_(1, 2, generator=g),
    "geometric": lambda x, g: x.geometric_(0.05, generator=g),
    "random": lambda x, g: x.random_(0, 100, generator=g),
    "bernoulli": lambda x, g: x.bernoulli_(0.3, generator=g),
    "bernoulli_tensor": lambda x, g: x.bernoulli_(torch.full_like(x, 0.3), generator=g),
}

MAPS: dict[str, Draw] = {
    "bernoulli_out": lambda x, g: torch.bernoulli(x * 0 + 0.3, generator=g),
    "poisson_small": lambda x, g: torch.poisson(x * 0 + 3.5, generator=g),
    "poisson_large": lambda x, g: torch.poisson(x * 0 + 40, generator=g),
    "binomial_small": lambda x, g: torch.binomial(x * 0 + 10, x * 0 + 0.3, generator=g),
    "binomial_large": lambda x, g: torch.binomial(x * 0 + 100, x * 0 + 0.7, generator=g),
    "gamma": lambda x, g: torch._standard_gamma(x * 0 + 2.5, generator=g),
    "gamma_below_one": lambda x, g: torch._standard_gamma(x * 0 + 0.4, generator=g),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", FILLS)
def test_neither_strides_nor_size_decide_a_number(name: str, dtype: torch.dtype) -> None:
    fill = FILLS[name]

    def like(x: Tensor) -> Tensor:
        return fill(x, generator(5)).cpu()

    flat = like(torch.zeros(6 * 7 * 10, dtype=dtype, device=DEVICE))
    whole = flat.reshape(6, 7, 10)
    zeros = torch.zeros(10, 7, 30, dtype=dtype, device=DEVICE)
    assert torch.equal(like(zeros[:, :, :6].permute(2, 1, 0)), whole)
    assert torch.equal(like(zeros[:6, :, ::3]), whole)
    assert torch.equal(like(zeros.flatten()[7:10]), flat[:3])


@pytest.mark.parametrize("name", MAPS)
def test_neither_strides_nor_broadcasting_decide_a_sample(name: str) -> None:
    draw = MAPS[name]
    flat = draw(torch.zeros(60, device=DEVICE), generator(5)).cpu()
    shuffled = draw(torch.zeros(10, 6, device=DEVICE).t(), generator(5)).cpu()
    expanded = draw(torch.zeros(1, device=DEVICE).expand(6, 10), generator(5)).cpu()
    assert torch.equal(shuffled, flat.reshape(6, 10))
    assert torch.equal(expanded, flat.reshape(6, 10))


def test_dropout_keeps_the_layout_but_numbers_elements_in_their_order() -> None:
    x = torch.ones(2, 3, 8, 8, device=DEVICE)
    torch.manual_seed(3)
    expected = torch.nn.functional.dropout(x, 0.4).cpu()
    torch.manual_seed(3)
    last = torch.nn.functional.dropout(x.to(memory_format=torch.channels_last), 0.4)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(last.cpu(), expected)


# ---- one digest of everything, for processes in other circumstances --------------------------


def everything() -> str:
    """A digest of the bits of all distributions, on more elements than one core gets."""
    digest = hashlib.sha256()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for draw in (*FILLS.values(), *MAPS.values()):
            x = draw(torch.zeros(70_001, dtype=dtype, device=DEVICE), generator(11, 4))
            digest.update(x.cpu().contiguous().view(torch.uint8).numpy(force=True).tobytes())
    weights = torch.rand(300, 50, device=DEVICE, generator=generator(1))
    samples = torch.multinomial(weights, 300, replacement=True, generator=generator(2))
    order = torch.randperm(70_001, device=DEVICE, generator=generator(3))
    torch.manual_seed(4)
    kept = torch.nn.functional.dropout(torch.ones(70_001, device=DEVICE), 0.4)
    slopes = torch.nn.functional.rrelu(-torch.ones(70_001, device=DEVICE), training=True)
    for x in (samples, order, kept, slopes):
        digest.update(x.cpu().view(torch.uint8).numpy(force=True).tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def here() -> str:
    return everything()


@pytest.mark.parametrize(
    "environment",
    [
        {"PUONE_SIM_CORES": "1", "PUONE_SIM_ISA": "baseline"},
        {"PUONE_SIM_CORES": "3", "PUONE_SIM_SEED": "1"},
        {"PUONE_SIM_ISA": "v3"},
        {"PUONE_SIM_ISA": "v4"},
    ],
    ids=lambda environment: ",".join(environment.values()),
)
def test_neither_cores_nor_schedule_nor_instruction_set_change_a_bit(
    here: str, environment: dict[str, str], python: Python
) -> None:
    code = "import sys; sys.path += ['test', 'test/aten']; import torch_puone, test_random\n"
    done = python(code + "print(test_random.everything())", env=environment, timeout=300)
    if "PUONE_SIM_ISA" in done.stderr:
        pytest.skip(f"not built or not usable here: {environment['PUONE_SIM_ISA']}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [here]


def test_every_source_that_draws_is_compiled_without_contraction(root: Path) -> None:
    headers = ("portable_math.h", "random.h", "uniform_bits.h")
    kernels = root / "csrc" / "kernels"
    drawing = {
        source.name
        for source in kernels.glob("*.cpp")
        if any(f'"kernels/{header}"' in source.read_text() for header in headers)
    }
    listed = (kernels / "kernels.cmake").read_text().partition("set_source_files_properties(")[2]
    listed = listed.partition("PROPERTIES COMPILE_OPTIONS -ffp-contract=off")[0]
    assert drawing == set(re.findall(r"/(\w+\.cpp)", listed))


def test_streams_do_not_change_a_bit_and_nothing_waits() -> None:
    side = puone.Stream()
    source = generator(9)
    first = torch.rand(1000, device=DEVICE, generator=source)
    second = torch.rand(1000, device=DEVICE, generator=source)
    source.set_state(state(9, 0))
    with puone.stream(side):
        puone._sleep_ms(100)
        late = torch.rand(1000, device=DEVICE, generator=source)
        assert not side.query()
    early = torch.rand(1000, device=DEVICE, generator=source)
    side.synchronize()
    assert torch.equal(late.cpu(), first.cpu())
    assert torch.equal(early.cpu(), second.cpu())


def is_random(operator: str) -> bool:
    name, _, overload = operator.partition(".")
    schema = str(torch._C._get_schema(name, overload))
    return "Generator" in schema or "dropout" in schema


def test_no_random_operator_falls_back() -> None:
    x = torch.zeros(9, device=DEVICE)
    for draw in (*FILLS.values(), *MAPS.values()):
        draw(x.clone(), None)
    torch.normal(x, x + 1)
    torch.normal(x, 2.0)
    torch.normal(0.0, x + 1)
    torch.randperm(9, device=DEVICE)
    torch.multinomial(x + 1, 20, replacement=True)
    torch._sample_dirichlet(x + 1)
    torch.nn.functional.dropout(x.requires_grad_(), 0.5).backward(torch.ones_like(x))
    torch.nn.functional.rrelu(x, training=True)
    assert is_random("aten::uniform_")
    assert [name for name in puone._fallback_counts() if is_random(name)] == []


# ---- offsets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FILLS, *MAPS])
def test_a_call_advances_by_the_numbers_of_an_element_whatever_the_size(name: str) -> None:
    draw = (FILLS | MAPS)[name]
    until_accepted = name.startswith(("poisson", "binomial", "gamma"))
    for size in (1, 1000):
        source = generator(1, 40)
        draw(torch.zeros(size, device=DEVICE), source)
        assert offset_of(source) == 40 + (256 if until_accepted else 4)
    source = generator(1, 40)
    draw(torch.zeros(0, device=DEVICE), source)
    assert offset_of(source) == 40


# ---- bounds and special values ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 2), (-1, 0), (-3, 1000), (5, 5), (0, 1e-3)])
def test_uniform_stays_below_its_upper_bound(dtype: torch.dtype, low: float, high: float) -> None:
    x = torch.empty(300_000, dtype=dtype, device=DEVICE).uniform_(low, high).cpu()
    bounds = torch.tensor([low, high], dtype=dtype)
    assert x.min() >= bounds[0]
    assert x.max() < bounds[1] or low == high == x.max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e4])
def test_exponential_is_neither_zero_nor_infinite(dtype: torch.dtype, rate: float) -> None:
    x = torch.empty(300_000, dtype=dtype, device=DEVICE).exponential_(rate).cpu()
    assert x.min() > 0
    assert x.isfinite().all()
    assert torch.empty(3, dtype=dtype, device=DEVICE).exponential_(math.inf).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int64])
def test_geometric_ends_at_the_end_of_an_integer_type(dtype: torch.dtype) -> None:
    x = torch.empty(1000, dtype=dtype, device=DEVICE).geometric_(1e-30).cpu()
    assert x.min() > 0
    assert (x >= torch.iinfo(dtype).max - 1024).all()


def test_bernoulli_is_sure_where_it_must_be() -> None:
    for p in (0.0, 1.0):
        assert (torch.empty(100_000, device=DEVICE).bernoulli_(p) == p).all()
        assert (torch.bernoulli(torch.full((100_000,), p, device=DEVICE)) == p).all()


def test_permutations_are_permutations_and_equally_likely() -> None:
    for dtype in (torch.int64, torch.int32, torch.int16, torch.float32, torch.float64):
        x = torch.randperm(1234, dtype=dtype, device=DEVICE).cpu()
        assert torch.equal(x.sort().values, torch.arange(1234, dtype=dtype))
    assert torch.randperm(0, device=DEVICE).tolist() == []
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(2400):
        key = tuple(torch.randperm(4, device=DEVICE).tolist())
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 24
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 60  # 23 degrees of freedom


def test_samples_follow_their_weights_and_never_hit_zero_weight() -> None:
    weights = torch.tensor([[0.0, 1, 0, 3, 0], [2.0, 0, 0, 0, 2]], device=DEVICE)
    for dtype in (torch.float32, torch.float64, torch.float16):
        drawn = torch.multinomial(weights.to(dtype), 40_000, replacement=True).cpu()
        for row, expected in ((0, [0, 0.25, 0, 0.75, 0]), (1, [0.5, 0, 0, 0, 0.5])):
            shares = torch.bincount(drawn[row], minlength=5) / 40_000
            assert torch.allclose(shares, torch.tensor(expected), atol=0.015)
            assert (shares == 0).tolist() == [share == 0 for share in expected]
    apart = torch.multinomial(torch.ones(50, 20, device=DEVICE), 20).cpu()
    assert torch.equal(apart.sort(1).values, torch.arange(20).expand(50, 20))


MOMENTS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "uniform": (lambda x: x.uniform_(-1, 3), 1, 16 / 12),
    "normal": (lambda x: x.normal_(1, 2), 1, 4),
    "exponential": (lambda x: x.exponential_(0.5), 2, 4),
    "log_normal": (
        lambda x: x.log_normal_(0.5, 0.5),
        math.exp(0.625),
        (math.exp(0.25) - 1) * math.exp(1.25),
    ),
    "geometric": (lambda x: x.geometric_(0.25), 4, 12),
    "bernoulli": (lambda x: x.bernoulli_(0.3), 0.3, 0.21),
    "poisson_small": (lambda x: torch.poisson(x + 3.5), 3.5, 3.5),
    "poisson_middle": (lambda x: torch.poisson(x + 10.5), 10.5, 10.5),
    "poisson_large": (lambda x: torch.poisson(x + 1000), 1000, 1000),
    "binomial_small": (lambda x: torch.binomial(x + 10, x + 0.3), 3, 2.1),
    "binomial_large": (lambda x: torch.binomial(x + 100, x + 0.7), 70, 21),
    "gamma": (lambda x: torch._standard_gamma(x + 2.5), 2.5, 2.5),
    "gamma_below_one": (lambda x: torch._standard_gamma(x + 0.4), 0.4, 0.4),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MOMENTS)
def test_mean_and_variance_are_the_distributions(name: str, dtype: torch.dtype) -> None:
    draw, mean, variance = MOMENTS[name]
    count = 200_000
    x = draw(torch.zeros(count, dtype=dtype, device=DEVICE)).cpu().double()
    assert abs(x.mean().item() - mean) < 5 * math.sqrt(variance / count)
    fourth = ((x - mean) ** 4).mean().item()
    assert abs(x.var().item() - variance) < 5 * math.sqrt((fourth - variance**2) / count)


def test_dirichlet_samples_are_parts_of_one() -> None:
    shape = torch.tensor([1.0, 2.0, 5.0], device=DEVICE).expand(20_000, 3)
    x = torch._sample_dirichlet(shape).cpu()
    assert torch.allclose(x.sum(1), torch.ones(20_000))
    assert torch.allclose(x.mean(0), torch.tensor([1, 2, 5]) / 8, atol=0.01)


@pytest.mark.parametrize("train", [True, None])
def test_dropout_scales_what_it_keeps_and_so_does_its_gradient(train: bool | None) -> None:
    x = torch.arange(1.0, 10_001).to(DEVICE)
    out, mask = torch.native_dropout(x, 0.25, train)
    assert mask.dtype == torch.bool
    assert torch.equal(out.cpu(), torch.where(mask.cpu(), x.cpu() * (1 / 0.75), 0.0))
    assert abs(mask.cpu().double().mean().item() - 0.75) < 0.02
    gradient = torch.ops.aten.native_dropout_backward(x, mask, 2.0).cpu()
    assert torch.equal(gradient, torch.where(mask.cpu(), x.cpu() * 2, 0.0))
    assert not puone._fallback_counts()


def test_dropout_of_what_no_kernel_computes_in_is_composed() -> None:
    x = torch.full((4000,), 3 + 4j, device=DEVICE)
    out, mask = torch.native_dropout(x, 0.5, True)
    kept = mask.cpu()
    assert 1800 < kept.sum() < 2200
    assert torch.equal(out.cpu(), torch.where(kept, 6 + 8j, 0))
    gradient = torch.ops.aten.native_dropout_backward(x, mask, 3.0).cpu()
    assert torch.equal(gradient, torch.where(kept, 9 + 12j, 0))


def test_dropout_of_everything_and_of_nothing() -> None:
    x = torch.full((5,), math.inf, device=DEVICE)
    out, mask = torch.native_dropout(x, 1.0, True)
    assert (out.tolist(), mask.tolist()) == ([0.0] * 5, [False] * 5)
    out, mask = torch.native_dropout(x, 0.5, False)
    assert (out.tolist(), mask.tolist()) == ([math.inf] * 5, [True] * 5)


def test_rrelu_notes_the_slopes_it_drew() -> None:
    x = torch.linspace(-1, 1, 1001, device=DEVICE)
    noise = torch.zeros_like(x)
    out = torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, True)
    assert torch.equal(out.cpu(), (x.cpu() * noise.cpu()))
    slopes = noise.cpu()
    assert (slopes[501:] == 1).all()
    assert ((slopes[:501] >= 0.1) & (slopes[:501] <= 0.3)).all()
    assert slopes[:501].unique().numel() > 400


# ---- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.rand(3, device=DEVICE, generator=g),
        lambda g: torch.randperm(3, device=DEVICE, generator=g),
        lambda g: torch.poisson(torch.ones(3, device=DEVICE), generator=g),
        lambda g: torch.multinomial(torch.ones(3, device=DEVICE), 2, True, generator=g),
    ],
)
def test_a_generator_of_another_device_is_refused(
    draw: Callable[[torch.Generator], Tensor],
) -> None:
    with pytest.raises(RuntimeError, match=r"Expected a 'puone'.*generator.*but found 'cpu'"):
        draw(torch.Generator())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: torch.bernoulli(torch.tensor([0.5, 1.5], device=DEVICE)), "p to be in"),
        (lambda: torch.poisson(torch.tensor([1.0, -1.0], device=DEVICE)), "invalid Poisson rate"),
        (
            lambda: torch.multinomial(torch.zeros(3, device=DEVICE), 2, True),
            "sum of probabilities <= 0",
        ),
        (
            lambda: torch.multinomial(torch.tensor([1, -1.0], device=DEVICE), 2, True),
            "element < 0",
        ),
    ],
)
def test_what_only_the_device_sees_is_refused_at_the_next_synchronisation(
    draw: Callable[[], Tensor], message: str
) -> None:
    draw()
    with pytest.raises(RuntimeError, match=message):
        puone.synchronize()


@pytest.mark.parametrize(
    "draw",
    [
        lambda d: torch.empty(2, dtype=torch.complex64, device=d).exponential_(),
        lambda d: torch.empty(2, dtype=torch.int64, device=d).normal_(),
        lambda d: torch.nn.functional.dropout(torch.ones(2, dtype=torch.int64, device=d)),
        lambda d: torch.empty(2, dtype=torch.bool, device=d).geometric_(0.5),
        lambda d: torch.empty(2, dtype=torch.complex64, device=d).random_(),
        lambda d: torch.empty(2, device=d).random_(5, 5),
        lambda d: torch.empty(2, device=d).uniform_(2, 1),
        lambda d: torch.empty(1, device=d).expand(4).uniform_(),
        lambda d: torch.empty(4, device=d).normal_(0, -1),
        lambda d: torch.randperm(-1, device=d),
        lambda d: torch.randperm(300, dtype=torch.uint8, device=d),
        lambda d: torch.multinomial(torch.ones(2, device=d), 3),
    ],
)
def test_what_the_cpu_refuses_is_refused_with_the_same_kind_of_error(
    draw: Callable[[str], Tensor],
) -> None:
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the CPU says which
            draw(device)
        errors.append(raised.type)
    assert errors[0] is errors[1]


class TestSharedStates:
    """graphsafe_get_state() and graphsafe_set_state(): states by reference."""

    def test_generators_with_one_state_draw_one_sequence(self) -> None:
        one, other = (torch.Generator("puone") for _ in range(2))
        one.manual_seed(5)
        alone = one.clone_state()
        other.graphsafe_set_state(one.graphsafe_get_state())
        for turn in (one, other, one):
            draws = [torch.rand(4, device="puone", generator=g) for g in (turn, alone)]
            assert torch.equal(*draws)
        assert one.get_offset() == other.get_offset() == alone.get_offset()

    def test_a_state_goes_on_where_it_was_left(self) -> None:
        generator = torch.Generator("puone").manual_seed(5)
        before = generator.graphsafe_get_state()
        generator.graphsafe_set_state(torch.Generator("puone").manual_seed(6))
        assert (generator.initial_seed(), before.initial_seed()) == (6, 5)

    def test_the_state_of_another_device_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="Expected the state of a 'puone' generator"):
            torch.Generator("puone").graphsafe_set_state(torch.Generator())
