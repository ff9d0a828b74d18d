# SPDX-License-Identifier: BSD-3-Clause
"""What inductor finds in the place of code generators where it is too old for them: a clear error.

Without these names it fails late, with `KeyError: 'puone'`. It asks the classes only about graphs
with puone tensors, so graphs on the CPU are compiled as ever.
"""

from __future__ import annotations

from typing import NoReturn

#: The first version of PyTorch with all that the backend derives from.
SINCE = (2, 13)
MESSAGE = (
    "puone has a backend for inductor, the default of torch.compile, from PyTorch 2.13 on. Upgrade "
    'or use torch.compile(model, backend="aot_eager"), which captures and differentiates graphs '
    "and runs their operators one by one."
)


class _Refusing(type):
    """A class that raises as soon as inductor asks it for something."""

    @property
    def supports_caching(cls) -> NoReturn:
        raise NotImplementedError(MESSAGE)

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(MESSAGE)


class NoCodegen(metaclass=_Refusing):
    """Stands for each of the code generators that inductor wants."""
