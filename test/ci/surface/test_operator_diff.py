# SPDX-License-Identifier: BSD-3-Clause
"""Two sets of operators are told apart by what kernels and callers notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from python_surface import TAGS, differences, operator_snapshot, rules

from torch_backend_ci.surface.diff.rules import operators
from torch_backend_ci.surface.model import Severity

F = "- func: f(Tensor self) -> Tensor\n"
EXPLICIT = "  dispatch:\n    CPU: f\n"
COMPOSITE = "  dispatch:\n    CompositeExplicitAutograd: f\n"


def func(schema: str) -> str:
    return f"- func: {schema}\n"


# before, after: native_functions.yaml; then the rules that hold.
CASES: dict[str, tuple[str, str, list[str]]] = {
    "an operator goes": (F + func("g() -> ()"), F, ["operator_removed"]),
    "an operator comes": (F, F + func("g() -> ()") + EXPLICIT, ["operator_added"]),
    "a composite operator comes": (F, F + func("g() -> ()"), ["operator_added_composite"]),
    "a derived operator goes": (F + "  autogen: f.out\n", F, ["generated_operator_removed"]),
    "a derived operator comes": (F, F + "  autogen: f.out\n", ["generated_operator_added"]),
    "a derived operator gets an entry": (
        F + "  autogen: g\n",
        F + func("g() -> ()") + EXPLICIT,
        [],
    ),
    "an argument comes": (F, func("f(Tensor self, int n=0) -> Tensor"), ["argument_added"]),
    "its device check goes": (F, F + "  device_check: NoCheck\n", ["device_check_changed"]),
    "an argument goes": (
        func("f(Tensor self, int n) -> Tensor"),
        F,
        ["argument_removed"],
    ),
    "a type changes": (F, func("f(Tensor? self) -> Tensor"), ["argument_type_changed"]),
    "an integer becomes symbolic": (
        func("f(int[2] n) -> Tensor"),
        func("f(SymInt[2] n) -> Tensor"),
        ["argument_made_symbolic"],
    ),
    "a symbolic integer becomes plain": (
        func("f(SymInt n) -> Tensor"),
        func("f(int n) -> Tensor"),
        ["argument_type_changed"],
    ),
    "a list gets a size": (
        func("f(int[] n) -> Tensor"),
        func("f(int[2] n) -> Tensor"),
        ["argument_size_changed"],
    ),
    "a list of truth values gets a size": (
        func("f(bool[] n) -> Tensor"),
        func("f(bool[2] n) -> Tensor"),
        ["argument_type_changed"],
    ),
    "arguments change places": (
        func("f(int a, int b) -> Tensor"),
        func("f(int b, int a) -> Tensor"),
        ["arguments_reordered"],
    ),
    "an argument is renamed": (F, func("f(Tensor input) -> Tensor"), ["argument_renamed"]),
    "a default changes": (
        func("f(int n=1) -> Tensor"),
        func("f(int n=2) -> Tensor"),
        ["argument_default_changed"],
    ),
    "a default goes": (
        func("f(int n=1) -> Tensor"),
        func("f(int n) -> Tensor"),
        ["argument_made_required"],
    ),
    "a default comes": (
        func("f(int n) -> Tensor"),
        func("f(int n=1) -> Tensor"),
        ["argument_made_optional"],
    ),
    "an argument becomes keyword-only": (
        func("f(int n) -> Tensor"),
        func("f(*, int n) -> Tensor"),
        ["argument_made_keyword_only"],
    ),
    "an argument is written to": (F, func("f(Tensor(a!) self) -> Tensor"), ["mutability_changed"]),
    "a result shares storage": (
        F,
        func("f(Tensor(a) self) -> Tensor(a)"),
        ["alias_changed"],
    ),
    "more is returned": (F, func("f(Tensor self) -> (Tensor, Tensor)"), ["return_changed"]),
    "a result is named": (F, func("f(Tensor self) -> Tensor values"), ["return_renamed"]),
    "a composite operator becomes explicit": (F, F + EXPLICIT, ["composite_lost"]),
    "an explicit operator becomes composite": (F + EXPLICIT, F, ["composite_gained"]),
    "an implicit composite becomes explicit": (F, F + COMPOSITE, ["dispatch_changed"]),
    "another device gets a kernel": (
        F + EXPLICIT,
        F + "  dispatch:\n    CPU, CUDA: f\n",
        ["dispatch_keys_changed"],
    ),
    "a describing tag comes": (F, F + "  tags: core\n", ["tags_changed"]),
    "a tag of behaviour comes": (F, F + "  tags: inplace_view\n", ["behaviour_tags_changed"]),
    "a method comes": (F, F + "  variants: function, method\n", ["variant_added"]),
    "a method goes": (F + "  variants: function, method\n", F, ["variant_removed"]),
    "it is bound elsewhere": (F, F + "  python_module: nn\n", ["python_namespace_changed"]),
    "layout and comments change": (
        F + "  tags: [core, pointwise]\n",
        "# why\n\n- func:  f(Tensor self) -> Tensor\n  tags: pointwise, core\n",
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_difference_is_called_by_its_name(tmp_path: Path, case: str) -> None:
    before, after, expected = CASES[case]
    old, new = operator_snapshot(tmp_path / "a", before), operator_snapshot(tmp_path / "b", after)
    assert rules(differences(old, new)) == expected
    assert differences(old, old) == []


def test_every_rule_has_a_case() -> None:
    elsewhere = {"tag_removed", "tag_added"}
    assert {rule for *_, found in CASES.values() for rule in found} | elsewhere == set(
        operators.RULES
    )


def test_a_tag_that_goes_or_comes_is_told(tmp_path: Path) -> None:
    more = operator_snapshot(tmp_path / "a", F, TAGS + "- tag: fresh\n")
    less = operator_snapshot(tmp_path / "b", F)
    assert rules(differences(more, less)) == ["tag_removed"]
    assert rules(differences(less, more)) == ["tag_added"]


def test_an_operator_that_loses_its_composition_is_a_silent_break(tmp_path: Path) -> None:
    """As in pytorch/pytorch#71751."""
    before = operator_snapshot(tmp_path / "a", F)
    after = operator_snapshot(tmp_path / "b", F + "  dispatch:\n    CPU, CUDA: f\n")
    (finding,) = differences(before, after)
    assert (finding.severity, finding.concerns) == (Severity.SILENT_BREAK, ("registrars",))
    assert finding.hint is not None


def test_an_argument_that_comes_breaks_kernels(tmp_path: Path) -> None:
    """As in pytorch/pytorch#70296."""
    before = operator_snapshot(tmp_path / "a", F)
    after = operator_snapshot(tmp_path / "b", func("f(Tensor self, *, int? g=None) -> Tensor"))
    (finding,) = differences(before, after)
    assert (finding.rule, finding.severity) == ("argument_added", Severity.COMPILE_BREAK)
    assert "int? g=None" in finding.message


def test_operators_of_named_tensors_that_go_are_explained(tmp_path: Path) -> None:
    """As in pytorch/pytorch#173895."""
    before = operator_snapshot(
        tmp_path / "a", F + func("any.dimname(Tensor self, Dimname d) -> Tensor")
    )
    (finding,) = differences(before, operator_snapshot(tmp_path / "b", F))
    assert (finding.rule, finding.name) == ("operator_removed", "aten::any.dimname")
    assert finding.severity is Severity.COMPILE_BREAK
    assert "named tensors" in finding.message


def test_derived_operators_that_go_are_told_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = [f"f.o{i}" for i in range(9)]
    before = operator_snapshot(tmp_path / "a", F + f"  autogen: {', '.join(reversed(names))}\n")
    (finding,) = differences(before, operator_snapshot(tmp_path / "b", F))
    told = [
        name for name in finding.message.replace(",", "").split() if name.startswith("aten::f.")
    ]
    assert told == [f"aten::{name}" for name in names]
