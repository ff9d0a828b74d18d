# SPDX-License-Identifier: BSD-3-Clause
"""Two Python APIs are told apart by what callers and derived classes notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from python_surface import differences, python_snapshot, rules

from torch_backend_ci.surface.diff.rules import python_api
from torch_backend_ci.surface.model import Finding, Severity, Snapshot

CLASS = "class A:\n"

# before, after: the source of torch/m.py; then the rules that hold.
CASES: dict[str, tuple[str, str, list[str]]] = {
    "a function goes": ("def f(): ...", "", ["function_removed"]),
    "a class goes, said once": (f"{CLASS}    def f(self): ...", "", ["class_removed"]),
    "a constant goes": ("x = 1", "", ["attribute_removed"]),
    "a function comes": ("", "def f(): ...", ["function_added"]),
    "a class comes, said once": ("", f"{CLASS}    def f(self): ...", ["class_added"]),
    "a constant comes": ("", "x = 1", ["attribute_added"]),
    "a name goes from __all__": (
        "__all__ = ['f', 'g']\ndef f(): ...\ndef g(): ...",
        "__all__ = ['f']\ndef f(): ...\ndef g(): ...",
        ["exports_removed"],
    ),
    "a name comes to __all__": (
        "__all__ = ['f']\ndef f(): ...\ndef g(): ...",
        "__all__ = ['f', 'g']\ndef f(): ...\ndef g(): ...",
        ["exports_added"],
    ),
    "a function is renamed": (
        "def load_state(a): ...",
        "def load_states(a): ...",
        ["function_renamed"],
    ),
    "a name comes and another goes": (
        "def load(a): ...",
        "def print_all(a): ...",
        ["function_added", "function_removed"],
    ),
    "a method comes": (CLASS + " x = 1", CLASS + " x = 1\n def f(self): ...", ["member_added"]),
    "a method to override comes": (
        CLASS + " x = 1",
        CLASS + " x = 1\n def f(self): raise NotImplementedError",
        ["override_added"],
    ),
    "an abstract method comes": (
        CLASS + " x = 1",
        CLASS + " x = 1\n @abc.abstractmethod\n def f(self): ...",
        ["abstract_method_added"],
    ),
    "a method becomes abstract": (
        CLASS + " def f(self): return 1",
        CLASS + " @abc.abstractmethod\n def f(self): ...",
        ["made_abstract"],
    ),
    "a method loses its implementation": (
        CLASS + " def f(self): return 1",
        CLASS + " def f(self): raise NotImplementedError()",
        ["implementation_removed"],
    ),
    "a method moves to a base": (
        "class B: ...\nclass A(B):\n def f(self): ...",
        "class B:\n def f(self): ...\nclass A(B): ...",
        ["member_added"],
    ),
    "a method is overridden that was inherited": (
        "class B:\n def f(self): ...\nclass A(B): ...",
        "class B:\n def f(self): ...\nclass A(B):\n def f(self): ...",
        [],
    ),
    "parameters go": ("def f(a, b, c): ...", "def f(b): ...", ["parameter_removed"]),
    "a parameter goes, and any is taken": (
        "def f(*, a): ...",
        "def f(**rest): ...",
        ["optional_parameter_added", "parameter_absorbed"],
    ),
    "a parameter is renamed": ("def f(a, b): ...", "def f(a, c): ...", ["parameter_renamed"]),
    "a positional-only parameter is renamed": ("def f(a, /): ...", "def f(b, /): ...", []),
    "a parameter of a special method is renamed": (
        CLASS + " def __exit__(self, a): ...",
        CLASS + " def __exit__(self, b): ...",
        [],
    ),
    "a parameter of the constructor is renamed": (
        CLASS + " def __init__(self, a): ...",
        CLASS + " def __init__(self, b): ...",
        ["parameter_renamed"],
    ),
    "a required parameter comes": ("def f(): ...", "def f(a): ...", ["required_parameter_added"]),
    "a default goes": ("def f(a=1): ...", "def f(a): ...", ["parameter_made_required"]),
    "a default comes": ("def f(a): ...", "def f(a=1): ...", ["parameter_made_optional"]),
    "a default changes": ("def f(a=1): ...", "def f(a=2): ...", ["parameter_default_changed"]),
    "a default is quoted otherwise": ("def f(a='x'): ...", 'def f(a="x"): ...', []),
    "an optional parameter comes": (
        "def f(): ...",
        "def f(a=1): ...",
        ["optional_parameter_added"],
    ),
    "an optional parameter of a method comes": (
        CLASS + " def f(self): ...",
        CLASS + " def f(self, a=1): ...",
        ["optional_parameter_added_to_method"],
    ),
    "a private parameter of a method comes": (
        CLASS + " def f(self): ...",
        CLASS + " def f(self, _a=1): ...",
        ["optional_parameter_added"],
    ),
    "an optional parameter comes in between": (
        "def f(a, b=1): ...",
        "def f(a, c=2, b=1): ...",
        ["parameter_inserted"],
    ),
    "a parameter has another name by position and its own by keyword": (
        "def f(a, b): ...",
        "def f(c=None, b=None, *, a=None): ...",
        ["parameter_made_optional"],
    ),
    "parameters change places": (
        "def f(a, b): ...",
        "def f(b, a): ...",
        ["parameters_reordered"],
    ),
    "keyword-only parameters change places": ("def f(*, a, b): ...", "def f(*, b, a): ...", []),
    "a parameter becomes keyword-only": (
        "def f(a): ...",
        "def f(*, a): ...",
        ["parameter_made_keyword_only"],
    ),
    "a parameter becomes positional-only": (
        "def f(a): ...",
        "def f(a, /): ...",
        ["parameter_made_positional_only"],
    ),
    "a keyword-only parameter is freed": ("def f(*, a): ...", "def f(a): ...", []),
    "a constructor with a parameter comes": (
        CLASS + " x = 1",
        CLASS + " x = 1\n def __init__(self, a): ...",
        ["required_parameter_added"],
    ),
    "a constructor goes": (
        CLASS + " x = 1\n def __init__(self): ...",
        CLASS + " x = 1",
        [],
    ),
    "a dataclass gets a field": (
        f"@dataclass\n{CLASS} a: int",
        f"@dataclass\n{CLASS} a: int\n b: int",
        ["member_added", "required_parameter_added"],
    ),
    "a base goes": ("class A(B, C): ...", "class A(B): ...", ["base_removed"]),
    "a base comes": ("class A(B): ...", "class A(B, C): ...", ["base_added"]),
    "a base is another": ("class A(B): ...", "class A(C): ...", ["bases_changed"]),
    "a base is imported from elsewhere": ("class A(x.B): ...", "class A(y.B[int]): ...", []),
    "a method becomes a property": (
        CLASS + " def f(self): ...",
        CLASS + " @property\n def f(self): ...",
        ["became_property"],
    ),
    "a property becomes a method": (
        CLASS + " @property\n def f(self): ...",
        CLASS + " def f(self): ...",
        ["became_method"],
    ),
    "an attribute becomes a property": (
        CLASS + " f = 1",
        CLASS + " @property\n def f(self): ...",
        ["became_read_only"],
    ),
    "a method becomes static": (
        CLASS + " def f(self): ...",
        CLASS + " @staticmethod\n def f(): ...",
        ["binding_changed"],
    ),
    "a function becomes a coroutine": ("def f(): ...", "async def f(): ...", ["made_async"]),
    "a coroutine becomes a function": ("async def f(): ...", "def f(): ...", ["no_longer_async"]),
    "a function becomes a context manager": (
        "def f(): ...",
        "@contextlib.contextmanager\ndef f(): ...",
        ["context_manager_changed"],
    ),
    "a decorator without meaning comes": ("def f(): ...", "@functools.cache\ndef f(): ...", []),
    "a function becomes a class": ("def f(a): ...", "class f: ...", ["kind_changed"]),
    "a class becomes a function": ("class A: ...", "def A(): ...", ["class_replaced"]),
    "a constant changes": ("x = 1", "x = 2", ["value_changed"]),
    "what is computed changes": ("x = g(1)", "x = g(2)", []),
    "a function is deprecated": (
        "def f(): ...",
        "@deprecated('gone')\ndef f(): ...",
        ["deprecated"],
    ),
    "annotations, comments and text change": (
        "def f(a): ...",
        "# why\ndef f(a: int) -> None:\n    'Text.'",
        [],
    ),
    "a conditional definition gets an alternative": (
        "def f(a): ...",
        "try:\n    def f(a): ...\nexcept ImportError:\n    def f(*args): ...",
        [],
    ),
}


def compared(root: Path, before: str, after: str) -> list[Finding]:
    return differences(
        python_snapshot(root / "before", {"torch/m.py": before}, "torch.m"),
        python_snapshot(root / "after", {"torch/m.py": after}, "torch.m"),
    )


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_called_by_its_name(tmp_path: Path, case: str) -> None:
    before, after, expected = CASES[case]
    assert rules(compared(tmp_path, before, after)) == expected


@pytest.mark.parametrize("case", CASES)
def test_nothing_differs_from_itself(tmp_path: Path, case: str) -> None:
    before, _, _ = CASES[case]
    assert compared(tmp_path, before, before) == []


def test_every_rule_has_a_case() -> None:
    elsewhere = {"module_removed", "module_added", "internal_name_added"}
    assert {rule for *_, found in CASES.values() for rule in found} | elsewhere == set(
        python_api.RULES
    )


def test_a_module_that_goes_or_comes_is_said_once(tmp_path: Path) -> None:
    there = python_snapshot(tmp_path / "a", {"torch/m.py": "def f(): ..."}, "torch.m")
    absent = python_snapshot(tmp_path / "b", {}, "torch.m")
    assert rules(differences(there, absent)) == ["module_removed"]
    assert rules(differences(absent, there)) == ["module_added"]


def test_what_comes_in_a_private_module_is_cosmetic(tmp_path: Path) -> None:
    before = python_snapshot(tmp_path / "a", {"torch/_m.py": ""}, "torch._m")
    after = python_snapshot(tmp_path / "b", {"torch/_m.py": "def f(): ..."}, "torch._m")
    (finding,) = differences(before, after)
    assert (finding.rule, finding.severity) == ("internal_name_added", Severity.COSMETIC)


def test_a_definition_reached_by_two_names_is_reported_by_the_shorter(tmp_path: Path) -> None:
    def snapshot(folder: str, parameters: str) -> Snapshot:
        files = {
            "torch/p/__init__.py": "from .deep import f\n",
            "torch/p/deep.py": f"def f({parameters}): ...\n",
        }
        return python_snapshot(tmp_path / folder, files, "torch.p.deep", "torch.p")

    (finding,) = differences(snapshot("a", ""), snapshot("b", "x"))
    assert (finding.rule, finding.name) == ("required_parameter_added", "torch.p.f")


def test_a_definition_that_moves_to_another_file_is_the_same(tmp_path: Path) -> None:
    here = {"torch/p/__init__.py": "def f(x): ...\n"}
    there = {
        "torch/p/__init__.py": "from .deep import f\n",
        "torch/p/deep.py": "\n\ndef f(x): ...\n",
    }
    before = python_snapshot(tmp_path / "a", here, "torch.p")
    after = python_snapshot(tmp_path / "b", there, "torch.p")
    assert differences(before, after) == []


def test_several_parameters_of_one_call_are_one_finding(tmp_path: Path) -> None:
    (finding,) = compared(tmp_path, "def f(): ...", "def f(a, b): ...")
    assert "a, b" in finding.message
    assert finding.severity is Severity.COMPILE_BREAK
