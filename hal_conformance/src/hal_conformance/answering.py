# SPDX-License-Identifier: BSD-3-Clause
"""Runs a known answer on a driver: allocates, uploads, packs the argument struct, launches, and
compares everything the kernel could have touched with what it should hold."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hal_conformance import contract
from hal_conformance.abi import Status
from hal_conformance.answers import (
    COMPLEXES,
    EPSILON,
    INTEGERS,
    STORAGE,
    TINIEST,
    Array,
    Case,
    In,
    InOut,
    Operand,
    Out,
    Placement,
    Workspace,
    decode,
    encode,
)
from hal_conformance.driver import Driver

# Bytes before and behind each block that no kernel may touch, and what they hold.
GUARD = 256
FILLER = 0xEE

# What a launch may do with memory, by the operand that stands for it.
ACCESS: dict[type, tuple[str, ...]] = {
    In: ("read", "read_write"),
    Out: ("write", "read_write"),
    InOut: ("read_write", "write"),
    Workspace: ("workspace",),
}


def not_taken(driver: Driver, case: Case) -> str | None:
    """Why the driver does not offer what the case needs, or None."""
    info = driver.kernel_info(case.kernel)
    if info is None:
        return f"the kernel {case.kernel}"
    missing = [type.name for type in case.types if not info.element_types >> type & 1]
    return f"{case.kernel} of {', '.join(missing)}" if missing else None


@dataclass
class _Block:
    """An operand in device memory: `image` is what was uploaded, guards included."""

    path: str
    operand: Operand
    address: int
    image: Array
    placement: Placement
    shape: tuple[int, ...]

    def view(self, image: Array) -> Array:
        """The operand's elements in an image of the block."""
        assert not isinstance(self.operand, Workspace)
        dtype, place = STORAGE[self.operand.dtype], self.placement
        return np.ndarray(self.shape, dtype, image.data, GUARD + place.offset, place.strides)

    def touched(self) -> Array:
        """Which bytes of the image belong to elements."""
        mask = np.zeros(self.image.shape, np.uint8)
        if isinstance(self.operand, Workspace):
            mask[GUARD:-GUARD] = 1
            return mask != 0
        size, place = STORAGE[self.operand.dtype].itemsize, self.placement
        strides = (*place.strides, 1)
        elements: Array = np.ndarray(
            (*self.shape, size), np.uint8, mask.data, GUARD + place.offset, strides
        )
        elements[...] = 1
        return mask != 0


class Launch:
    """The launch of a case: its operands in blocks of device memory, and its arguments."""

    def __init__(self, driver: Driver, case: Case, stream: int) -> None:
        self._driver, self._case, self._stream = driver, case, stream
        self._kernel = contract.kernels()[case.kernel]
        self._blocks: list[_Block] = []
        struct = self._kernel.args
        self.args = contract.struct(struct)()
        self._pack(self.args, contract.fields()[struct], case.args, "")

    def judge(self) -> None:
        """Assert that every block holds what it should."""
        unchecked = {}
        for block in self._blocks:
            raw = self._driver.read(block.address - GUARD, len(block.image), self._stream)
            found = np.frombuffer(raw, np.uint8).copy()
            where = f"{self._case}: {block.path}"
            if isinstance(block.operand, In):
                assert np.array_equal(found, block.image), f"{where}: an input was written"
                continue
            outside = ~block.touched()
            stray = np.flatnonzero(found[outside] != block.image[outside])
            assert not len(stray), f"{where}: {len(stray)} bytes beside the output were written"
            if isinstance(block.operand, Workspace):
                continue
            elements = decode(block.view(found), block.operand.dtype)
            if block.operand.values is None:
                unchecked[block.path] = elements
            else:
                compare(elements, block.operand, where)
        if self._case.check is not None:
            self._case.check(unchecked)
        else:
            assert not unchecked, f"{self._case}: nothing judges {', '.join(unchecked)}"

    # ---- packing ----

    def _pack(
        self,
        struct: ctypes.Structure,
        fields: tuple[contract.Field, ...],
        values: dict[str, Any],
        path: str,
    ) -> None:
        unknown = set(values) - {field.name for field in fields}
        assert not unknown, f"{self._case}: no fields {sorted(unknown)} in {type(struct).__name__}"
        for field in fields:
            if field.name in values:
                self._set(struct, field, values[field.name], f"{path}{field.name}")

    def _set(self, struct: Any, field: contract.Field, value: Any, path: str) -> None:
        if not field.bounds:
            self._set_one(struct, field.name, field, value, path, 0)
        elif isinstance(value, str | bytes):
            raw = value.encode() if isinstance(value, str) else value
            assert len(raw) <= field.bounds[0], f"{self._case}: {path} is too long"
            # By its offset: the attribute of a char array is a copy.
            offset = getattr(type(struct), field.name).offset
            ctypes.memmove(ctypes.addressof(struct) + offset, raw, len(raw))
        else:
            array = getattr(struct, field.name)
            for i, item in enumerate(value):
                if isinstance(item, bytes):
                    ctypes.memmove(array[i], item, len(item))
                else:
                    self._set_one(array, i, field, item, f"{path}[{i}]", i)

    def _set_one(
        self, holder: Any, key: str | int, field: contract.Field, value: Any, path: str, index: int
    ) -> None:
        if field.is_pointer:
            pointer = self._pointer(field, value, path, index)
        elif isinstance(value, dict):
            inner = holder[key] if isinstance(key, int) else getattr(holder, key)
            self._pack(inner, field.fields or contract.fields()[field.type], value, path + ".")
            return
        else:
            pointer = value
        if isinstance(key, int):
            holder[key] = pointer
        else:
            setattr(holder, key, pointer)

    def _pointer(self, field: contract.Field, value: Any, path: str, index: int) -> Any:
        if value is None:
            return contract.struct(field.type)() if field.type != "void*" else None
        expected = contract.access(field, self._kernel, index)
        assert expected in ACCESS[type(value)], (
            f"{self._case}: {path} is given as {type(value).__name__}, "
            f"and kernels.yaml says access: {expected}"
        )
        block = self._place(value, path)
        address = block.address + block.placement.offset
        if field.type == "void*":
            return address
        strides = [
            0 if size == 1 else step
            for size, step in zip(block.shape, block.placement.strides, strict=True)
        ]
        if field.type == "puone_matrix":
            batch, row, column = strides
            conj = int(isinstance(value, In) and value.conj)
            return contract.struct("puone_matrix")(address, row, column, batch, conj)
        operand = contract.struct("puone_operand")(address)
        for d, step in enumerate(reversed(strides)):
            operand.strides[d] = step
        return operand

    def _place(self, operand: Operand, path: str) -> _Block:
        """Upload the operand between guards."""
        if isinstance(operand, Workspace):
            shape: tuple[int, ...] = (operand.bytes,)
            placement = Placement(operand.bytes, 0, (1,))
        else:
            shape = _shape(operand)
            placement = operand.layout(shape, STORAGE[operand.dtype].itemsize)
        image = np.full(placement.bytes + 2 * GUARD, FILLER, np.uint8)
        start = self._driver.malloc(len(image))
        block = _Block(path, operand, start + GUARD, image, placement, shape)
        if isinstance(operand, In | InOut):
            values = operand.values if isinstance(operand, In) else operand.before
            block.view(image)[...] = encode(values, operand.dtype)
        self._driver.write(start, image.tobytes(), self._stream)
        self._blocks.append(block)
        return block


def answer(driver: Driver, case: Case, launcher: type[Launch] = Launch) -> None:
    """Launch the kernel and assert that it gives the case's answer, as the launcher judges it."""
    stream = driver.stream()
    launch = launcher(driver, case, stream)
    driver.synchronize(stream)
    started = time.monotonic()
    status, said = driver.try_launch(case.kernel, launch.args, stream)
    if status is Status.OK:
        status = Status(driver.api.stream_synchronize(stream))
        said = "" if status is Status.OK else driver.message()
    else:
        driver.synchronize(stream)
        assert case.fails is None or status is Status.INVALID_ARGUMENT, f"{case}: {status.name}"
    took = time.monotonic() - started
    assert took >= case.lasts * 0.99, f"{case}: took {took:g} s, not {case.lasts:g} s"
    if case.fails is not None:
        assert status not in (Status.OK, Status.DEVICE_LOST), f"{case}: the launch did not fail"
        assert case.fails in said, f"{case}: failed with {said!r}, not with {case.fails!r}"
        return
    assert status is Status.OK, f"{case}: {status.name}: {said}"
    launch.judge()


def _shape(operand: In | Out | InOut) -> tuple[int, ...]:
    if isinstance(operand, Out) and operand.shape is not None:
        return operand.shape
    return np.shape(operand.values if isinstance(operand, In | Out) else operand.before)


def compare(found: Array, operand: Out | InOut, where: str) -> None:
    """Assert that the numbers are those expected, within the operand's tolerance."""
    expected = np.asarray(operand.values)
    assert found.shape == expected.shape, f"{where}: shape {found.shape}, not {expected.shape}"
    if operand.dtype in INTEGERS or not (operand.ulps or operand.absolute):
        wanted = decode(encode(expected, operand.dtype), operand.dtype)
        equal = (found == wanted) | ((found != found) & (wanted != wanted))
    else:
        wanted = expected
        equal = _close(found, wanted, operand)
    for index in _first(~equal):
        off = int(np.count_nonzero(~equal))
        raise AssertionError(
            f"{where}{list(index)} is {found[index]!r}, not {wanted[index]!r} "
            f"({off} of {equal.size} elements are wrong)"
        )


def _close(found: Array, wanted: Array, operand: Out | InOut) -> Array:
    if operand.dtype in COMPLEXES:
        # The parts of a complex number share its scale.
        wanted = np.asarray(wanted, np.complex128)
        scale = np.abs(wanted)
        return _near(found.real, wanted.real, scale, operand) & _near(
            found.imag, wanted.imag, scale, operand
        )
    return _near(found, np.asarray(wanted, np.float64), np.abs(wanted), operand)


def _near(found: Array, wanted: Array, scale: Array, operand: Out | InOut) -> Array:
    epsilon, tiniest = EPSILON[operand.dtype], TINIEST[operand.dtype]
    with np.errstate(all="ignore"):
        bound = operand.ulps * np.maximum(epsilon * scale, tiniest) + operand.absolute
        near = np.abs(found - wanted) <= bound
        # A number too large for the type is an infinity, and one within the bound of it may be.
        limit = decode(encode(wanted, operand.dtype), operand.dtype)
        limit = limit if limit.dtype.kind == "f" else limit.real
    same = (found == wanted) | (found == limit) | ((found != found) & (wanted != wanted))
    return np.asarray(same | (near & np.isfinite(wanted)))


def _first(wrong: Array) -> Iterator[tuple[int, ...]]:
    """The index of the first True, if there is one."""
    for index in np.argwhere(wrong)[:1]:
        yield tuple(int(i) for i in index)
