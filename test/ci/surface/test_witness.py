# SPDX-License-Identifier: BSD-3-Clause
"""Each kind of break has a witness: it compiles with the torch before and not with the one after.

The two torches are headers of a few lines, one namespace per rule.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest
from trees import write_tree

from torch_backend_ci.surface.catalogue import Catalogue, Surface
from torch_backend_ci.surface.diff import diff
from torch_backend_ci.surface.diff.rules import RULES
from torch_backend_ci.surface.extract import cpp, headers
from torch_backend_ci.surface.model import Domain, Finding, Severity, Snapshot, Torch
from torch_backend_ci.surface.probe import trial
from torch_backend_ci.surface.probe.trial import Outcome, Verdict
from torch_backend_ci.torch_tree import TorchTree

# Rule -> what declares it before, and after.
CHANGES: dict[str, tuple[str, str]] = {
    "class_removed": ("struct Gone { int field; };", ""),
    "class_renamed": (
        "struct SomeThing { void f(int); int g; long h; };",
        "struct SomeThings { void f(int); int g; long h; };",
    ),
    # The base is not of PyTorch: one of PyTorch is in the snapshot, and the finding is about it.
    "made_abstract": ("struct Derived {};", "struct Derived : std::pmr::memory_resource {};"),
    "base_removed": (
        "struct Base {}; struct Class : Base { int a; };",
        "struct Base {}; struct Class { int a; };",
    ),
    "template_changed": (
        "template <class T> struct Box { T a; };",
        "template <class T, int N> struct Box { T a; };",
    ),
    "made_final": ("struct Open { int a; };", "struct Open final { int a; };"),
    "pure_virtual_added": (
        "struct I { virtual void f() = 0; };",
        "struct I { virtual void f() = 0; virtual int more(long) = 0; };",
    ),
    "made_pure": (
        "struct I { virtual void f() = 0; virtual void g(); };",
        "struct I { virtual void f() = 0; virtual void g() = 0; };",
    ),
    "virtual_removed": (
        "struct I { virtual void f(); virtual int gone(long) const; };",
        "struct I { virtual void f(); };",
    ),
    "virtual_renamed": (
        "struct I { virtual void f(); virtual int some_thing(long, char) const; };",
        "struct I { virtual void f(); virtual int some_things(long, char) const; };",
    ),
    "no_longer_virtual": (
        "struct I { virtual void f(); virtual void g(); };",
        "struct I { virtual void f(); void g(); };",
    ),
    "virtual_signature_changed": (
        "struct I { virtual void* f(int) const; virtual void (*g() noexcept)(int); };",
        "struct I { virtual void* f(int); virtual void (*g() noexcept)(int); };",
    ),
    "function_removed": ("void gone(int); void stays(char*);", "void stays(char*);"),
    "function_renamed": ("int some_thing(int, char*);", "int some_things(int, char*);"),
    "function_signature_changed": ("void f(int&, int = 0);", "void f(int&, int*);"),
    "method_removed": (
        "struct C { void gone(int) const; int a; };",
        "struct C { int a; };",
    ),
    "method_renamed": (
        "struct C { int some_thing(int, char*); };",
        "struct C { int some_things(int, char*); };",
    ),
    "method_signature_changed": (
        "struct C { template <class F> int f(int, F) const; };",
        "struct C { template <class F> int f(F) const; };",
    ),
    "constructor_removed": (
        "struct C { C(int); C(char*, char*); };",
        "struct C { C(char*, char*); };",
    ),
    "constructor_signature_changed": (
        "struct C { C(int, char*); virtual void f() = 0; };",
        "struct C { C(int*, char*, long*); virtual void f() = 0; };",
    ),
    "made_explicit": ("struct C { C(int); };", "struct C { explicit C(int); };"),
    "return_type_changed": ("int* f();", "long f();"),
    "default_removed": ("void f(int, int = 0);", "void f(int, int);"),
    "no_longer_static": ("struct C { static int f(); };", "struct C { int f(); };"),
    "made_deleted": ("struct C { void f(int); };", "struct C { void f(int) = delete; };"),
    "access_narrowed": (
        "struct C { int a; void f(); };",
        "struct C { int a; protected: void f(); };",
    ),
    "field_removed": ("struct C { int gone; char* b; };", "struct C { char* b; };"),
    "field_renamed": (
        "struct C { int some_thing; };",
        "struct C { int some_things; };",
    ),
    "field_type_changed": (
        "struct C { int f(); protected: int a; };",
        "struct C { int f(); protected: long a; };",
    ),
    "enum_removed": ("enum class Gone { A }; int stays();", "int stays();"),
    "enum_renamed": (
        "enum class SomeThing { A, B, C };",
        "enum class SomeThings { A, B, C };",
    ),
    "enumerator_removed": ("enum E { A, B = 7 };", "enum E { A };"),
    "enumerator_renamed": (
        "enum class E { A, SomeThing };",
        "enum class E { A, SomeThings };",
    ),
    "made_scoped": ("enum E { A };", "enum class E { A };"),
    "alias_removed": ("using Gone = int; int stays();", "int stays();"),
    "alias_renamed": ("using SomeThing = char**;", "using SomeThings = char**;"),
    "alias_changed": ("using Alias = int;", "using Alias = char*;"),
    "constant_removed": ("constexpr int kGone = 1; int stays();", "int stays();"),
    "constant_renamed": ("constexpr long kSomeThing = 77;", "constexpr long kSomeThings = 77;"),
    "constant_type_changed": (
        "constexpr int kValue = 1;",
        "constexpr const char* kValue = nullptr;",
    ),
    "no_longer_constexpr": ("constexpr int kValue = 1;", "extern const int kValue;"),
    "kind_changed": ("int thing(int);", "struct thing {};"),
    "macro_removed": ("#define TINY_GONE(a) int a;", "#define OTHER 1"),
    "macro_renamed": (
        "#define TINY_SOME_THING(a, b) struct a { int b; };",
        "#define TINY_SOME_THINGS(a, b) struct a { int b; };",
    ),
    "macro_parameters_changed": (
        "#define TINY_REGISTER(name, fn) int name##fn;",
        "#define TINY_REGISTER(fn) int fn;",
    ),
    "requires_changed": ("void f();", "#ifdef USE_CUDA\nvoid f();\n#endif"),
    "header_not_alone": ("", "inline not_declared f();"),
    "header_removed": ("", ""),
    "language_raised": (
        "#if __cplusplus < 201703L\n#error C++17 is needed\n#endif",
        "#if __cplusplus < 202002L\n#error C++20 is needed\n#endif",
    ),
}
# In headers of their own, because they are about those.
APART = ("header_not_alone", "header_removed", "language_raised")

NAMES = [rule for rule in CHANGES if rule not in APART]
CATALOGUE = Catalogue(
    (
        Surface(
            "tiny",
            "a few lines",
            headers=("tiny.h", *(f"{rule}.h" for rule in APART)),
            symbols=tuple(f"{rule}::*" for rule in NAMES),
            macros=("TINY_*",),
        ),
    )
)


def written(root: Path, side: int) -> TorchTree:
    """The torch before (0) or after (1)."""
    text = "".join(f"namespace {r} {{\n{CHANGES[r][side]}\n}}\n" for r in NAMES)
    files = {"torch/include/tiny.h": "#pragma once\n#include <memory_resource>\n" + text}
    files |= {f"torch/include/{rule}.h": CHANGES[rule][side] + "\n" for rule in APART}
    if side:
        del files["torch/include/header_removed.h"]
        files["torch/include/header_not_alone.h"] = "#include <nobody/ships/this.h>\n"
    return write_tree(root, files)


def taken(tree: TorchTree) -> Snapshot:
    declared = [*cpp.extract(tree, CATALOGUE), *headers.extract(tree, CATALOGUE)]
    domains = frozenset({Domain.CPP, Domain.HEADER})
    return Snapshot(Torch(tree.version, None), domains, tuple(declared))


@functools.cache
def tried() -> list[Verdict]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        before, after = (written(Path(folder) / str(side), side) for side in (0, 1))
        was, now = taken(before), taken(after)
        sides = ((before, was.declarations), (after, now.declarations))
        return trial.try_all(diff(was, now), *sides, CATALOGUE)


def breaking() -> set[str]:
    """The rules of C++ and headers that break compilation."""
    rules = [*RULES[Domain.CPP].values(), *RULES[Domain.HEADER].values()]
    return {rule.name for rule in rules if rule.severity == Severity.COMPILE_BREAK}


def test_there_is_a_change_here_for_every_rule_that_breaks_compilation() -> None:
    assert breaking() == set(CHANGES)


@pytest.mark.parametrize("rule", sorted(CHANGES))
def test_the_witness_of_a_break_proves_it(rule: str) -> None:
    verdicts = [verdict for verdict in tried() if verdict.finding.rule == rule]
    assert verdicts, [verdict.finding.rule for verdict in tried()]
    for verdict in verdicts:
        assert verdict.outcome == Outcome.PROVED, f"{verdict.why}\n{verdict.source}"


def test_what_does_not_break_is_refuted(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path, {"torch/include/tiny.h": "namespace alias_changed { void f(int); }"}
    )
    declared = cpp.extract(tree, Catalogue((dataclasses.replace(CATALOGUE.surfaces[0]),)))
    (function,) = declared
    claim = Finding(
        rule="function_removed",
        severity=Severity.COMPILE_BREAK,
        surface="tiny",
        domain=Domain.CPP,
        name=function.name,
        message="It is gone.",
        before=function,
        after=None,
        concerns=("callers",),
    )
    (verdict,) = trial.try_all([claim], (tree, declared), (tree, declared), CATALOGUE)
    assert verdict.outcome == Outcome.REFUTED


def test_no_witness_is_made_of_a_change_that_does_not_say_enough(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"torch/include/tiny.h": ""})
    claim = Finding("new_rule", Severity.COMPILE_BREAK, "tiny", Domain.CPP, "x", "", None, None, ())
    (verdict,) = trial.try_all([claim], (tree, []), (tree, []), CATALOGUE)
    assert verdict.outcome == Outcome.NOT_PROVABLE
    assert "new_rule" in verdict.why
