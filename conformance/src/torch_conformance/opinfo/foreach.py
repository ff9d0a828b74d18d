# SPDX-License-Identifier: BSD-3-Clause
"""``_foreach_*``: operators on lists of tensors, as optimizers use them."""

from __future__ import annotations

from torch_conformance.authoring.check import Check
from torch_conformance.opinfo import database
from torch_conformance.opinfo.forward import Forward
from torch_conformance.opinfo.inplace import InPlace
from torch_conformance.opinfo.topic import register
from torch_conformance.spec.operator_families import LISTS, requirement

_DTYPES = frozenset({"float32", "bfloat16", "int64", "complex64", "bool"})


class Foreach(Forward):
    """Calls the function of a list."""

    name = "foreach"
    number = "010"
    sentence = "gives the CPU's results for lists of tensors."
    standard = _DTYPES

    def required(self) -> str:
        return requirement(LISTS, self.number)


class ForeachInPlace(InPlace):
    """Calls the function that changes a list of tensors."""

    name = "foreach"
    number = "011"
    sentence = "in place gives the CPU's results in the tensors of the list."
    standard = _DTYPES

    def required(self) -> str:
        return requirement(LISTS, self.number)

    def case(self) -> str:
        return f"{super().case()}_inplace"


def checks() -> list[Check]:
    """The checks of every function of lists, of both kinds; registers them."""
    operators = database.foreach()
    # _foreach_zero exists in place only; the database has that in both places.
    functional = (op for op in operators if op.op is not op.inplace_variant)
    changing = (op for op in operators if op.inplace_variant is not None)
    return register([*map(Foreach, functional), *map(ForeachInPlace, changing)], __file__)
