# SPDX-License-Identifier: BSD-3-Clause
"""What a change of headers puts at stake is read again, and what it does not is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import small_torch

from torch_backend_ci.surface import catalogue as catalogues
from torch_backend_ci.surface.check import part, reach, stakes
from torch_backend_ci.surface.check.abridged import Abridged, abridged
from torch_backend_ci.surface.check.stakes import Stakes
from torch_backend_ci.surface.extract import cpp
from torch_backend_ci.surface.model import Domain, Snapshot, Torch
from torch_backend_ci.surface.probe import UNIT
from torch_backend_ci.torch_tree import TorchTree, locate

INCLUDE = "torch/include/"
BASE = "c10/core/Base.h"
DERIVED = "c10/core/Derived.h"
FURTHER = "c10/core/Further.h"
MACRO = "c10/core/Macro.h"
ASIDE = "c10/core/Aside.h"
TEMPLATE = "c10/core/Template.h"
UNLISTED = "c10/core/Unlisted.h"
HEADERS = {
    BASE: """#pragma once
namespace c10 {
// What a backend derives from.
struct Base {
  virtual ~Base() = default;
  virtual void first(
      int size,
      int count);
  virtual void second();
};
void use(Base& base);
} // namespace c10
""",
    DERIVED: """#pragma once
#include <c10/core/Base.h>
namespace c10 {
struct Derived : Base {
  void other();
};
} // namespace c10
""",
    FURTHER: """#pragma once
#include <c10/core/Derived.h>
namespace c10 {
struct Further : Derived {};
} // namespace c10
""",
    MACRO: """#pragma once
#include <c10/core/Base.h>
#define CALL_SECOND(base) (base).second()
namespace c10 {
template <class T>
void call(T& base) {
  CALL_SECOND(base);
}
} // namespace c10
""",
    ASIDE: """#pragma once
#include <c10/core/Unlisted.h>
namespace c10 {
int aside(); // never calls first()
Caller caller();
} // namespace c10
""",
    TEMPLATE: """#pragma once
namespace c10 {
template <class T>
class Holder {
  T held_;
};
} // namespace c10
""",
}
UNLISTED_TEXT = """#pragma once
#include <c10/core/Base.h>
namespace c10 {
typedef decltype(&Base::second) Called;
class Caller {
  Called called;
};
} // namespace c10
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> TorchTree:
    root = small_torch.unpacked(tmp_path_factory.mktemp("torch"))
    for header, text in HEADERS.items():
        (root / INCLUDE / header).write_text(text)
    (root / INCLUDE / UNLISTED).write_text(UNLISTED_TEXT)
    return locate(str(root), progress=lambda *_: None)


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> catalogues.Catalogue:
    path = tmp_path_factory.mktemp("surfaces") / "surfaces.yml"
    path.write_text(f"build:\n  title: all\n  headers: [{', '.join(HEADERS)}]\n")
    return catalogues.load(path)


@pytest.fixture(scope="module")
def before(tree: TorchTree, surfaces: catalogues.Catalogue) -> Snapshot:
    read = cpp.extract(tree, surfaces, profiles=cpp.PROFILES[:1])
    return Snapshot(Torch("2.13.0", None), frozenset({Domain.CPP}), tuple(read))


def at_stake(
    tree: TorchTree,
    surfaces: catalogues.Catalogue,
    before: Snapshot,
    edits: Mapping[str, str],
    header: str = BASE,
) -> Stakes | None:
    """What is at stake if text of a header is replaced."""
    text = HEADERS[header]
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    changed = {INCLUDE + header: text.encode()}
    graph = reach.includes(tree, changed, surfaces)
    moved = reach.rearranged(tree, changed)
    return stakes.at_stake(tree, changed, moved, before, graph)


def headers(found: Stakes | None) -> set[str]:
    assert found is not None
    return {file.removeprefix(INCLUDE) for file in found.files}


def test_a_comment_and_layout_put_nothing_at_stake(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    edits = {
        "// What a backend derives from.": "/* Two\n * lines. */",
        "(\n      int size": "(int size",
    }
    found = at_stake(tree, surfaces, before, edits)
    assert found is not None and found.names == frozenset()
    assert headers(found) == {BASE}


def test_a_function_is_at_stake_wherever_it_is_mentioned_or_may_be_overridden(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    found = at_stake(tree, surfaces, before, {"void second();": "void second() const;"})
    assert found is not None
    assert {"second", "CALL_SECOND", "call"} <= found.names  # by a macro, and by a template
    assert found.classes == {"Base", "Derived", "Further"}
    assert {BASE, DERIVED, FURTHER, MACRO} <= headers(found)


def test_the_types_of_a_file_that_no_surface_lists_hand_on_what_it_mentions(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    found = at_stake(tree, surfaces, before, {"void second();": "void second() const;"})
    assert found is not None and {"Called", "Caller"} <= found.names
    assert {UNLISTED, ASIDE} <= headers(found)


def test_a_comment_is_no_mention(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    found = at_stake(tree, surfaces, before, {"int count);": "long count);"})
    assert found is not None and headers(found) == {BASE, DERIVED, FURTHER}


def test_a_template_is_at_stake_with_what_it_holds(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    found = at_stake(tree, surfaces, before, {"T held_;": "T* held_;"}, TEMPLATE)
    assert found is not None and "Holder" in found.names


def test_a_line_of_parameters_belongs_to_its_function(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    found = at_stake(tree, surfaces, before, {"int count);": "long count);"})
    assert found is not None and found.names == {"first"}


def test_a_new_function_is_at_stake_where_its_name_was_in_use(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    new = "virtual void second();\n  virtual void other();"
    found = at_stake(tree, surfaces, before, {"virtual void second();": new})
    assert found is not None and found.names == {"other"}
    assert DERIVED in headers(found)


@pytest.mark.parametrize(
    "edits",
    [
        {"#pragma once": "#pragma once\n#include <vector>"},
        {"#pragma once": "#pragma once\n#define MORE 1"},
        {"void use(Base& base);": "bool operator==(Base&, Base&);"},
        {"void use(Base& base);": "} namespace c10 {"},
        {"void use(Base& base);": 'extern "C" void use();'},
    ],
)
def test_what_reaches_far_is_not_guessed(
    edits: Mapping[str, str],
    tree: TorchTree,
    surfaces: catalogues.Catalogue,
    before: Snapshot,
) -> None:
    assert at_stake(tree, surfaces, before, edits) is None


def test_a_file_that_goes_or_that_declares_nothing_is_not_guessed(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    changed = {INCLUDE + BASE: None}
    graph = reach.includes(tree, changed, surfaces)
    assert stakes.at_stake(tree, changed, (), before, graph) is None
    same = {INCLUDE + BASE: HEADERS[BASE].replace("second", "third").encode()}
    nothing = Snapshot(before.torch, before.domains, ())
    assert stakes.at_stake(tree, same, (), nothing, graph) is None


def test_few_headers_cover_all_files(tree: TorchTree, surfaces: catalogues.Catalogue) -> None:
    graph = reach.includes(tree, {}, surfaces)
    files = [INCLUDE + header for header in (BASE, DERIVED, ASIDE)]
    assert stakes.covering(graph, files, [FURTHER, MACRO, ASIDE]) == [FURTHER, ASIDE]
    assert stakes.covering(graph, files, []) == []


def test_some_files_are_read_as_they_are_read_with_all(
    tree: TorchTree, surfaces: catalogues.Catalogue, before: Snapshot
) -> None:
    files = {INCLUDE + DERIVED, INCLUDE + MACRO}
    read = cpp.extract_part(tree, surfaces, [FURTHER, MACRO], files)
    wanted = [d for d in before.declarations if d.file in files]
    assert sorted(read, key=repr) == sorted(wanted, key=repr)


def test_of_the_probe_only_what_mentions_a_stake_is_compiled() -> None:
    paths = {h: [INCLUDE + h] for h in ("c10/core/Allocator.h", "c10/core/Stream.h")}
    graph = reach.Includes(paths, {path: set() for (path,) in paths.values()})
    found = Stakes(
        frozenset({"raw_deleter"}), frozenset(), frozenset(paths["c10/core/Allocator.h"])
    )
    asked = part.of(found, graph)
    assert asked.text == '#include <c10/core/Allocator.h>\n#include "surfaces/allocator.h"\n'
    assert '#include "surfaces/allocator.h"' in UNIT.read_text()
    nothing = Stakes(frozenset({"nobody"}), frozenset(), frozenset({"torch/include/none.h"}))
    assert part.of(nothing, graph).text == ""


WRITTEN = """namespace at {
inline at::Tensor abs(const at::Tensor & self) {
    return at::_ops::abs::call(self);
}
inline at::Tensor Tensor::neg() const {
    return at::_ops::neg::call(*this);
}
constexpr int two() {
    return 2;
}
inline int more() {
    int one = 1;
    return one;
}
}
"""


def test_functions_of_a_line_lose_their_bodies_and_no_line_moves(
    tree: TorchTree, tmp_path: Path
) -> None:
    path = "torch/include/ATen/ops/abs.h"
    (tree.root / path).parent.mkdir(parents=True, exist_ok=True)
    (tree.root / path).write_text(WRITTEN)
    shorter = Abridged((path, "torch/include/ATen/ops/gone.h"))
    text = shorter.overlay(tree, "at::abs(self)")[path]
    assert text.count("\n") == WRITTEN.count("\n")
    assert "inline at::Tensor abs(const at::Tensor & self);\n" in text
    assert "neg" not in text
    assert text[text.index("constexpr") :] == WRITTEN[WRITTEN.index("constexpr") :]


def test_an_operator_that_nothing_mentions_is_left_out(tree: TorchTree) -> None:
    folder = "torch/include/ATen/ops/"
    own = ["abs.h", "abs_ops.h", "neg_native.h", "exp_symint.h", "zeros_cpu_dispatch.h", "tensor.h"]
    lists, user = "torch/include/ATen/Functions.h", "torch/include/ATen/User.h"
    (tree.root / folder).mkdir(parents=True, exist_ok=True)
    for name in own:
        (tree.root / folder / name).write_text("int declared();\n")
    (tree.root / lists).write_text("#include <ATen/ops/abs.h>\nint zeros();\n")
    (tree.root / user).write_text("#include <ATen/ops/exp.h>\nint user = neg_out(1);\n")
    shorter = abridged([lists, user, *(folder + name for name in own)], [folder + "abs_ops.h"])
    assert shorter.overlay(tree) == {
        folder + name: "" for name in ("abs.h", "exp_symint.h", "zeros_cpu_dispatch.h")
    }
