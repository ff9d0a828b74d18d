# SPDX-License-Identifier: BSD-3-Clause
"""A call with wrong arguments raises the exception that the CPU raises."""

from __future__ import annotations

from torch_conformance.authoring.api import Device, check, noise, raised
from torch_conformance.checks.contract._calls import Write
from torch_conformance.checks.contract._wrong_arguments import WRONG
from torch_conformance.checks.contract._wrong_derivatives import DERIVATIVES


@check("contract/wrong_arguments", "ERR-001", cases=WRONG)
def wrong_arguments_raise_the_cpus_exception(dev: Device, case: str) -> None:
    """A call with wrong arguments raises the type that the CPU raises, and changes nothing."""
    _verify_refusal(dev, WRONG[case])


@check("contract/wrong_derivatives", "ERR-001", cases=DERIVATIVES)
def operands_of_derivatives_have_to_fit(dev: Device, case: str) -> None:
    """A derivative of operands that do not fit raises the type that the CPU raises."""
    _verify_refusal(dev, DERIVATIVES[case])


def _verify_refusal(dev: Device, call: Write) -> None:
    expected, x = raised(lambda: call(noise((3, 4)))), noise((3, 4)).to(dev.device())
    error = raised(lambda: call(x), by=dev.synchronize)
    kinds = (type(expected), *_raised_for_shapes(call))
    assert isinstance(error, kinds), f"{error!r} instead of {expected!r}"
    dev.assert_equal(x, noise((3, 4)))


def _raised_for_shapes(call: Write) -> list[type[Exception]]:
    """What PyTorch's own functions of shapes raise, which a backend may use, if they raise.

    They do not always agree with the CPU's kernels.
    """
    try:
        call(noise((3, 4)).to("meta"))
    except Exception as error:
        return [] if isinstance(error, NotImplementedError) else [type(error)]
    return []
