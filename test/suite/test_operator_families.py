# SPDX-License-Identifier: BSD-3-Clause
"""Each operator of the database belongs to one family, and each family has its requirements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from torch_conformance.opinfo import database, error, foreach, forward, gradient, out, policy
from torch_conformance.spec import catalogue, operator_families

#: Those that name operators by lists of their own are left out: no new operator is in these.
TOPICS_OF_ANY_OPERATOR = ("001", "003", "004", "005", "006", "007", "008", "009")


def test_each_operator_of_this_torch_is_listed() -> None:
    names = {policy.case_name(op) for op in database.operators()}
    assert operator_families.unlisted(f"opinfo/forward:{name}:float32" for name in names) == []


def test_no_operator_is_in_two_families() -> None:
    families = operator_families.every().values()
    counts = Counter(operator for family in families for operator in family.operators)
    assert [name for name, count in counts.items() if count > 1] == []


def test_an_operator_that_no_family_lists_counts_as_other_and_is_named() -> None:
    assert operator_families.of_operator("new.operator") == operator_families.OTHER
    ids = [
        "opinfo/forward:new_operator:float32",
        "opinfo/error:new_operator",
        "opinfo/forward:linalg_det_singular:float32",
        "opinfo/foreach:_foreach_new:float32",
        "operator/binary:newer",
    ]
    assert operator_families.unlisted(ids) == ["new_operator"]


def test_the_family_other_has_every_requirement_that_a_new_operator_may_need() -> None:
    wanted = {
        operator_families.requirement(operator_families.OTHER, number)
        for number in TOPICS_OF_ANY_OPERATOR
    }
    assert wanted <= set(catalogue.load())


def test_a_variant_and_the_longest_name_decide_the_family_of_a_case() -> None:
    assert operator_families.of_case("log_softmax_with_dtype") == "ACTIVATION"
    assert operator_families.of_case("log") == "UNARY"
    assert operator_families.of_case("t") == operator_families.of_case("_t") == "VIEW"


def named(name: str) -> Any:
    """An operator of the database."""
    return next(op for op in database.operators() if op.name == name)


@pytest.mark.parametrize(
    ("topic", "operator", "expected"),
    [
        (forward.Forward, "linalg.det", "OPINFO-LINALG-001"),
        (forward.Forward, "bernoulli", "OPINFO-RANDOM-002"),
        (forward.Forward, "empty", "OPINFO-CREATE-002"),
        (out.Out, "add", "OPINFO-BINARY-003"),
        (error.Error, "cat", "OPINFO-JOIN-007"),
        (gradient.Gradient, "nn.functional.conv2d", "OPINFO-CONV-008"),
    ],
)
def test_a_check_names_the_requirement_of_its_family_and_topic(
    topic: Any, operator: str, expected: str
) -> None:
    assert topic(named(operator)).required() == expected


def test_functions_of_lists_are_one_family_whatever_their_names_are() -> None:
    add = next(op for op in database.foreach() if op.name == "_foreach_add")
    assert foreach.Foreach(add).required() == "OPINFO-FOREACH-010"
    assert foreach.ForeachInPlace(add).required() == "OPINFO-FOREACH-011"


ENTRY: dict[str, Any] = {
    "families": ["CONV", "SPARSE"],
    "tier": "core",
    "statement": "{operators} MUST give results.",
    "reason": "Models need them.",
    "source": {"kind": "documented", "url": "{documentation}"},
}


def loaded(tmp_path: Path, id: str, entry: dict[str, Any]) -> dict[str, catalogue.Requirement]:
    """The requirements of a catalogue with one entry."""
    content = {"surface": "opinfo", "requirements": {id: entry}}
    (tmp_path / "opinfo.yaml").write_text(yaml.safe_dump(content))
    return catalogue.load([tmp_path])


def test_an_entry_for_families_stands_for_a_requirement_of_each(tmp_path: Path) -> None:
    found = loaded(tmp_path, "OPINFO-*-001", {**ENTRY, "needs": ["threads"]})
    assert list(found) == ["OPINFO-CONV-001", "OPINFO-SPARSE-001"]
    conv, sparse = found.values()
    assert conv.statement == "Convolutions MUST give results."
    assert conv.source.url == operator_families.every()["CONV"].documentation
    assert (conv.needs, sparse.needs) == (("threads",), ("threads", "sparse"))


@pytest.mark.parametrize(
    ("id", "change", "words"),
    [
        ("OPINFO-001", {}, "need each other"),
        ("OPINFO-*-001", {"families": ["SORCERY"]}, "unknown family 'SORCERY'"),
        ("OPINFO-*-1", {}, "not an id like"),
        ("OPINFO-*-001", {"statement": ""}, "'statement' is missing"),
    ],
)
def test_a_mistake_in_an_entry_for_families_is_refused(
    id: str, change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(catalogue.CatalogueError, match=r"opinfo\.yaml: OPINFO") as caught:
        loaded(tmp_path, id, {**ENTRY, **change})
    assert words in str(caught.value)


def test_an_id_for_families_needs_the_list_of_them(tmp_path: Path) -> None:
    entry = {key: value for key, value in ENTRY.items() if key != "families"}
    with pytest.raises(catalogue.CatalogueError, match="need each other"):
        loaded(tmp_path, "OPINFO-*-001", entry)
