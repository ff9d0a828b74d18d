# SPDX-License-Identifier: BSD-3-Clause
"""Differences that earlier versions of the comparison passed over, or told too severely."""

from __future__ import annotations

from pathlib import Path

import pytest
from declarations import class_, constructor, cpp, function, header, method, snapshot, virtual
from python_surface import differences, operator_snapshot, python_snapshot, rules

from torch_backend_ci.surface import usage
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.model import Declaration, Severity


def with_default(value: str) -> Declaration:
    parameters = [{"type": "int", "default": True, "value": value}]
    return cpp("function", "c10::f", parameters=parameters, returns="void")


def test_another_default_of_an_argument_is_told() -> None:
    (found,) = diff(snapshot(with_default("1")), snapshot(with_default("2")))
    assert (found.rule, found.severity) == ("default_changed", Severity.SEMANTIC)
    assert "`2`" in found.message and "`1`" in found.message


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("true", "! false"),
        ("1048576", "1024 * 1024"),
        ("- 1", "( - 1 )"),
        ("0", "0UL"),
        ("0x10u", "1 << 4"),
        ("1.5f", "1.5"),
        ("MemoryFormat :: Contiguous", "at :: MemoryFormat :: Contiguous"),
        ("c10 :: nullopt", "std :: nullopt"),
    ],
)
def test_a_default_that_is_written_in_another_way_is_no_other_one(was: str, now: str) -> None:
    assert diff(snapshot(with_default(was)), snapshot(with_default(now))) == []


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("true", "! true"),
        ("0", "! 0 | 2"),
        ("0x1f", "0x1"),
        ("1 << 99999", "1 << 3"),
        ("2 ** 99999999", "1"),
        ("f ( )", "g ( )"),
        ("__import__ ( 'os' )", "1"),
        ("at :: Contiguous", "at :: Preserve"),
        ("1" * 5000, "1"),
    ],
)
def test_a_default_that_may_be_another_one_is_told(was: str, now: str) -> None:
    (found,) = diff(snapshot(with_default(was)), snapshot(with_default(now)))
    assert found.rule == "default_changed"


def test_another_default_implementation_of_a_virtual_is_told() -> None:
    whole = class_("c10::A")
    was, now = (virtual("c10::A::f", body=body) for body in ("0123", "4567"))
    (found,) = diff(snapshot(whole, was), snapshot(whole, now))
    assert (found.rule, found.severity) == ("default_implementation_changed", Severity.SEMANTIC)


def test_another_order_of_data_members_is_told_and_a_new_member_is_not() -> None:
    def in_order(*fields: str) -> Declaration:
        return class_("c10::A", fields=fields)

    (found,) = diff(snapshot(in_order("a", "b")), snapshot(in_order("b", "a")))
    assert (found.rule, found.severity) == ("members_reordered", Severity.REBUILD)
    assert diff(snapshot(in_order("a", "b")), snapshot(in_order("a", "x", "b"))) == []


def test_a_pointer_to_const_takes_what_the_plain_pointer_took() -> None:
    was, now = function("c10::f", "void *"), function("c10::f", "const void *")
    (found,) = diff(snapshot(was), snapshot(now))
    assert found.rule == "signature_compatible"
    (back,) = diff(snapshot(now), snapshot(was))
    assert back.severity is Severity.COMPILE_BREAK


def test_a_header_that_nobody_listed_and_that_is_gone_is_told() -> None:
    (found,) = diff(snapshot(header("c10/x.h", unread=True)), snapshot())
    assert found.rule == "header_removed"


def test_a_header_that_is_listed_now_is_no_difference() -> None:
    for was, now in ((True, False), (False, True)):
        sides = [
            snapshot(header("c10/x.h", **({"unread": True} if unread else {"alone": True})))
            for unread in (was, now)
        ]
        assert diff(*sides) == []


def test_a_module_that_becomes_a_re_export_loses_nothing(tmp_path: Path) -> None:
    before = {"torch/m.py": "def f(x): ...\nclass C: ...\n"}
    moved = "__all__ = ['f', 'C']\ndef f(x): ...\nclass C: ...\n"
    for number, text in enumerate(("from torch.n import C, f\n", "from torch.n import *\n")):
        after = {"torch/m.py": text, "torch/n.py": moved}
        sides = [
            python_snapshot(tmp_path / f"{number}{side}", files, "torch.m")
            for side, files in enumerate((before, after))
        ]
        assert differences(*sides) == []


def test_a_name_that_goes_from_all_and_stays_in_the_module_is_told(tmp_path: Path) -> None:
    both = "def f(): ...\ndef g(): ...\n"
    sides = [
        python_snapshot(
            tmp_path / str(side), {"torch/m.py": f"__all__ = {names}\n{both}"}, "torch.m"
        )
        for side, names in enumerate((["f", "g"], ["f"]))
    ]
    (found,) = differences(*sides)
    assert (found.rule, found.severity) == ("exports_removed", Severity.SEMANTIC)
    assert "g" in found.message


@pytest.mark.parametrize(("was", "now"), [("", "  device_check: NoCheck\n")])
def test_the_device_check_of_an_operator_is_compared(tmp_path: Path, was: str, now: str) -> None:
    func = "- func: f(Tensor self) -> Tensor\n"
    sides = [operator_snapshot(tmp_path / str(i), func + x) for i, x in enumerate((was, now))]
    found = differences(*sides)
    assert rules(found) == ["device_check_changed"]
    assert found[0].severity is Severity.SEMANTIC


def test_a_member_is_used_by_those_who_use_the_member() -> None:
    data = usage.Usage(frozenset({"a", "b"}), {"c10::A": ("a", "b"), "c10::A::f": ("a",)}, {}, {})
    whole = class_("c10::A")

    def users(gone: Declaration) -> tuple[str, ...]:
        (found,) = usage.weigh(diff(snapshot(whole, gone), snapshot(whole)), data)
        return found.used_by

    assert users(method("c10::A::f")) == ("a",)
    assert users(method("c10::A::other")) == ()
    assert users(virtual("c10::A::must", pure=True)) == ("a", "b")


def test_a_member_may_come_from_a_new_base_of_which_nothing_is_known(tmp_path: Path) -> None:
    member = method("c10::A::at")
    known, unknown = class_("c10::A", "c10::B"), class_("c10::A", "std::string_view")
    base = class_("c10::B")
    assert "method_removed" not in rules(
        diff(snapshot(class_("c10::A"), member), snapshot(unknown))
    )
    found = diff(snapshot(class_("c10::A"), base, member), snapshot(known, base))
    assert "method_removed" in rules(found)
    longer = constructor("c10::A", "const char *", "unsigned long")
    shorter = constructor("c10::A", "std::string_view")
    assert "constructor_signature_changed" not in rules(
        diff(snapshot(class_("c10::A"), longer), snapshot(unknown, shorter))
    )
    before = "class C:\n    def m(self): ...\n"
    after = "class C(_Made):\n    pass\n"
    sides = [
        python_snapshot(tmp_path / str(side), {"torch/m.py": text}, "torch.m")
        for side, text in enumerate((before, after))
    ]
    assert rules(differences(*sides)) == ["base_added"]


def test_the_hash_of_an_enumeration_is_the_standard_librarys() -> None:
    own = class_("std::hash<c10::E>")
    kept = cpp("enum", "c10::E", underlying="int")
    assert diff(snapshot(own, kept), snapshot(kept)) == []
    assert rules(diff(snapshot(own), snapshot())) == ["class_removed"]


def operator(sign: str, *types: str) -> Declaration:
    return function(f"c10::operator{sign}", *types, returns="bool")


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (operator("!=", "nullptr_t", "P"), operator("==", "P", "nullptr_t")),
        (operator("==", "nullptr_t", "P"), operator("==", "P", "nullptr_t")),
        (operator("<", "P", "P"), operator("<=>", "P", "P")),
    ],
)
def test_a_comparison_that_the_language_makes_is_not_gone(
    gone: Declaration, left: Declaration
) -> None:
    assert rules(diff(snapshot(gone, left), snapshot(left))) == ["signature_compatible"]
    assert rules(diff(snapshot(gone, left), snapshot())) == ["function_removed"] * 2


def test_a_function_on_const_objects_of_any_kind_takes_every_call() -> None:
    whole, was = class_("c10::A"), method("c10::A::f", const=True)
    for ref, expected in (("&", "signature_compatible"), ("&&", "method_signature_changed")):
        now = method("c10::A::f", const=True, ref=ref)
        assert rules(diff(snapshot(whole, was), snapshot(whole, now))) == [expected]


def test_sizes_and_their_differences_convert() -> None:
    was, now = (function("c10::f", t) for t in ("typename List<T>::size_type", "long"))
    assert rules(diff(snapshot(was), snapshot(now))) == ["signature_compatible"]


def test_a_class_that_says_how_it_is_moved_could_not_be_copied_before() -> None:
    name = "c10::A"
    copied = method(f"{name}::operator=", f"const {name} &", deleted=True)
    moved = method(f"{name}::operator=", f"{name} &&")
    assert diff(snapshot(class_(name), moved), snapshot(class_(name), moved, copied)) == []
    found = diff(snapshot(class_(name)), snapshot(class_(name), copied))
    assert rules(found) == ["made_deleted"]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (function("c10::f", "T &&"), function("c10::f", "T"), ["signature_compatible"]),
        (function("c10::f", "T"), function("c10::f", "T &&"), ["function_signature_changed"]),
        (
            function("c10::f", "const T &"),
            function("c10::f", "const type-parameter-0-0 &", template="typename"),
            ["signature_compatible"],
        ),
        (
            cpp("variable", "c10::n", type="int", value="( c10 :: is < T > )"),
            cpp("variable", "c10::n", type="int", value="( torch :: headeronly :: is < T > )"),
            [],
        ),
    ],
)
def test_what_compiles_all_the_same_is_no_break(
    was: Declaration, now: Declaration, expected: list[str]
) -> None:
    assert rules(diff(snapshot(was), snapshot(now))) == expected


def test_an_operator_that_a_friend_makes_is_not_told_as_gone() -> None:
    unequal = operator("!=", "P", "P")
    assert diff(snapshot(class_("P"), unequal), snapshot(class_("P"))) == []
