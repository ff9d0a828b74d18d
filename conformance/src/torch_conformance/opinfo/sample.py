# SPDX-License-Identifier: BSD-3-Clause
"""One set of arguments for an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from torch_conformance.opinfo import policy


def unchanged(result: Any) -> Any:
    """The result as it is."""
    return result


@dataclass(frozen=True)
class Sample:
    """Arguments on one device, and what is known about the call with them."""

    input: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    process: Callable[[Any], Any] = unchanged
    """Makes results comparable that are unique up to a sign or phase only."""
    variant: str = ""
    """What a topic did to the database's sample, in a word."""
    origin: Sample | None = None
    """The database's sample, if a topic rearranged its memory."""
    refused: bool = False
    """If the CPU raises, the device has to raise, too; else such a sample says nothing."""
    known: Any = None
    """The values that are right, where they are known: the CPU's own have to be these."""
    error: tuple[type[Exception], str] | None = None
    """The exception that is due, and the regular expression that its message has to match."""

    @classmethod
    def of(cls, made: Any) -> Sample:
        """A sample of the operator database."""
        kwargs = {name: policy.settled(value) for name, value in made.kwargs.items()}
        return cls(made.input, made.args, kwargs, made.output_process_fn_grad)

    def call(self, function: Callable[..., Any]) -> Any:
        """Call the function with the arguments."""
        return function(self.input, *self.args, **self.kwargs)

    def map(self, change: Callable[[Tensor], Tensor], **facts: Any) -> Sample:
        """The sample with every tensor in its arguments replaced."""
        return replace(
            self,
            input=_map(self.input, change),
            args=_map(self.args, change),
            kwargs=_map(self.kwargs, change),
            **facts,
        )

    def tensors(self) -> list[Tensor]:
        """Every tensor in the arguments."""
        return list(tensors((self.input, self.args, self.kwargs)))


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def _map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_map(item, change) for item in value)
    if type(value) is dict:
        return {key: _map(item, change) for key, item in value.items()}
    return value
