# SPDX-License-Identifier: BSD-3-Clause
"""What `torch.compile(backend="inductor")` finds in the place of code generators: a clear error.

When inductor is used for the first time, for any device, it reads these names from the device
module. Without them it fails late, with `KeyError: 'puone'`. It asks the classes only about graphs
with puone tensors, so graphs on the CPU are compiled as ever.
"""

from __future__ import annotations

from typing import NoReturn

#: The attributes of the device module that inductor reads.
NAMES = ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen")
MESSAGE = (
    "puone has no code generator for inductor, the default backend of torch.compile. Use "
    'torch.compile(model, backend="aot_eager"), which captures and differentiates graphs and runs '
    'their operators one by one, or backend="eager".'
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
