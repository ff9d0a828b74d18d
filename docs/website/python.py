# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the Python interface: python.yaml says which names, autodoc does the rest."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from website.restructured import heading

DIRECTORY = "python"


class Page(NamedTuple):
    """An entry of python.yaml."""

    page: str
    title: str
    purpose: str
    module: str
    names: tuple[str, ...]

    def objects(self) -> Iterator[tuple[str, Any]]:
        """(name in the module, what it is) of everything that is listed."""
        for name in self.names:
            found: Any = importlib.import_module(self.module)
            for part in name.split("."):
                found = getattr(found, part)
            yield name, found


@functools.cache
def listed() -> tuple[Page, ...]:
    """The pages, as python.yaml has them."""
    entries = yaml.safe_load((Path(__file__).parent / "python.yaml").read_text())
    return tuple(Page(**{**entry, "names": tuple(entry["names"].split())}) for entry in entries)


def pages() -> Iterator[tuple[str, str]]:
    """(file, text) of every page."""
    for page in listed():
        text = f"{heading(page.title, '=')}\n{page.purpose}\n\n"
        text += "".join(
            f".. auto{_kind(found)}:: {page.module}.{name}\n{_options(found)}\n"
            for name, found in page.objects()
        )
        yield f"{DIRECTORY}/{page.page}.rst", text


def _kind(found: Any) -> str:
    if inspect.isclass(found):
        return "exception" if issubclass(found, BaseException) else "class"
    return "function" if callable(found) and hasattr(found, "__name__") else "data"


def _options(found: Any) -> str:
    ours = getattr(found, "__module__", "").startswith(("torch_puone", "torch_conformance"))
    return "   :members:\n" if inspect.isclass(found) and ours else ""
