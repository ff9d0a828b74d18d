# SPDX-License-Identifier: BSD-3-Clause
"""The kernels' known answers by the code that nvcc made of them, on the executor. Each operand has
a block of its own size, and outputs have no contents before, so that the executor sees what no
comparison can."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from driver_in_child import unused_driver
from ptx_executor import CUDA_PTX

from hal_conformance import answering, contract
from hal_conformance.abi import Status
from hal_conformance.answers import (
    STORAGE,
    Case,
    In,
    InOut,
    Out,
    Placement,
    Workspace,
    decode,
    encode,
)
from hal_conformance.driver import Driver
from hal_conformance.known_answers import known_answers
from hal_conformance.process import run_in_child

ENVIRONMENT = {
    "PUONE_STANDIN_DEVICES": "1",
    "PUONE_STANDIN_MEMORY": "65536",  # addresses, of which few are touched
    "PUONE_STANDIN_UNGUARDED": "1",
    "PUONE_CUDA_BLAS": "none",
    "PUONE_CUDA_DNN": "none",
    "PUONE_CUDA_NCCL": "none",
}
#: Of one kernel's wrong answers.
SHOWN = 5


class ExactLaunch(answering.Launch):
    """Of blocks without anything around them."""

    def _place(self, operand: Any, path: str) -> Any:
        shape: tuple[int, ...]
        if isinstance(operand, Workspace):
            shape, placement = (operand.bytes,), Placement(operand.bytes, 0, (1,))
        else:
            shape = answering._shape(operand)
            placement = operand.layout(shape, STORAGE[operand.dtype].itemsize)
        # No address is that of another block, not even of an empty one.
        start = self._driver.malloc(max(1, placement.bytes))
        block = answering._Block(path, operand, start, np.empty(0, np.uint8), placement, shape)
        if isinstance(operand, In | InOut):
            self._write(block, np.broadcast_to(self._elements(operand), shape))
        self._blocks.append(block)
        return block

    def _elements(self, operand: In | InOut) -> Any:
        values = operand.values if isinstance(operand, In) else operand.before
        return encode(values, operand.dtype)

    def _write(self, block: Any, elements: Any) -> None:
        image = np.full(block.placement.bytes, answering.FILLER, np.uint8)
        _view(block, image)[...] = elements
        self._driver.write(block.address, image.tobytes(), self._stream)

    def _read(self, block: Any) -> Any:
        raw = self._driver.read(block.address, block.placement.bytes, self._stream)
        return _view(block, np.frombuffer(raw, np.uint8).copy())

    def judge(self) -> None:
        try:
            self._judge()
        finally:
            for block in self._blocks:
                self._driver.free(block.address)

    def _outputs(self) -> Iterator[Any]:
        """The blocks that the kernel writes."""
        return (block for block in self._blocks if isinstance(block.operand, Out | InOut))

    def _judge(self) -> None:
        unchecked = {}
        for block in self._outputs():
            elements = decode(self._read(block), block.operand.dtype)
            if block.operand.values is None:
                unchecked[block.path] = elements
            else:
                answering.compare(elements, block.operand, f"{self._case}: {block.path}")
        if self._case.check is not None:
            self._case.check(unchecked)


def _view(block: Any, image: Any) -> Any:
    dtype = STORAGE[block.operand.dtype]
    return np.ndarray(
        block.shape, dtype, image.data, block.placement.offset, block.placement.strides
    )


def driver_of(library: Path) -> Driver:
    """The driver, loaded into this process and ready."""
    driver = unused_driver(library)
    driver.ok(driver.api.init())
    return driver


def wrong_answers(
    cases: Iterable[Case], launch: type[ExactLaunch] = ExactLaunch, at_most: int = 1000
) -> tuple[int, list[str]]:
    """How many cases the driver took, and what was wrong, in this process."""
    driver = driver_of(CUDA_PTX)
    taken, wrong = 0, []
    for case in cases:
        if answering.not_taken(driver, case):
            continue
        taken += 1
        try:
            answering.answer(driver, case, launch)
        except AssertionError as error:
            wrong.append(str(error))
            if Status.DEVICE_LOST.name in str(error) or len(wrong) == at_most:
                break
    return taken, wrong


def in_child(
    work: Callable[[], Any], seconds: float = 900, environment: Mapping[str, str] | None = None
) -> Any:
    """What `work` gives, of what JSON knows, in a child with the environment of these tests, where
    `environment` does not say otherwise."""

    def send() -> bytes:
        os.environ.update({**ENVIRONMENT, **(environment or {})})
        return json.dumps(work()).encode()

    ending = run_in_child(send, seconds)
    assert str(ending) == "exit status 0", ending
    return json.loads(ending.payload)


def answers_of(kernel: str) -> tuple[int, list[str]]:
    return wrong_answers(known_answers(kernel))


def check(kernels: Iterable[str]) -> None:
    """Assert that the kernels give their known answers."""
    wrong = []
    for name in kernels:
        taken, found = in_child(partial(answers_of, name))
        assert taken, f"the driver takes no case of {name}"
        wrong += found[:SHOWN]
    assert not wrong, "\n".join(wrong)


def families() -> Iterator[tuple[str, list[str]]]:
    all: dict[str, list[str]] = {}
    for name, kernel in contract.kernels().items():
        all.setdefault(kernel.family, []).append(name)
    yield from all.items()
