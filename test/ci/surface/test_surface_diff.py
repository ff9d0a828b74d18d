# SPDX-License-Identifier: BSD-3-Clause
"""Two snapshots are compared by meaning: each rule holds where it should, and nothing else does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from declarations import (
    class_,
    constructor,
    cpp,
    destructor,
    enum,
    function,
    header,
    method,
    snapshot,
    symbol,
    virtual,
)

import torch_backend_ci.surface.diff
from torch_backend_ci.surface.diff import diff, skipped_domains
from torch_backend_ci.surface.diff.rules import RULES
from torch_backend_ci.surface.model import Declaration, Domain, Severity

A, B = "c10::A", "c10::B"
Side = list[Declaration]


def rules(before: Side, after: Side) -> list[str]:
    """The names of the rules of all findings, cosmetic ones too."""
    return [finding.rule for finding in diff(snapshot(*before), snapshot(*after))]


def in_class(*members: Declaration, name: str = A, **facts: object) -> Side:
    return [class_(name, **facts), *members]


def derived(*members: Declaration) -> Side:
    """A, B that derives from it, and what they have."""
    return [class_(A), class_(B, A), *members]


f = f"{A}::f"
g = f"{B}::f"

# Each rule, and the smallest change that it is about.
CASES: dict[str, tuple[Side, Side]] = {
    # classes
    "class_removed": (in_class(method(f), virtual(f"{A}::g")), []),
    "class_renamed": (
        in_class(method(f, A), name=A),
        in_class(method("c10::A2::f", "c10::A2"), name="c10::A2"),
    ),
    "members_reordered": (in_class(fields=["a", "b"]), in_class(fields=["b", "a"])),
    "default_implementation_changed": (
        in_class(virtual(f, body="0123")),
        in_class(virtual(f, body="4567")),
    ),
    "specialization_removed": ([class_(A), class_(f"{A}<int>")], [class_(A)]),
    "size_in_type_changed": (
        [function("c10::f", returns="std::array<int, 47>")],
        [function("c10::f", returns="std::array<int, 48>")],
    ),
    "template_compatible": (
        [function("c10::f", "int", template="typename, typename =")],
        [function("c10::f", "int", template="typename")],
    ),
    "default_changed": (
        [cpp("function", "c10::f", parameters=[{"type": "int", "default": True, "value": "1"}])],
        [cpp("function", "c10::f", parameters=[{"type": "int", "default": True, "value": "2"}])],
    ),
    "class_added": ([], in_class(virtual(f, pure=True))),
    "class_became_alias": (in_class(method(f)), [cpp("alias", A, target=B)]),
    "alias_became_class": ([cpp("alias", A, target=B)], in_class(method(f))),
    "base_removed": ([class_(A), class_(B, A)], [class_(A), class_(B)]),
    "base_added": ([class_(A), class_(B)], [class_(A), class_(B, A)]),
    "made_abstract": (in_class(), in_class(abstract=True)),
    "class_layout_changed": (in_class(size=8), in_class(size=16)),
    "template_changed": (in_class(template="typename"), in_class(template="typename, int")),
    "template_extended": (in_class(template="typename"), in_class(template="typename, int =")),
    "made_final": (in_class(), in_class(final=True)),
    # virtual functions
    "virtual_added": (in_class(), in_class(virtual(f))),
    "pure_virtual_added": (in_class(), in_class(virtual(f, pure=True))),
    "made_pure": (in_class(virtual(f)), in_class(virtual(f, pure=True))),
    "no_longer_pure": (in_class(virtual(f, pure=True)), in_class(virtual(f))),
    "virtual_removed": (in_class(virtual(f)), in_class()),
    "virtual_renamed": (
        in_class(virtual(f"{A}::allocate", "int")),
        in_class(virtual(f"{A}::allocate_on", "int")),
    ),
    "virtual_moved_to_base": (
        derived(virtual(f, "int"), virtual(g, "int")),
        derived(virtual(f, "int")),
    ),
    "no_longer_virtual": (in_class(virtual(f)), in_class(method(f))),
    "made_virtual": (in_class(method(f)), in_class(virtual(f))),
    "virtual_signature_changed": (
        in_class(virtual(f, "int", const=True)),
        in_class(virtual(f, "int")),
    ),
    "noexcept_dropped": (in_class(virtual(f, noexcept=True)), in_class(virtual(f))),
    # functions
    "function_removed": ([function("c10::f")], []),
    "function_renamed": (
        [function("c10d::parseEnvVarInt", "const char *", "int", returns="int")],
        [function("c10d::getCvarInt", "const char *", "int", returns="int")],
    ),
    "function_added": ([], [function("c10::f")]),
    "function_signature_changed": ([function("c10::f", "int")], [function("c10::f", "char *")]),
    "method_removed": (in_class(method(f)), in_class()),
    "method_renamed": (in_class(method(f"{A}::size_of")), in_class(method(f"{A}::sizes_of"))),
    "method_added": (in_class(), in_class(method(f))),
    "method_moved_to_base": (derived(method(f), method(g)), derived(method(f))),
    "method_signature_changed": (in_class(method(f, const=True)), in_class(method(f))),
    "constructor_removed": (
        in_class(constructor(A, "int"), constructor(A)),
        in_class(constructor(A)),
    ),
    "constructor_added": (
        in_class(constructor(A)),
        in_class(constructor(A, "int"), constructor(A)),
    ),
    "constructor_signature_changed": (
        in_class(constructor(A, "int")),
        in_class(constructor(A, "B")),
    ),
    "made_explicit": (
        in_class(constructor(A, "int")),
        in_class(constructor(A, "int", explicit=True)),
    ),
    "return_type_changed": (
        [function("c10::f", returns="int")],
        [function("c10::f", returns="c10::A")],
    ),
    "parameter_added_with_default": (
        [function("c10::f", "int")],
        [function("c10::f", "int", "bool =")],
    ),
    "signature_compatible": (
        [function("c10::f", "c10::A")],
        [function("c10::f", "const c10::A &")],
    ),
    "default_removed": ([function("c10::f", "int =")], [function("c10::f", "int")]),
    "default_added": ([function("c10::f", "int")], [function("c10::f", "int =")]),
    "made_static": (in_class(method(f)), in_class(method(f, static=True))),
    "no_longer_static": (in_class(method(f, static=True)), in_class(method(f))),
    "made_deleted": ([function("c10::f")], [function("c10::f", deleted=True)]),
    # members
    "access_narrowed": (in_class(method(f)), in_class(method(f, access="protected"))),
    "access_widened": (in_class(method(f, access="protected")), in_class(method(f))),
    "field_removed": (in_class(cpp("field", f, type="int")), in_class()),
    "field_renamed": (
        in_class(cpp("field", f"{A}::allocation", type="c10::Stat")),
        in_class(cpp("field", f"{A}::allocations", type="c10::Stat")),
    ),
    "field_added": (in_class(), in_class(cpp("field", f, type="int"))),
    "field_type_changed": (
        in_class(cpp("field", f, type="int")),
        in_class(cpp("field", f, type="long")),
    ),
    # enums, constants, types
    "enum_removed": (enum("c10::E", "X", "Y"), []),
    "enum_renamed": (enum("c10::Kind", "X", "Y"), enum("c10::KindOf", "X", "Y")),
    "enum_added": ([], enum("c10::E", "X", "Y")),
    "enumerator_removed": (enum("c10::E", "X", "Y"), enum("c10::E", "X")),
    "enumerator_renamed": (enum("c10::E", "X", "Normal"), enum("c10::E", "X", "Normals")),
    "enumerator_added": (enum("c10::E", "X"), enum("c10::E", "X", "Y")),
    "enumerator_added_moves_count": (
        [
            *enum("c10::E", "X", "NumOptions"),
            cpp("variable", "c10::NumE", type="const int", value=1),
        ],
        [
            *enum("c10::E", "X", "Y", "NumOptions"),
            cpp("variable", "c10::NumE", type="const int", value=2),
        ],
    ),
    "enumerator_value_changed": (enum("c10::E", "X", "Y"), enum("c10::E", "Y", "X")),
    "underlying_type_changed": (enum("c10::E", "X"), enum("c10::E", "X", underlying="int")),
    "made_scoped": (enum("c10::E", "X", scoped=False), enum("c10::E", "X")),
    "no_longer_scoped": (enum("c10::E", "X"), enum("c10::E", "X", scoped=False)),
    "alias_removed": ([cpp("alias", "c10::T", target="int")], []),
    "alias_renamed": (
        [cpp("alias", "c10::DeviceIndex", target="int")],
        [cpp("alias", "c10::DevicesIndex", target="int")],
    ),
    "alias_added": ([], [cpp("alias", "c10::T", target="int")]),
    "alias_changed": (
        [cpp("alias", "c10::T", target="int")],
        [cpp("alias", "c10::T", target="signed char")],
    ),
    "constant_removed": ([cpp("variable", "c10::k", type="const int", value=1)], []),
    "constant_renamed": (
        [cpp("variable", "c10::kDefaultTimeout", type="const int", value=1)],
        [cpp("variable", "c10::kDefaultTimeouts", type="const int", value=1)],
    ),
    "constant_added": ([], [cpp("variable", "c10::k", type="const int", value=1)]),
    "constant_changed": (
        [cpp("variable", "c10::k", type="const int", value=1)],
        [cpp("variable", "c10::k", type="const int", value=2)],
    ),
    "constant_type_changed": (
        [cpp("variable", "c10::k", type="const int", value=1)],
        [cpp("variable", "c10::k", type="const long", value=1)],
    ),
    "no_longer_constexpr": (
        [cpp("variable", "c10::k", type="const int", constexpr=True, value=1)],
        [cpp("variable", "c10::k", type="const int", value=1)],
    ),
    "kind_changed": (enum("c10::E", "X"), in_class(name="c10::E")),
    # macros
    "macro_removed": ([cpp("macro", "REGISTER", parameters=["$1"], body="f ( $1 )")], []),
    "macro_renamed": (
        [cpp("macro", "REGISTER_ALLOCATOR", parameters=["$1"], body="f ( $1 )")],
        [cpp("macro", "C10_REGISTER_ALLOCATOR", parameters=["$1"], body="f ( $1 )")],
    ),
    "macro_added": ([], [cpp("macro", "REGISTER", parameters=["$1"], body="f ( $1 )")]),
    "macro_parameters_changed": (
        [cpp("macro", "REGISTER", parameters=["$1"], body="f ( $1 )")],
        [cpp("macro", "REGISTER", parameters=["$1", "$2"], body="f ( $1 , $2 )")],
    ),
    "macro_body_changed": (
        [cpp("macro", "REGISTER", parameters=["$1"], body="f ( $1 )")],
        [cpp("macro", "REGISTER", parameters=["$1"], body="g ( $1 )")],
    ),
    # whatever the kind
    "requires_changed": ([function("c10::f")], [function("c10::f", requires=["USE_NCCL"])]),
    "requires_dropped": ([function("c10::f", requires=["USE_NCCL"])], [function("c10::f")]),
    "deprecated": ([function("c10::f")], [function("c10::f", deprecated="use g")]),
    "no_longer_deprecated": ([function("c10::f", deprecated=True)], [function("c10::f")]),
    # headers
    "header_removed": ([header("c10/x.h", alone=True)], []),
    "header_not_alone": (
        [header("c10/x.h", alone=True)],
        [header("c10/x.h", error="'nlohmann/json.hpp' file not found")],
    ),
    "header_alone": ([header("c10/x.h", error="?")], [header("c10/x.h", alone=True)]),
    "header_added": ([], [header("c10/x.h", alone=True)]),
    "language_raised": (
        [header("C++ standard", minimum=17)],
        [header("C++ standard", minimum=20)],
    ),
    "language_lowered": (
        [header("C++ standard", minimum=20)],
        [header("C++ standard", minimum=17)],
    ),
    # symbols
    "symbol_removed": ([symbol("c10::f(int)")], []),
    "symbol_moved": ([symbol("c10::f(int)")], [symbol("c10::f(int)", "torch_cpu")]),
    "symbol_added": ([], [symbol("c10::f(int)")]),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_change_gives_the_finding_that_it_is_about_and_no_other(rule: str) -> None:
    assert rules(*CASES[rule]) == [rule]


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    named = [set(RULES[domain]) for domain in (Domain.CPP, Domain.HEADER, Domain.SYMBOL)]
    assert set().union(*named) == set(CASES)


def test_every_rule_that_the_code_names_is_in_a_table() -> None:
    known = {name for domain in RULES.values() for name in domain}
    assert set(_named_in_code()) <= known


def _named_in_code() -> Iterator[str]:
    """What is handed to finding() as it is written."""
    for path in Path(torch_backend_ci.surface.diff.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "finding":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    yield str(first.value)


# What concerns nobody gives nothing at all, not even a cosmetic finding.
SAME: dict[str, tuple[Side, Side]] = {
    "an override of what a base has is not a new virtual": (
        derived(virtual(f, "int")),
        derived(virtual(f, "int"), virtual(g, "int", override=True)),
    ),
    "an override without the word is not a new virtual either": (
        derived(virtual(f, "int")),
        derived(virtual(f, "int"), virtual(g, "int")),
    ),
    "a constructor that the compiler makes": (
        in_class(constructor(A), constructor(A, f"const {A} &")),
        in_class(),
    ),
    "what was deleted is gone": (
        in_class(constructor(A, f"const {A} &", deleted=True)),
        in_class(),
    ),
    "what was deleted is not public any more": (
        in_class(constructor(A, deleted=True)),
        in_class(constructor(A, access="protected")),
    ),
    "a copy that a base had forbidden is forbidden": (
        derived(method(f"{A}::operator=", f"const {A} &", deleted=True)),
        derived(
            method(f"{A}::operator=", f"const {A} &", deleted=True),
            method(f"{B}::operator=", f"const {A} &", deleted=True),
        ),
    ),
    "a destructor is written out": (in_class(), in_class(destructor(A))),
    "a member may be assigned to": (
        in_class(cpp("field", f, type="const int")),
        in_class(cpp("field", f, type="int")),
    ),
    "noexcept where nobody overrides": (
        [function("c10::f")],
        [function("c10::f", noexcept=True)],
    ),
    "a symbol of a function that is gone": (
        [function("c10::f", "int"), symbol("c10::f(int)")],
        [],
    ),
}


@pytest.mark.parametrize("case", list(SAME)[:-1])
def test_what_concerns_nobody_gives_nothing(case: str) -> None:
    assert rules(*SAME[case]) == []


def test_a_function_that_is_gone_speaks_for_its_symbol() -> None:
    assert rules(*SAME["a symbol of a function that is gone"]) == ["function_removed"]


def test_a_class_that_is_gone_speaks_for_the_symbols_of_its_members() -> None:
    gone = f"{A}::get(std::vector<std::pair<int, c10::Device> > const&) const"
    assert rules([*in_class(method(f)), symbol(gone)], []) == ["class_removed"]
    assert rules([function("c10::f"), symbol("c10::f<int>(int)")], []) == ["function_removed"]


def test_a_class_that_becomes_an_alias_tells_which_members_the_other_does_not_have() -> None:
    before = in_class(constructor(A, "int"), method(f, A), method(f"{A}::h"))
    other = in_class(constructor(B, "int"), method(g, B), name=B)
    assert sorted(rules(before, [cpp("alias", A, target=B), *other])) == [
        "class_added",
        "class_became_alias",
        "method_removed",
    ]


def test_a_change_of_a_virtual_is_told_once_where_it_is_declared() -> None:
    before = derived(virtual(f, "int"), virtual(g, "int", override=True))
    after = derived(virtual(f, "long"), virtual(g, "long", override=True))
    (found,) = diff(snapshot(*before), snapshot(*after))
    assert (found.rule, found.name) == ("virtual_signature_changed", f)


def test_a_virtual_that_moves_up_is_not_gone_for_who_overrides_it() -> None:
    before, after = derived(virtual(g, "int")), derived(virtual(f, "int"))
    assert rules(before, after) == ["virtual_added", "virtual_moved_to_base"]


def test_a_virtual_that_moves_up_and_is_not_virtual_there_breaks_who_overrides_it() -> None:
    before, after = derived(virtual(g, "int")), derived(method(f, "int"))
    assert "no_longer_virtual" in rules(before, after)


def test_a_default_that_a_derived_class_loses_must_be_implemented_again() -> None:
    before = derived(virtual(f, pure=True), virtual(g, override=True))
    after = derived(virtual(f, pure=True))
    assert rules(before, after) == ["made_pure"]


def test_an_override_that_becomes_final_breaks_who_overrides_it() -> None:
    before = derived(virtual(f))
    after = derived(virtual(f), virtual(g, override=True, final=True))
    assert rules(before, after) == ["made_final"]


def test_a_virtual_that_is_final_from_the_start_was_never_overridden() -> None:
    before, after = derived(), derived(virtual(f), virtual(g, final=True))
    assert sorted(rules(before, after)) == ["method_added", "virtual_added"]


def test_a_new_base_brings_what_it_leaves_to_be_implemented() -> None:
    before = [class_(A), virtual(f, pure=True), class_(B)]
    after = [class_(A), virtual(f, pure=True), class_(B, A)]
    assert rules(before, after) == ["pure_virtual_added", "base_added"]


def test_a_new_base_that_the_class_implements_asks_for_nothing() -> None:
    before = [class_(A), virtual(f, pure=True), class_(B), virtual(g)]
    after = [class_(A), virtual(f, pure=True), class_(B, A), virtual(g, override=True)]
    assert rules(before, after) == ["base_added"]


def test_overloads_are_paired_by_signature_first_and_then_by_likeness() -> None:
    before = [function("c10::f", "int"), function("c10::f", "char *", "bool")]
    after = [function("c10::f", "char *", "c10::A"), function("c10::f", "int")]
    (found,) = diff(snapshot(*before), snapshot(*after))
    assert found.rule == "function_signature_changed"
    assert "parameter 2 `bool` became `c10::A`" in found.message


def test_a_function_that_becomes_an_overload_set_says_so() -> None:
    before = [function("c10::f", "int")]
    after = [function("c10::f", "int"), function("c10::f", "char *")]
    (found,) = diff(snapshot(*before), snapshot(*after))
    assert (found.rule, found.severity) == ("function_added", Severity.COSMETIC)
    assert "`&c10::f` alone is ambiguous" in found.message


def test_an_overload_that_another_with_a_default_stands_for_is_no_break() -> None:
    before = [function("c10::f", "int"), function("c10::f", "int", "bool")]
    after = [function("c10::f", "int", "bool =")]
    assert {f.severity for f in diff(snapshot(*before), snapshot(*after))} <= {
        Severity.REBUILD,
        Severity.COSMETIC,
    }


def test_a_default_that_an_overload_stands_for_is_no_break() -> None:
    before = [function("c10::f", "int", "bool =")]
    after = [function("c10::f", "int"), function("c10::f", "int", "bool")]
    assert rules(before, after) == ["function_added"]


def test_an_added_enumerator_speaks_for_the_values_it_moves_and_the_constants_made_of_them() -> (
    None
):
    before, after = CASES["enumerator_added_moves_count"]
    (found,) = diff(snapshot(*before), snapshot(*after))
    assert found.name == "c10::E::Y"
    assert "NumOptions (from 1 to 2)" in found.message
    assert found.severity is Severity.SILENT_BREAK


def test_an_operation_called_max_counts_nothing() -> None:
    before = enum("c10d::ReduceOp::RedOpType", "SUM", "MAX", "BAND")
    after = enum("c10d::ReduceOp::RedOpType", "SUM", "AVG", "MAX", "BAND")
    assert rules(before, after) == ["enumerator_value_changed", "enumerator_added"]
    last = enum("c10::Activity", "CPU", "CUDA", "ENUM_COUNT")
    longer = enum("c10::Activity", "CPU", "CUDA", "XPU", "ENUM_COUNT")
    assert rules(last, longer) == ["enumerator_added_moves_count"]


def test_values_moved_by_an_enumerator_that_is_gone_are_told_with_it() -> None:
    (found,) = diff(
        snapshot(*enum("c10::E", "X", "Named", "Y", "EndOfKeys")),
        snapshot(*enum("c10::E", "X", "Y", "EndOfKeys")),
    )
    assert found.rule == "enumerator_removed"
    assert "EndOfKeys (from 3 to 2), Y (from 2 to 1)" in found.message


def test_a_class_speaks_for_the_size_of_those_that_derive_from_it() -> None:
    before = [class_(A, size=8), class_(B, A, size=24)]
    after = [class_(A, size=16), class_(B, A, size=32)]
    (found,) = diff(snapshot(*before), snapshot(*after))
    assert found.name == A
    assert found.message.endswith(f"So do objects of {B}.")


def test_a_size_that_has_a_reason_is_told_with_the_reason() -> None:
    before = in_class(cpp("field", f, type="int"), size=4)
    after = in_class(cpp("field", f, type="long"), size=8)
    (found,) = diff(snapshot(*before), snapshot(*after))
    assert found.rule == "field_type_changed"
    assert "takes 8 bytes instead of 4" in found.message


def test_a_removed_function_names_the_one_that_came_beside_it() -> None:
    before = [function("c10::materialize_cow_storage", "c10::StorageImpl &")]
    after = [function("c10::materialize_cow", "c10::StorageImpl &", "c10::Device")]
    removed = diff(snapshot(*before), snapshot(*after))[0]
    assert removed.rule == "function_removed"
    assert removed.message.endswith("c10::materialize_cow is new beside it.")


def test_operators_that_the_language_makes_are_not_missed() -> None:
    equal = method(f"{A}::operator==", f"const {A} &", returns="bool", const=True)
    unequal = method(f"{A}::operator!=", f"const {A} &", returns="bool", const=True)
    assert rules(in_class(equal, unequal), in_class(equal)) == ["signature_compatible"]


def test_switches_of_overloads_are_not_template_parameters() -> None:
    switch = "typename std::enable_if<std::is_const_v<type-parameter-0-0>, int>::type ="
    before = in_class(method(f, template=f"typename, {switch}"))
    after = in_class(method(f, template="typename"))
    assert rules(before, after) == ["template_compatible"]


def test_a_domain_that_one_side_did_not_look_at_is_not_compared_but_named() -> None:
    before = snapshot(symbol("c10::f()"), function("c10::f"))
    after = snapshot(function("c10::f"), domains=(Domain.CPP,))
    assert diff(before, after) == []
    assert Domain.SYMBOL in skipped_domains(before, after)
    assert Domain.CPP not in skipped_domains(before, after)


def test_where_a_declaration_stands_is_not_compared_and_not_part_of_the_identity() -> None:
    was, now = CASES["virtual_signature_changed"]
    moved = [replace(d, file="torch/include/elsewhere.h", line=7) for d in was]
    assert diff(snapshot(*was), snapshot(*moved)) == []
    identity = {f.identity for f in diff(snapshot(*was), snapshot(*now))}
    assert identity == {f.identity for f in diff(snapshot(*moved), snapshot(*now))}
