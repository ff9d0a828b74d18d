# SPDX-License-Identifier: BSD-3-Clause
"""Every public name of the Python packages and of the headers is documented, and is on the site."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from website import headers, python
from website.headers import Entity, entities, introduction
from website.pages import ROOT

import torch_puone
from torch_conformance.authoring import api

HEADERS = [header for page in headers.listed() for header in page.headers]
OBJECTS = {
    f"{page.module}.{name}": found for page in python.listed() for name, found in page.objects()
}


# ---- Python -------------------------------------------------------------------------------------


def public(module: types.ModuleType) -> set[str]:
    """The names that a module defines for others, or lists in __all__."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return {name for name in listed if not inspect.ismodule(getattr(module, name))}
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


def modules() -> Iterator[types.ModuleType]:
    """The public modules of torch_puone."""
    for found in pkgutil.iter_modules(torch_puone.__path__):
        if not found.name.startswith("_"):
            yield importlib.import_module(f"torch_puone.{found.name}")


def test_every_public_name_is_on_a_page_once() -> None:
    counts = Counter(OBJECTS.keys())
    assert [name for name, count in counts.items() if count > 1] == []
    listed = {id(found) for found in OBJECTS.values()}
    missing = [
        f"{module.__name__}.{name}"
        for module in (torch_puone, api, *modules())
        for name in public(module)
        if id(getattr(module, name)) not in listed
    ]
    assert missing == []


def test_the_parts_of_the_module_are_the_same_under_both_names() -> None:
    for name in torch_puone.__all__:
        if inspect.ismodule(getattr(torch_puone, name)):
            part = importlib.import_module(f"torch.puone.{name}")
            assert part is importlib.import_module(f"torch_puone.{name}"), name


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_name_has_a_docstring_and_types(name: str) -> None:
    assert problems(name, OBJECTS[name]) == []


def problems(name: str, found: Any) -> list[str]:
    """What is not documented of an object of ours, or of a member of a class."""
    ours = getattr(found, "__module__", "").startswith(("torch_puone", "torch_conformance"))
    if not ours:
        return []
    said = [] if (found.__doc__ or "").strip() else [f"{name} has no docstring"]
    if inspect.isclass(found):
        for member, value in vars(found).items():
            if not member.startswith("_"):
                said += member_problems(f"{name}.{member}", value)
        return said
    return said + untyped(name, found)


def member_problems(name: str, value: Any) -> list[str]:
    """The same for what is in a class."""
    if isinstance(value, property):
        said = [] if (value.__doc__ or "").strip() else [f"{name} has no docstring"]
        return said + (untyped(name, value.fget) if inspect.isfunction(value.fget) else [])
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    if not inspect.isfunction(function):
        return []
    said = [] if (function.__doc__ or "").strip() else [f"{name} has no docstring"]
    return said + untyped(name, function)


def untyped(name: str, function: Any) -> list[str]:
    """The parameters of a function, and the result, that have no annotation."""
    if not inspect.isfunction(function):
        return []
    signature = inspect.signature(function)
    bare = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
    ]
    bare += ["the result"] if signature.return_annotation is signature.empty else []
    return [f"{name}: {each} has no type" for each in bare]


def test_what_is_not_documented_is_found() -> None:
    # What is to be found: no types.
    def bare(a, b: int): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    class Holder:
        """Documented."""

        def member(self) -> None: ...

        @property
        def value(self) -> int: ...  # type: ignore[empty-body]

    for each in (bare, Holder):
        each.__module__ = "torch_puone.x"
    assert problems("x", bare) == [
        "x has no docstring",
        "x: a has no type",
        "x: the result has no type",
    ]
    assert problems("y", Holder) == ["y.member has no docstring", "y.value has no docstring"]


# ---- C and C++ ----------------------------------------------------------------------------------


# The headers of a page are parsed together, which takes seconds.
@pytest.mark.parametrize("page", headers.listed(), ids=lambda page: page.page)
def test_everything_in_public_headers_has_a_comment(page: headers.Page) -> None:
    assert [header for header in page.headers if not introduction(header)] == []
    assert [
        f"{header}:{each.line}: {each.name}"
        for header in page.headers
        for each in uncommented(entities(header))
    ] == []


def uncommented(found: list[Entity]) -> Iterator[Entity]:
    """What has no comment, at any depth."""
    for entity in found:
        if not entity.comment:
            yield entity
        yield from uncommented(entity.members)


def test_every_header_is_on_a_page_that_others_include() -> None:
    """Of csrc/hal the contract, of csrc/runtime what is included from elsewhere."""
    included = {
        name
        for file in (ROOT / "csrc").rglob("*")
        if file.suffix in (".cpp", ".h") and file.parent != ROOT / "csrc/runtime"
        for name in re.findall(r'^#include "(runtime/\w+\.h)"', file.read_text(), re.MULTILINE)
    }
    generated = {"runtime/kernels.h"}
    named_in_hal = set(re.findall(r'"(\w+)" of hal\.h', _all_of("csrc/hal")))
    expected = {f"csrc/{name}" for name in included - generated}
    expected |= {f"csrc/hal/{name}.h" for name in named_in_hal} | {"csrc/hal/hal.h"}
    expected |= {
        file.relative_to(ROOT).as_posix() for file in (ROOT / "csrc/extension/include").rglob("*.h")
    }
    assert expected <= set(HEADERS), sorted(expected - set(HEADERS))


def _all_of(directory: str) -> str:
    return "\n".join(file.read_text() for file in sorted((ROOT / directory).glob("*.h")))


HEADER = """\
// SPDX-License-Identifier: BSD-3-Clause
// What it is for.
#pragma once
#define LIMIT 4
namespace puone {
// Two numbers.
struct Pair {
  int first, second; // whole
  int third;
};
// One.
int one(int of = {});
int two();

inline int bare() { return 1; }
class Hidden;
namespace detail { int inner(); }
struct Built {
  // From a number.
  explicit Built(int n) noexcept : n_(n) {}
  Built(const Built&) = delete;
 private:
  int n_;
};
} // namespace puone
"""


def test_declarations_take_the_comment_above_or_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.h").write_text(HEADER)
    monkeypatch.setattr(headers, "ROOT", tmp_path)
    found = {each.name: each for each in entities("a.h")}
    assert introduction("a.h") == "What it is for."
    assert list(found) == ["LIMIT", "Pair", "one", "bare", "Built"]
    assert found["Pair"].comment == "Two numbers."
    members = [(each.declarations, each.comment) for each in found["Pair"].members]
    assert members == [(["int first"], "whole"), (["int second"], "whole"), (["int third"], "")]
    assert found["one"].declarations == ["int one(int of = {})", "int two()"]
    assert found["one"].scope == "puone"
    assert [each.declarations for each in found["Built"].members] == [
        ["explicit Built(int n) noexcept"]
    ]
    assert [each.name for each in uncommented(list(found.values()))] == [
        "LIMIT",
        "third",
        "bare",
        "Built",
    ]
