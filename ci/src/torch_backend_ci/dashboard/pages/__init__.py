# SPDX-License-Identifier: BSD-3-Clause
"""The pages: a module for each kind of them, found by being here.

A module has one or several of these functions, which depend on their arguments alone:

    def pages(model: Model) -> Iterator[Page | File | Lasting]     what there is once
    def parts(model: Model) -> Iterator[Task]                      the same, each part in parallel
    def file_of_topic(topic: str, checks: Sequence[Check], model: Model) -> File
                                                                   one for each topic, in parallel
    def page_of_run(run: Run, model: Model) -> Page                one for each run, in parallel

The page of a run depends on the run, its bad results, the aligned run before it and the changes
since that, and on nothing later: it is made once.

Its document for programs is the class `Document`; `make schemas` writes the schema.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torch_backend_ci.dashboard.model import Check, Run
from torch_backend_ci.dashboard.page import File, Lasting, Page, Task

if TYPE_CHECKING:
    from torch_backend_ci.dashboard.read import Model

Maker = Callable[["Model"], Iterator[Page | File | Lasting]]
Parts = Callable[["Model"], Iterator[Task]]
OfTopic = Callable[[str, Sequence[Check], "Model"], File]
OfRun = Callable[[Run, "Model"], Page]


def makers() -> list[Maker]:
    """The functions that make what there is once, in the order of their modules' names."""
    return _all("pages")


def in_parts() -> list[Parts]:
    """The functions that make it in parts, which are made in parallel."""
    return _all("parts")


def of_topics() -> list[OfTopic]:
    """The functions that make a file of the checks of a topic."""
    return _all("file_of_topic")


def of_runs() -> list[OfRun]:
    """The functions that make a page of a run."""
    return _all("page_of_run")


def modules() -> list[ModuleType]:
    """The modules, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def _all(function: str) -> list[Any]:
    return [getattr(module, function) for module in modules() if hasattr(module, function)]
