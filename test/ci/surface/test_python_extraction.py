# SPDX-License-Identifier: BSD-3-Clause
"""Python files become declarations without being imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from trees import installed_tree, write_tree

from torch_backend_ci.errors import CiError
from torch_backend_ci.surface import catalogue, usage
from torch_backend_ci.surface.catalogue import Catalogue, Surface
from torch_backend_ci.surface.extract import python_api
from torch_backend_ci.surface.model import Declaration


def extracted(root: Path, entries: tuple[str, ...], **files: str) -> dict[str, Declaration]:
    """The declarations of `entries`; files are named torch__sub__module for torch/sub/module.py."""
    sources = {"torch/__init__.py": ""} | {
        name.replace("__", "/") + ".py": textwrap.dedent(text) for name, text in files.items()
    }
    sources = {name.replace("/init.py", "/__init__.py"): text for name, text in sources.items()}
    surfaces = Catalogue((Surface("s", "title", python=entries),))
    return {d.name: d for d in python_api.extract(write_tree(root, sources), surfaces)}


def of_module(root: Path, source: str) -> dict[str, Declaration]:
    """The declarations of a module torch.m with this source."""
    return extracted(root, ("torch.m",), torch__m=source)


def test_a_function_has_its_parameters(tmp_path: Path) -> None:
    found = of_module(tmp_path, "def f(a, /, b: int = 1, *rest, c='x', **more) -> str: ...\n")
    assert found["torch.m.f"].text == "def f(a, /, b: int = 1, *rest, c='x', **more) -> str"
    assert found["torch.m.f"].facts["parameters"] == [
        {"name": "a", "kind": "positional_only"},
        {"name": "b", "default": "1"},
        {"name": "rest", "kind": "var_positional"},
        {"name": "c", "kind": "keyword_only", "default": "'x'"},
        {"name": "more", "kind": "var_keyword"},
    ]
    assert (found["torch.m.f"].file, found["torch.m.f"].line) == ("torch/m.py", 1)


def test_a_class_has_bases_methods_properties_and_constants(tmp_path: Path) -> None:
    found = of_module(
        tmp_path,
        """\
        class A(Base, torch.B):
            limit = 3
            table = compute()
            def __init__(self, x): self.hidden = x
            def method(self, y): ...
            @staticmethod
            def free(z): ...
            @property
            def p(self): ...
            @p.setter
            def p(self, value): ...
            @abstractmethod
            def must(self): ...
            def asked(self):
                "Text."
                raise NotImplementedError("override me")
            def _private(self): ...
        """,
    )
    facts = {name.removeprefix("torch.m."): d.facts for name, d in found.items()}
    assert facts["A"] == {"bases": ["Base", "torch.B"]}
    assert facts["A.limit"] == {"value": "3"}
    assert facts["A.table"] == {}
    assert facts["A.__init__"] == {"parameters": [{"name": "x"}]}
    assert facts["A.method"] == {"parameters": [{"name": "y"}]}
    assert facts["A.free"] == {"parameters": [{"name": "z"}], "decorators": ["staticmethod"]}
    assert facts["A.p"] == {"property": True, "writable": True}
    assert facts["A.must"] == {"decorators": ["abstractmethod"], "abstract": True}
    assert facts["A.asked"] == {"raises": True}
    assert "A.hidden" not in facts and "A._private" not in facts


def test_a_dataclass_has_the_constructor_that_its_fields_make(tmp_path: Path) -> None:
    source = """\
    @dataclasses.dataclass
    class D:
        a: int
        b: str = "x"
        shared = 1
        of_all: ClassVar[int] = 2
    """
    constructor = of_module(tmp_path, source)["torch.m.D.__init__"]
    assert constructor.facts["parameters"] == [{"name": "a"}, {"name": "b", "default": "'x'"}]


def test_what_an_init_passes_on_is_found_where_it_is_defined(tmp_path: Path) -> None:
    found = extracted(
        tmp_path,
        ("torch.p",),
        torch__p__init="""\
        from os import path
        from ._hidden import f
        from torch.elsewhere import g, h
        from .stars import *
        __all__ = ["f", "g"]
        """,
        torch__p___hidden="from .deep import f\n",
        torch__p__deep="def f(x): ...\n",
        torch__elsewhere="def g(): ...\ndef h(): ...\n",
        torch__p__stars="def k(): ...\n",
    )
    assert set(found) == {"torch.p", "torch.p.f", "torch.p.g"}
    assert found["torch.p.f"].file == "torch/p/deep.py"


def test_a_single_name_is_found_through_a_star_and_private_members_when_listed(
    tmp_path: Path,
) -> None:
    found = extracted(
        tmp_path,
        ("torch.p:k", "torch.p:_q", "torch.p:K._m", "torch.p:absent", "torch.absent"),
        torch__p__init="from .stars import *\ndef _q(): ...\n",
        torch__p__stars="def k(): ...\nclass K:\n    def _m(self): ...\n",
    )
    assert set(found) == {"torch.p.k", "torch.p._q", "torch.p.K._m"}


def test_imports_in_a_circle_end(tmp_path: Path) -> None:
    found = extracted(
        tmp_path,
        ("torch.a:x",),
        torch__a="from torch.b import x\n",
        torch__b="from torch.a import x\n",
    )
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "if real():\n    def f(a): ...\nelse:\n    def f(*args): ...\n",
        "try:\n    def f(a): ...\nexcept ImportError:\n    def f(*args): ...\n",
    ],
)
def test_the_first_of_two_conditional_definitions_counts(tmp_path: Path, source: str) -> None:
    facts = of_module(tmp_path, source)["torch.m.f"].facts
    assert facts == {"parameters": [{"name": "a"}], "conditional": True}


def test_an_overload_is_not_what_is_called(tmp_path: Path) -> None:
    source = "@overload\ndef f(a: int): ...\n@overload\ndef f(a: str): ...\ndef f(a, b=1): ...\n"
    parameters = of_module(tmp_path, source)["torch.m.f"].facts["parameters"]
    assert parameters == [{"name": "a"}, {"name": "b", "default": "1"}]


@pytest.mark.parametrize(
    ("source", "deprecated"),
    [
        ("@deprecated('gone')\ndef f(): ...\n", True),
        ("@typing_extensions.deprecated('gone', category=FutureWarning)\ndef f(): ...\n", True),
        ("def f():\n    warnings.warn('gone', FutureWarning, stacklevel=2)\n", True),
        ("def f():\n    warnings.warn('gone', category=DeprecationWarning)\n", True),
        ("def g(): ...\nf = deprecated('gone')(g)\n", True),
        ("def f():\n    warnings.warn('careful')\n", None),
        ("def f(x=None):\n    if x:\n        warnings.warn('x', FutureWarning)\n", None),
        ("def g(): ...\nf = g\n", None),
    ],
)
def test_a_deprecation_of_the_whole_function_is_seen(
    tmp_path: Path, source: str, deprecated: Any
) -> None:
    declaration = of_module(tmp_path, source)["torch.m.f"]
    assert declaration.kind == "function"
    assert declaration.facts.get("deprecated") == deprecated


def test_what_a_constructor_stores_is_no_other_name(tmp_path: Path) -> None:
    source = """\
    class A:
        def __init__(self, f):
            self.g = f
        def f(self): ...
    """
    assert set(of_module(tmp_path, source)) == {
        f"torch.m{n}" for n in ("", ".A", ".A.__init__", ".A.f")
    }


def test_what_is_there_for_type_checkers_only_is_left_out(tmp_path: Path) -> None:
    source = "if TYPE_CHECKING:\n    def f(): ...\n    class A: ...\n"
    assert set(of_module(tmp_path, source)) == {"torch.m"}


def test_layout_comments_and_annotations_change_no_fact(tmp_path: Path) -> None:
    plain = of_module(tmp_path / "a", "def f(a, b='x'): ...\nclass A(B): ...\n")
    other = of_module(
        tmp_path / "b",
        '"""Text."""\n# why\ndef f(\n    a: int,  # this\n    b: str = "x",\n) -> None:\n'
        "    return\n\n"
        "class A(\n    B,\n):\n    '''Text.'''\n",
    )
    assert {n: d.facts for n, d in plain.items()} == {n: d.facts for n, d in other.items()}


def test_a_file_that_is_no_python_is_named(tmp_path: Path) -> None:
    with pytest.raises(CiError, match=r"m\.py:1: expected"):
        of_module(tmp_path, "def f():\n")


def test_a_tree_without_torch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CiError, match="no torch/__init__"):
        python_api.extract(write_tree(tmp_path, {}), catalogue.load())


ORACLE = """\
import inspect, json, sys, torch

def resolve(name):
    module = name
    while module not in sys.modules:
        module = module.rpartition(".")[0]
    thing = sys.modules[module]
    for part in name[len(module) + 1 :].split("."):
        thing = inspect.getattr_static(thing, part)
    return getattr(thing, "__func__", thing)

def signature(name):
    return [[p.name, p.kind.name, p.default is not p.empty]
            for p in inspect.signature(resolve(name)).parameters.values()]

json.dump({name: signature(name) for name in json.load(sys.stdin)}, sys.stdout)
"""
KINDS = {
    None: "POSITIONAL_OR_KEYWORD",
    "positional_only": "POSITIONAL_ONLY",
    "keyword_only": "KEYWORD_ONLY",
    "var_positional": "VAR_POSITIONAL",
    "var_keyword": "VAR_KEYWORD",
}


@pytest.mark.nightly
def test_python_itself_says_the_same_of_every_function_that_torch_imports() -> None:
    """But for the stubs of torch._C, which no source stands behind."""
    listed = catalogue.load(known=usage.NOTHING)  # what is collected, torch does not import
    found = {d.name: d for d in python_api.extract(installed_tree(), listed)}
    parts = ("accelerator", "amp", "distributed", "library", "profiler", "random", "serialization")
    imported = tuple(f"torch.{part}" for part in parts)
    names = [
        name
        for name, d in found.items()
        if d.kind == "function" and name.startswith(imported) and d.file.endswith(".py")
    ]
    run = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=json.dumps(names),
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(run.stdout)
    assert len(names) > 200
    assert {name: _as_inspected(found, name) for name in names} == {
        name: parameters[_takes_self(found, name) :] for name, parameters in said.items()
    }


def _as_inspected(found: dict[str, Declaration], name: str) -> list[list[object]]:
    parameters = found[name].facts.get("parameters", [])
    return [[p["name"], KINDS[p.get("kind")], "default" in p] for p in parameters]


def _takes_self(found: dict[str, Declaration], name: str) -> int:
    owner = found.get(name.rpartition(".")[0])
    static = "staticmethod" in found[name].facts.get("decorators", ())
    return int(owner is not None and owner.kind == "class" and not static)


@pytest.mark.nightly
def test_the_installed_torch_has_what_backends_call() -> None:
    found = {d.name: d for d in python_api.extract(installed_tree(), catalogue.load())}
    assert found["torch.accelerator.empty_cache"].file == "torch/accelerator/memory.py"
    assert found["torch.accelerator.current_device_idx"].facts["deprecated"]
    assert found["torch._register_device_module"].facts["parameters"][0]["name"] == "device_type"
    assert found["torch._dynamo.device_interface.DeviceInterface.current_device"].facts["raises"]
    listed = {s.name for s in catalogue.load().surfaces if s.python}
    assert listed == {d.surface for d in found.values()}
