# SPDX-License-Identifier: BSD-3-Clause
"""The results in double precision if every number on the way is a rounding or a few away.

Where digits cancel, and beside a kink of a derivative, the last places of the inputs decide what
the result is, and the rounding of any step does the same. A device is right there if its result
lies among those of such inputs and such steps (Higham, Accuracy and Stability of Numerical
Algorithms, 1.5; the steps as in the CESTAC method of Vignes). Asked only for elements that every
other rule finds wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from torch_conformance.authoring.truth import WIDE
from torch_conformance.opinfo.sample import Sample, tensors
from torch_conformance.opinfo.truth import Act, in_double

# So many neighbours lie on the same side of a kink through a sample once in 32768 cases.
NEIGHBOURS = 16

# The part of a range by which roundings that were not tried may exceed it on each side.
MARGIN = 0.25

# Units of the last place by which each number is moved. Sums in single precision round at every
# step; those in 16 bits are made in single precision and round once.
PLACES = {torch.float16: 1, torch.bfloat16: 1}
MORE_PLACES = 4

# After so many of them it is asked whether the range is wide enough already: it mostly is.
LOOKS = (2, 4, 8, NEIGHBOURS)

Range = tuple[Tensor, Tensor]


class Neighbours:
    """The results of the neighbours of one sample, computed when they are asked for."""

    def __init__(self, act: Act, sample: Sample, dtype: torch.dtype) -> None:
        """`dtype` is that of the results: inputs may have more or less precision."""
        self._act, self._sample, self._dtype = act, sample, dtype
        self._generator = torch.Generator().manual_seed(0)
        self._found: list[list[Tensor]] = []  # first those of the sample itself
        self._impossible = False

    def ranges(self, place: int) -> Iterator[Range]:
        """The least and the largest value of each element of one result, more and more apart.

        None if that cannot be computed: some operators have no double precision.
        """
        for count in LOOKS:
            while len(self._found) <= count and not self._impossible:
                self._try_another()
            if self._impossible:
                return
            results = [found[place] for found in self._found[: count + 1]]
            yield _range(real(torch.stack(results)))

    def _try_another(self) -> None:
        try:
            found = list(tensors(self._of_sample() if not self._found else self._of_neighbour()))
        except Exception:
            self._impossible = True
            return
        first = self._found[0] if self._found else found
        self._impossible = [t.shape for t in found] != [t.shape for t in first]
        self._found.append(found)

    def _of_sample(self) -> Any:
        return self._act(in_double(self._sample))

    def _of_neighbour(self) -> Any:
        neighbour = _neighbour(self._sample, self._generator, torch.finfo(self._dtype).eps)
        with _Rounding(self._generator, _step(self._dtype)):
            return self._act(neighbour)


def _range(stacked: Tensor) -> Range:
    low, high = stacked.amin(0), stacked.amax(0)
    margin = MARGIN * (high - low)
    return low - margin, high + margin


def real(tensor: Tensor) -> Tensor:
    """Complex numbers as their parts, in one more dimension."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


class _Rounding(TorchDispatchMode):
    """Moves every floating-point number that an operator writes by a step, up or down.

    An operator that PyTorch can decompose is decomposed, for it rounds at each step: what
    log_softmax's derivative loses in `1 - exp(x)` shows in no number that it reads or writes.
    """

    def __init__(self, generator: torch.Generator, step: float) -> None:
        super().__init__()
        self._generator, self._step = generator, step

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # Composites come here where autograd is left out, as inside of a decomposition.
        steps = _decompositions().get(func, func.decompose)
        with self:
            decomposed = steps(*args, **(kwargs or {}))
        if decomposed is not NotImplemented:
            return decomposed
        result = func(*args, **(kwargs or {}))
        if all(_is_written(each) for each in func._schema.returns):
            for tensor in tensors(result):
                if tensor.dtype in WIDE and not tensor._is_zerotensor():
                    tensor.mul_(1 + _signs(tensor, self._generator) * self._step)
        return result


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Operators and what PyTorch makes of them for compilers, from simpler ones.

    `core_aten_decompositions` has the composites as well, which takes 0.2 s in each process.
    """
    from torch._decomp import _core_aten_decompositions_post_autograd

    return _core_aten_decompositions_post_autograd()


def _is_written(result: Any) -> bool:
    """Whether a result of an operator is not a view."""
    return result.alias_info is None or result.alias_info.is_write


def _signs(tensor: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, tensor.shape, generator=generator).double() * 2 - 1


def _step(dtype: torch.dtype, finest: float = 1.0) -> float:
    return PLACES.get(dtype, MORE_PLACES) * min(torch.finfo(dtype).eps, finest)


def _neighbour(sample: Sample, generator: torch.Generator, finest: float) -> Sample:
    """The sample in double precision, each number some units larger or smaller."""

    def moved(tensor: Tensor) -> Tensor:
        if tensor.dtype not in WIDE:
            return tensor
        moves = _signs(tensor, generator) * _step(tensor.dtype, finest)
        wide = tensor.detach().to(WIDE[tensor.dtype]) * (1 + moves)
        return wide.requires_grad_(tensor.requires_grad)

    return in_double(sample.map(moved))
