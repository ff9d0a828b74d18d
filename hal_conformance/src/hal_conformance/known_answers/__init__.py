# SPDX-License-Identifier: BSD-3-Clause
"""Known answers: for each kernel of the contract, launches whose results are known.

One module for each family of kernels.yaml, named as the family, with a function `cases()` that
yields every case of the family's kernels. A case is data (hal_conformance.answers):

    def cases() -> Iterator[Case]:
        for dtype in REALS:
            x = rounded([[0.5, -2, 3]], dtype)
            yield Case(
                "gemm",
                f"{dtype.name.lower()} row by column",
                {
                    "dtype": dtype, "batch": 1, "m": 1, "n": 1, "k": 3,
                    "alpha": {"real": 1},
                    "out": Out([[[13.25]]], dtype, ulps=1),
                    "a": In(x[None], dtype),
                    "b": In(x[None], dtype, transposed),
                },
                types=(dtype,),
            )

- `args` names fields of the kernel's argument struct; what is not named is 0 or null. In the place
  of a pointer, a puone_operand or a puone_matrix stands an In, Out, InOut or Workspace; the runner
  makes address and strides of it, and refuses one that contradicts the `access` of kernels.yaml.
- Arrays have their outermost dimension first, as NumPy's; `dims(shape)` gives ndim and sizes as the
  structs have them. Dimensions of size 1 are broadcast (stride 0); so the output of a reduction is
  given: with the reduced dimensions kept. A layout places an array in memory: dense,
  transposed, gaps, flipped, or a function of your own.
- Expected numbers come from NumPy, mpmath or plain Python in more precision than the kernel's, not
  from another kernel or from torch on the device. Round inputs with `rounded` first, and compute
  the expected result of the rounded ones. `ulps` is as small as the kernel's method allows.
- `types` are the element types that the driver's kernel must take. A kernel or type that the driver
  lacks is reported as not offered, which is not a failure.
- Every kernel wants: every element type of its contract, NaN and infinities where they have a
  meaning, more than one layout, broadcast operands, empty operands, sizes around 1, 64 and 4096
  where kernels switch their method, and each value of each mode. `elementwise()` makes the cases
  that all elementwise kernels share; `elementwise_args()` makes their arguments. A family of many
  elementwise kernels is a table of rows (_elementwise.py), as unary_simple.py is.
- The runner surrounds each block with guards, checks that inputs stay as they are and that nothing
  beside the elements of an output is written.
- A launch that must fail has `fails`, a part of its message. Results that are random have outputs
  with a shape and without values, and a `check` that asserts something of them.

`pytest hal_conformance --driver=PATH --kernel=gemm` runs the answers of one kernel.
"""

from __future__ import annotations

import importlib
from functools import lru_cache

from hal_conformance import contract
from hal_conformance.answers import Case


def known_answers(kernel: str) -> tuple[Case, ...]:
    """The cases of a kernel of the contract."""
    return _of_family(contract.kernels()[kernel].family).get(kernel, ())


@lru_cache(maxsize=1)  # some families take 100 MB
def _of_family(family: str) -> dict[str, tuple[Case, ...]]:
    found: dict[str, dict[str, Case]] = {}
    for case in importlib.import_module(f"{__name__}.{family}").cases():
        kernel = contract.kernels().get(case.kernel)
        assert kernel is not None, f"{case}: no such kernel"
        assert kernel.family == family, f"{case} belongs into {kernel.family}.py"
        cases = found.setdefault(case.kernel, {})
        assert case.name not in cases, f"{case}: twice"
        cases[case.name] = case
    return {kernel: tuple(cases.values()) for kernel, cases in found.items()}
