# SPDX-License-Identifier: BSD-3-Clause
"""The ``@check`` decorator and the registry it fills.

A check is one verification with a stable id ``surface/topic[:case[:dtype]]``. A decorated function
with cases and dtypes becomes one check for each combination, so that every combination has its own
outcome, can be selected alone, and can be named in an expectations file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from torch_conformance.authoring.case_rule import compares_case
from torch_conformance.spec.capabilities import MEANING
from torch_conformance.spec.ids import ID, PR, REQUIREMENT_ID

if TYPE_CHECKING:
    from torch_conformance.authoring.device import Device
    from torch_conformance.spec.descriptor import Descriptor

Body = Callable[..., None]

_COUNTS_OF_MEMORY = frozenset({"memory_stats", "memory_info", "memory_history"})


@dataclass(frozen=True)
class Check:
    """One executable verification. `run` gets the device handle and raises on failure."""

    id: str
    requirements: tuple[str, ...]
    body: Body
    arguments: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    deadline: float | None = None
    isolate: bool = False
    file: str = ""
    line: int = 0
    sample_repro: Callable[[Descriptor, int, int], str | None] | None = None
    """For a check of many samples: (descriptor, seed, sample) to code that repeats the sample."""
    breadth: str = PR

    @property
    def surface(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def fills_device(self) -> bool:
        """Whether it uses up the memory of a device, which other processes may share."""
        return "memory_limit" in self.needs

    @property
    def counts_memory(self) -> bool:
        """Whether it compares what is allocated at one time with what was at another."""
        return not _COUNTS_OF_MEMORY.isdisjoint(self.needs)

    @property
    def title(self) -> str:
        """The first line of the docstring: what is verified."""
        lines = inspect.cleandoc(self.body.__doc__ or "").splitlines()
        return lines[0] if lines else ""

    def run(self, dev: Device) -> Any:
        """Call the body; a dtype argument is turned from its name into the torch.dtype."""
        arguments: dict[str, Any] = dict(self.arguments)
        if "dtype" in arguments:
            import torch

            arguments["dtype"] = getattr(torch, arguments["dtype"])
        return self.body(dev, **arguments)


class Registry:
    """Checks by id, in the order of their definition."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, check: Check) -> None:
        """Register one check; the same id from another place is an error."""
        known = self._checks.get(check.id)
        if known is not None and (known.file, known.line) != (check.file, check.line):
            raise ValueError(
                f"{check.file}:{check.line}: check id {check.id!r} is already used at "
                f"{known.file}:{known.line}"
            )
        self._checks[check.id] = check

    def from_file(self, file: str) -> list[Check]:
        """The checks defined in one source file."""
        return [check for check in self._checks.values() if check.file == file]

    def __getitem__(self, id: str) -> Check:
        return self._checks[id]

    def __contains__(self, id: object) -> bool:
        return id in self._checks

    def __iter__(self) -> Iterator[Check]:
        return iter(self._checks.values())

    def __len__(self) -> int:
        return len(self._checks)


REGISTRY = Registry()


def check(
    id: str,
    requirements: str | Iterable[str],
    *,
    needs: Iterable[str] = (),
    case_needs: Mapping[str, str] | None = None,
    cases: Iterable[str] = (),
    dtypes: Iterable[str] = (),
    deadline: float | None = None,
    isolate: bool = False,
    breadth: str = PR,
) -> Callable[[Body], Body]:
    """Register the decorated function as one check, or as one for each case and dtype.

    What differs from case to case comes from a table whose keys are the `cases`: a function that
    compares its case with a literal is refused.

    `needs` names capabilities: without them the check is `unsupported`; `case_needs` names one
    more for some of the cases. `cases` reach the function as ``case: str`` and `dtypes` as
    ``dtype: torch.dtype``; the check of one that the backend does not have is `unsupported`.
    `deadline` is in seconds. `isolate` gives the check a fresh process of its own. `breadth` is of
    the narrowest run that is to contain it, for what takes long.
    """
    required = (requirements,) if isinstance(requirements, str) else tuple(requirements)
    needed = tuple(needs)
    by_case = dict(case_needs or {})

    def register(body: Body) -> Body:
        code = inspect.unwrap(body).__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
        _verify(where, body, required, (*needed, *by_case.values()), tuple(cases), tuple(dtypes))
        if cases and compares_case(code):
            raise ValueError(
                f"{where}: {id} compares its case with a literal, which hides several behaviours "
                "in one function: use a table or separate checks"
            )
        for full_id, arguments in _expand(id, tuple(cases), tuple(dtypes)):
            if not ID.fullmatch(full_id):
                raise ValueError(
                    f"{where}: check id {full_id!r} is not surface/topic[:case[:dtype]] "
                    "with words of a-z, 0-9 and _"
                )
            REGISTRY.add(
                Check(
                    full_id,
                    required,
                    body,
                    arguments,
                    (*needed, *(by_case[v] for k, v in arguments if k == "case" and v in by_case)),
                    deadline,
                    isolate,
                    code.co_filename,
                    code.co_firstlineno,
                    breadth=breadth,
                )
            )
        return body

    return register


def _expand(
    id: str, cases: tuple[str, ...], dtypes: tuple[str, ...]
) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    axes = [(name, values) for name, values in (("case", cases), ("dtype", dtypes)) if values]
    for point in product(*(values for _, values in axes)):
        yield ":".join((id, *point)), tuple(zip((name for name, _ in axes), point, strict=True))


def _verify(
    where: str,
    body: Body,
    requirements: tuple[str, ...],
    needs: tuple[str, ...],
    cases: tuple[str, ...],
    dtypes: tuple[str, ...],
) -> None:
    for requirement in requirements or ("",):
        if not REQUIREMENT_ID.fullmatch(requirement):
            raise ValueError(f"{where}: {requirement!r} is not a requirement id like STREAM-004")
    for need in needs:
        if need not in MEANING:
            raise ValueError(f"{where}: unknown capability {need!r}; see spec/capabilities.py")
    expected = ["dev", *(["case"] if cases else []), *(["dtype"] if dtypes else [])]
    if list(inspect.signature(body).parameters) != expected:
        raise ValueError(f"{where}: the function must take ({', '.join(expected)})")
