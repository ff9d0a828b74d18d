# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons in the browser say what torch_conformance.results.comparison says."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import synthetic
from node_scripts import answer

from torch_backend_ci.dashboard import model
from torch_backend_ci.dashboard.pages.search import EVIDENCE
from torch_conformance.results.comparison import (
    ALIKE,
    NOTED,
    IncomparableError,
    Side,
    compare,
    facts_of,
    table,
)
from torch_conformance.results.report import Run
from torch_conformance.spec.outcome import Outcome

Result = tuple[str, "str | None"] | None
RESULTS: list[Result] = [
    None,
    *((str(o), e) for o, e in itertools.product(Outcome, (*EVIDENCE, None))),
]
LISTS = ("regressions", "improvements", "withdrawn", "changed", "added", "removed")
#: Another value for everything that has to be alike.
OTHERWISE: Mapping[str, dict[str, Any]] = {
    "backend": {"backend": "other"},
    "suite": {"source": {"commit": None, "digest": "0" * 64}},
    "options": {"options": {**synthetic.run()["options"], "dtypes": ["full"]}},
    "selection": {"selection": {**synthetic.select([]), "differs_by": ["--tier"]}},
    "seed": {"seed": 1},
}


def document(results: Mapping[str, Result], **run: Any) -> Side:
    """A side of a comparison; a flaky check is a listed one."""
    said = synthetic.run(**{"selection": synthetic.select([]), **run})
    found = {
        id: Seen(Outcome(of[0]), of[1], waiver="flaky: it" if of[0] == "flaky" else None)
        for id, of in results.items()
        if of
    }
    return Side("report", "0" * 64, facts_of(msgspec.convert(said, Run)), found)


Seen = functools.partial(model.Result, duration_s=0.0)


def side(made: Side) -> dict[str, Any]:
    """The same, as the browser has it."""
    plain: dict[str, Any] = msgspec.to_builtins(
        {
            "asks": {name: read(made.facts) for name, read in ALIKE.items()},
            "notes": {name: getattr(made.facts, name) for name in NOTED},
            "capabilities": made.facts.capabilities,
            "results": {
                id: {"outcome": one.outcome, "evidence": one.evidence}
                for id, one in made.results.items()
            },
        }
    )
    return plain


def asked(old: Side, new: Side, *across: str) -> dict[str, Any]:
    question = {"moves": table(), "cases": [[side(old), side(new), across]]}
    found: dict[str, Any] = answer("comparison.mjs", question)[0]
    return found


def test_every_change_of_a_result_is_judged_alike() -> None:
    pairs = {
        f"a/b:c{number}": pair
        for number, pair in enumerate(itertools.product(RESULTS, RESULTS))
        if any(pair)
    }
    old, new = (document({id: pair[i] for id, pair in pairs.items()}) for i in range(2))
    theirs, ours = compare(old, new), asked(old, new)["lists"]
    for name in LISTS:
        expected = [(c.id, c.old, c.new) for c in getattr(theirs, name)]
        found = [(c["id"], c["old"], c["new"]) for c in ours[name]]
        unknown = [
            (id, *("unknown" if v == "None" else v for v in values)) for id, *values in expected
        ]
        assert sorted(found) == sorted(unknown), name
        assert found, f"nothing is in the list of {name}"


@pytest.mark.parametrize("name", ALIKE)
def test_what_did_not_ask_the_same_is_refused_unless_it_is_named(name: str) -> None:
    old, new = document({}), document({}, **OTHERWISE[name])
    with pytest.raises(IncomparableError) as refused:
        compare(old, new)
    (one,) = asked(old, new)["refused"]
    assert [one["name"]] == refused.value.names == [name]
    assert str(refused.value).splitlines()[1:] == [
        f"  {name} differs: {one['old']} and {one['new']}"
    ]
    made = asked(old, new, name)
    assert made["refused"] == []
    assert [one["name"] for one in made["across"]] == [name]


def test_what_may_differ_is_told() -> None:
    torch = {"torch": {"version": "2.14.0", "git": None}, "devices": ["one"]}
    capabilities = synthetic.run()["capabilities"]
    first, second, *_ = capabilities
    changed = {
        **capabilities,
        first: {"value": False, "source": "declared"},
        second: {"value": False, "source": "probed", "broken": "RuntimeError: no such stream"},
    }
    old, new = document({}), document({}, capabilities=changed, **torch)
    theirs, ours = compare(old, new), asked(old, new)
    assert [f"{n['name']}: {n['old']} -> {n['new']}" for n in ours["notes"]] == theirs.notes
    assert "broken, probed" in [change.new for change in theirs.capabilities]
    assert ours["capabilities"] == [
        {"id": c.id, "old": c.old, "new": c.new} for c in theirs.capabilities
    ]
