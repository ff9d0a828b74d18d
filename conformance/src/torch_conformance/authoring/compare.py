# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of CPU tensors that say where and by how much two results differ.

Only CPU tensors come here: a device tensor is copied to the CPU (which synchronises) by the caller,
so that formatting a failure can never run into the backend again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring import tolerances
from torch_conformance.spec.mismatch import Mismatch

# Dtypes in which the CPU cannot compare or subtract, and a wider one in which it can.
_COMPARABLE: dict[torch.dtype, torch.dtype] = {
    torch.complex32: torch.complex64,
    torch.float8_e4m3fn: torch.float32,
    torch.float8_e4m3fnuz: torch.float32,
    torch.float8_e5m2: torch.float32,
    torch.float8_e5m2fnuz: torch.float32,
    torch.uint16: torch.int64,
    torch.uint32: torch.int64,
}

#: What is reported of a result that changes between two readings.
CHANGING = "the result differed from the expected one when it was read first, and does not any more"
#: Elements that are compared at once.
PART = 1 << 20

_ULP_BITS: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


@dataclass(frozen=True)
class Difference:
    """The first difference between two results."""

    mismatch: Mismatch
    text: str

    def __str__(self) -> str:
        return self.text


class DifferentError(AssertionError):
    """Raised by a check whose result is not the expected one."""

    def __init__(self, text: str, mismatch: Mismatch) -> None:
        super().__init__(text)
        self.mismatch = mismatch


def require_none(found: Difference | None) -> None:
    """Raise DifferentError if a difference was found."""
    __tracebackhide__ = True
    if found is not None:
        raise DifferentError(found.text, found.mismatch)


def difference(
    actual: Any,
    expected: Any,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    equal_nan: bool = True,
    where: str = "",
) -> Difference | None:
    """The first difference between two nested results, or None if there is none.

    Tensors must agree in dtype, shape and layout, and in values: ``atol + rtol * |expected|``.
    Sequences and mappings are compared element by element; everything else with ``==``.
    """
    if isinstance(expected, Tensor):
        return _tensor_difference(actual, expected, rtol, atol, equal_nan, where)
    if isinstance(expected, Mapping):
        return _mapping_difference(actual, expected, rtol, atol, equal_nan, where)
    if isinstance(expected, Sequence) and not isinstance(expected, (str, bytes)):
        return _sequence_difference(actual, expected, rtol, atol, equal_nan, where)
    return _scalar_difference(actual, expected, rtol, atol, equal_nan, where)


def metadata_difference(actual: Any, expected: Any, where: str = "") -> Difference | None:
    """Like `difference`, but blind to values: dtype, shape, layout and structure only."""
    if isinstance(expected, Tensor):
        return _metadata(actual, expected, where)
    if isinstance(expected, Sequence) and not isinstance(expected, (str, bytes)):
        if not isinstance(actual, Sequence) or len(actual) != len(expected):
            return _other_structure(actual, expected, where)
        pairs = enumerate(zip(actual, expected, strict=True))
        found = (metadata_difference(a, e, f"{where}[{i}]") for i, (a, e) in pairs)
        return next((one for one in found if one), None)
    if type(actual) is not type(expected):
        text = f"{_at(where)}{type(actual).__name__} returned, expected {type(expected).__name__}"
        return Difference(Mismatch.TYPE, text)
    return None


def tolerance(dtype: torch.dtype) -> tuple[float, float]:
    """Default (rtol, atol) for results of `dtype`; (0, 0) where results are exact."""
    return tolerances.load().dtypes.get(str(dtype).removeprefix("torch."), (0.0, 0.0))


def _at(where: str) -> str:
    return f"output{where}: " if where else ""


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor({value.dtype}, {list(value.shape)})"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)[:80]


def _other_structure(actual: Any, expected: Any, where: str) -> Difference:
    text = f"{_at(where)}structure differs: {_short(actual)} against {_short(expected)}"
    return Difference(Mismatch.STRUCTURE, text)


def _metadata(actual: Any, expected: Tensor, where: str) -> Difference | None:
    if not isinstance(actual, Tensor):
        text = f"{_at(where)}a {type(actual).__name__} was returned, expected a tensor"
        return Difference(Mismatch.TYPE, text)
    for mismatch in (Mismatch.DTYPE, Mismatch.LAYOUT):
        found, wanted = getattr(actual, mismatch.value), getattr(expected, mismatch.value)
        if found != wanted:
            return Difference(mismatch, f"{_at(where)}{mismatch} is {found}, expected {wanted}")
    if actual.shape != expected.shape:
        text = f"{_at(where)}shape is {list(actual.shape)}, expected {list(expected.shape)}"
        return Difference(Mismatch.SHAPE, text)
    return None


def _tensor_difference(
    actual: Any, expected: Tensor, rtol: float, atol: float, equal_nan: bool, where: str
) -> Difference | None:
    found = _metadata(actual, expected, where)
    if found is not None:
        return found
    actual, expected = _plain(actual), _plain(expected)
    if torch.equal(actual, expected):
        return None
    readings = _Readings()
    for part, a, e in _parts(actual, expected):
        a, e = a.clone(), e.clone()
        readings.add(part, a, e, ~_close(a, e, rtol, atol, equal_nan))
    if readings.agree:
        # They did not agree a moment ago.
        return Difference(Mismatch.SOME_VALUES, f"{_at(where)}{CHANGING}")
    if not readings.wrong:
        return None
    notes = [f"allowed rtol {rtol:g}, atol {atol:g}"] if rtol or atol else []
    return _reported(readings, actual, expected, notes, where)


def described(
    actual: Tensor, expected: Tensor, wrong: Tensor, notes: Iterable[str], where: str = ""
) -> Difference:
    """The difference between two tensors of which `wrong` says for each element if it differs.

    The notes say what was allowed.
    """
    readings = _Readings()
    for part, a, e, differs in _parts(actual, expected, wrong):
        readings.add(part, a.clone(), e, differs)
    return _reported(readings, actual, expected, notes, where)


def _reported(
    readings: _Readings, actual: Tensor, expected: Tensor, notes: Iterable[str], where: str
) -> Difference:
    extent = Mismatch.ALL_VALUES if readings.wrong == expected.numel() else Mismatch.SOME_VALUES
    return Difference(extent, _at(where) + _describe(readings, actual, expected, notes))


class _Readings:
    """What is wrong with a result, part by part.

    Every element is read once, and everything that is reported of it is about the value that was
    read: memory that work in flight still writes to has another one the next time.
    """

    def __init__(self) -> None:
        self.wrong = 0
        self.agree = True
        """Whether all elements were as expected, to the bit; a NaN never is."""
        self.first: tuple[int, Any, Any] | None = None
        """The first wrong element: its index in the flat tensor, its value, the expected one."""
        self.copied: tuple[slice, Tensor] | None = None
        """The first part with a wrong element."""
        self.ulp: int | None = None
        self._absolute: list[Tensor] = []
        self._relative: list[Tensor] = []

    def add(self, part: slice, actual: Tensor, expected: Tensor, wrong: Tensor) -> None:
        """Take a part into account; `wrong` says of each element whether it differs."""
        self.agree = self.agree and torch.equal(actual, expected)
        count = int(wrong.sum())
        if not count:
            return
        self.wrong += count
        if self.copied is None:
            at = int(wrong.view(torch.uint8).argmax())
            self.first = part.start + at, actual[at].item(), expected[at].item()
            self.copied = part, actual
        actual, expected = actual[wrong], expected[wrong]
        if expected.dtype != torch.bool:
            wide = torch.complex128 if expected.is_complex() else torch.float64
            distance = (actual.to(wide) - expected.to(wide)).abs()
            self._absolute.append(distance.max())
            self._relative.append((distance / expected.to(wide).abs()).max())
        ulp = max_ulp(actual, expected)
        self.ulp = ulp if self.ulp is None or ulp is None else max(ulp, self.ulp)

    def errors(self, dtype: torch.dtype) -> Iterator[str]:
        """The largest errors of wrong elements, in words."""
        if self._absolute:
            # The maximum of tensors, which is nan if one of them is.
            yield f"max abs error {float(torch.stack(self._absolute).max()):.3g}"
        if self._relative and (dtype.is_floating_point or dtype.is_complex):
            yield f"max rel error {float(torch.stack(self._relative).max()):.3g}"
        if self.ulp is not None:
            yield f"max {self.ulp} ULP"

    def changed(self, actual: Tensor) -> int:
        """How many elements of the first part with a wrong one have another value by now."""
        if self.copied is None:
            return 0
        part, before = self.copied
        return int((~_close(actual.reshape(-1)[part], before, 0.0, 0.0, True)).sum())


def _parts(*tensors: Tensor) -> Iterator[tuple[Any, ...]]:
    """Slices of tensors alike in shape, and the elements of each tensor there.

    A comparison of one part after the other needs little memory beside the tensors.
    """
    flat = [tensor.reshape(-1) for tensor in tensors]
    for begin in range(0, flat[0].numel(), PART):
        part = slice(begin, begin + PART)
        yield (part, *(tensor[part] for tensor in flat))


def _close(actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    if expected.is_floating_point() or expected.is_complex():
        return torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    return _exact_close(actual, expected, rtol, atol)


def _exact_close(actual: Tensor, expected: Tensor, rtol: float, atol: float) -> Tensor:
    if expected.dtype == torch.bool or (rtol == 0.0 and atol == 0.0):
        return actual == expected
    distance = (actual.double() - expected.double()).abs()
    return distance <= atol + rtol * expected.double().abs()


def _plain(tensor: Tensor) -> Tensor:
    """A strided tensor of a dtype the CPU can compare, with lazy conj and neg bits resolved."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    wider = _COMPARABLE.get(tensor.dtype)
    return tensor.to(wider) if wider is not None else tensor


def _describe(readings: _Readings, actual: Tensor, expected: Tensor, notes: Iterable[str]) -> str:
    """The sentence about a difference."""
    assert readings.first is not None
    flat, got, wanted = readings.first
    index = _unravel(flat, expected.shape)
    parts = [
        f"{readings.wrong} of {expected.numel()} elements differ; "
        f"first at {index}: {got!r}, expected {wanted!r}",
        *readings.errors(expected.dtype),
    ]
    parts.extend(notes)
    changed = readings.changed(actual)
    if changed:
        parts.append(f"{changed} elements have changed since they were compared")
    return "; ".join(parts)


def max_ulp(actual: Tensor, expected: Tensor) -> int | None:
    """The largest distance in units in the last place over the finite elements, or None."""
    bits = _ULP_BITS.get(expected.dtype)
    if bits is None or actual.dtype != expected.dtype:
        return None
    largest: int | None = None
    for _, a, e in _parts(actual, expected):
        finite = a.isfinite() & e.isfinite()
        if bool(finite.any()):
            found = _largest_distance(_ordered(a[finite], bits), _ordered(e[finite], bits))
            largest = found if largest is None else max(largest, found)
    return largest


def _ordered(values: Tensor, bits: torch.dtype) -> Tensor:
    """Sign-magnitude bits on a scale on which neighbouring floats differ by one."""
    scale = values.view(bits).to(torch.int64)
    return torch.where(scale >= 0, scale, torch.iinfo(bits).min - scale)


def _largest_distance(left: Tensor, right: Tensor) -> int:
    """The largest absolute difference of two tensors of int64, without overflow."""
    distance = torch.maximum(left, right) - torch.minimum(left, right)
    # What does not fit into 63 bits has become negative, by 2 ** 64 too small.
    beyond = distance[distance < 0]
    return int(beyond.max()) + (1 << 64) if beyond.numel() else int(distance.max())


def _unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _sequence_difference(
    actual: Any, expected: Sequence[Any], rtol: float, atol: float, equal_nan: bool, where: str
) -> Difference | None:
    if not isinstance(actual, Sequence) or len(actual) != len(expected):
        return _other_structure(actual, expected, where)
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        found = difference(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan, where=f"{where}[{i}]")
        if found is not None:
            return found
    return None


def _mapping_difference(
    actual: Any, expected: Mapping[Any, Any], rtol: float, atol: float, equal_nan: bool, where: str
) -> Difference | None:
    if not isinstance(actual, Mapping) or set(actual) != set(expected):
        return Difference(Mismatch.STRUCTURE, f"{_at(where)}keys differ")
    for key, value in expected.items():
        found = difference(
            actual[key], value, rtol=rtol, atol=atol, equal_nan=equal_nan, where=f"{where}[{key!r}]"
        )
        if found is not None:
            return found
    return None


def _scalar_difference(
    actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool, where: str
) -> Difference | None:
    if isinstance(expected, (float, complex)) and isinstance(actual, (int, float, complex)):
        if actual == expected or (equal_nan and actual != actual and expected != expected):
            return None
        if abs(actual - expected) <= atol + rtol * abs(expected):
            return None
    elif actual == expected:
        return None
    text = f"{_at(where)}{_short(actual)}, expected {_short(expected)}"
    return Difference(Mismatch.SCALAR, text)
