# SPDX-License-Identifier: BSD-3-Clause
"""The feed: what is an entry, what is in it, how it looks to programs and to readers of news."""

from __future__ import annotations

import itertools
import json
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from schemas_of import valid

from torch_backend_ci import document
from torch_backend_ci.changed_files import ChangedFile
from torch_backend_ci.errors import CiError
from torch_backend_ci.feed import feed, hints
from torch_backend_ci.feed.entry import MOST_FILES, MOST_FINDINGS, Entry, Merged, attributed, make
from torch_backend_ci.label import rules
from torch_backend_ci.surface.diff.rules import RULES, anywhere
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity

THE_RULES = rules.load()
HOME = "https://github.com/octo-org/puone"
ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "<script>alert('x')</script> & ]]> \"quoted\" @everyone \x00\x1b[31m\u202e"


def a_declaration(
    name: str, text: str, file: str = "torch/include/c10/core/Allocator.h"
) -> Declaration:
    return Declaration(Domain.CPP, "method", name, "allocator", text, file, 12)


def a_finding(
    name: str = "c10::Allocator::copy_data",
    *,
    rule: str = "made_pure",
    severity: str = "compile_break",
    file: str = "torch/include/c10/core/Allocator.h",
    hint: str | None = None,
    message: str = "it has become pure virtual",
) -> Finding:
    return Finding(
        rule=rule,
        severity=Severity(severity),
        surface="allocator",
        domain=Domain.CPP,
        name=name,
        message=message,
        before=a_declaration(name, "virtual void copy_data() const", file),
        after=a_declaration(name, "virtual void copy_data() const = 0", file),
        concerns=("overriders",),
        hint=hint,
        used_by=("torch_npu",),
    )


def a_change(
    *files: str, pr: int = 7, title: str = "Make it pure", commit: str = "a" * 40
) -> Merged:
    return Merged(
        pr=pr,
        title=title,
        url=f"{HOME}/pull/{pr}",
        commit=commit,
        merged_at="2026-01-01T00:00:00Z",
        reverts=None,
        files=tuple(ChangedFile(file) for file in files or ("c10/core/Allocator.h",)),
    )


def an_entry(change: Merged | None = None, *findings: Finding) -> Entry:
    entry, _ = make(change or a_change(), findings, THE_RULES)
    assert entry is not None
    return entry


# What is an entry.


def test_a_change_of_a_surface_is_told_with_what_was_and_what_is() -> None:
    entry = an_entry(None, a_finding())
    assert (entry.id, entry.severity) == ("7-aaaaaaaaaaaa", "compile_break")
    assert entry.surfaces == ("allocator",)
    assert entry.labels == ("impact: compile-break", "surface: allocator")
    (finding,) = entry.findings
    assert finding.before == "virtual void copy_data() const"
    assert finding.after == "virtual void copy_data() const = 0"
    assert (finding.rule, finding.used_by) == ("made_pure", ("torch_npu",))


def test_a_change_of_the_reference_backend_is_told_with_its_files() -> None:
    entry = an_entry(a_change("csrc/runtime/guard.cpp", "README.md", "reference_backend/a.py"))
    assert entry.reference_backend == ("csrc/runtime/guard.cpp", "reference_backend/a.py")
    assert "reference-backend: touched" in entry.labels
    assert entry.severity is None


def test_what_concerns_no_backend_is_no_entry_and_gets_no_label() -> None:
    assert make(a_change("README.md", "docs/x.md"), (), THE_RULES) == (None, ())


def test_that_nobody_looked_for_findings_is_said() -> None:
    entry, planned = make(a_change(), None, THE_RULES)
    assert entry is not None
    assert not entry.judged
    assert not any(label.name.startswith("impact") for label in planned)
    assert an_entry().judged


def test_cosmetic_findings_are_left_out_and_the_worst_comes_first() -> None:
    found = [
        a_finding("c10::a", severity="deprecated"),
        a_finding("c10::b", severity="cosmetic"),
        a_finding("c10::c", severity="rebuild"),
    ]
    entry = an_entry(None, *found)
    assert [finding.name for finding in entry.findings] == ["c10::c", "c10::a"]
    assert entry.severity == "rebuild"


def test_what_is_too_much_is_counted() -> None:
    many = [a_finding(f"c10::x{i}") for i in range(MOST_FINDINGS + 3)]
    files = [f"csrc/{i}.cpp" for i in range(MOST_FILES + 2)]
    entry = an_entry(a_change("c10/core/Allocator.h", *files), *many)
    assert (len(entry.findings), entry.findings_left_out) == (MOST_FINDINGS, 3)
    assert (len(entry.reference_backend), entry.reference_backend_left_out) == (MOST_FILES, 2)


# Of a push that brought several changes.


def test_a_finding_belongs_to_the_change_whose_file_holds_it() -> None:
    one, other = a_change(pr=1), a_change("c10/core/Storage.h", pr=2)
    mine, theirs = a_finding(), a_finding("c10::s", file="torch/include/c10/core/Storage.h")
    assert attributed([mine, theirs], [one, other]) == [[mine], [theirs]]


def test_a_finding_in_no_changed_file_is_told_of_each_change() -> None:
    one, other = a_change(pr=1), a_change("c10/core/Storage.h", pr=2)
    strange = a_finding("at::x", file="torch/include/ATen/Tensor.h")
    assert attributed([strange], [one, other]) == [[strange], [strange]]


def test_a_single_change_has_all_findings_and_no_findings_stay_none() -> None:
    strange = a_finding("at::x", file="torch/include/ATen/Tensor.h")
    assert attributed([strange], [a_change()]) == [[strange]]
    assert attributed(None, [a_change(), a_change(pr=8)]) == [None, None]


# Hints.


def test_every_rule_has_exactly_one_hint() -> None:
    for domain, table in RULES.items():
        for rule in [*table.values(), *anywhere.RULES.values()]:
            listed = hints.listed(domain, rule.name, rule.severity)
            assert rule.hint or listed, f"{domain.value}/{rule.name} has no hint"
            if rule.hint and rule.severity is not Severity.COSMETIC:
                assert not listed, f"{domain.value}/{rule.name} has two hints"


def test_there_is_no_hint_for_a_rule_that_does_not_exist() -> None:
    known = {domain.value: set(table) for domain, table in RULES.items()}
    known[hints.ANYWHERE] = set(anywhere.RULES)
    for table, by_rule in hints._hints()["by_rule"].items():
        assert set(by_rule) <= known[table], table


def test_the_hint_of_a_finding_has_precedence() -> None:
    assert an_entry(None, a_finding(hint="Do this.")).findings[0].hint == "Do this."
    told = an_entry(None, a_finding(rule="function_removed")).findings[0].hint
    assert told is not None and told.startswith("Look in the PR for what took its place")


def test_a_finding_of_a_rule_from_the_future_has_no_hint_and_is_told() -> None:
    assert an_entry(None, a_finding(rule="from_the_future")).findings[0].hint is None


# feed.json.


def test_the_feed_obeys_its_schema_also_when_it_is_empty() -> None:
    empty = feed.render([], HOME)
    valid(json.loads(empty), "feed")
    assert feed.read(empty) == ()
    entry = an_entry(None, a_finding(), a_finding("x" * 5000, message=EVIL))
    files = feed.added(None, [entry], HOME)
    valid(json.loads(files["feed.json"]), "feed")
    assert feed.read(files["feed.json"]) == (entry,)
    assert document.decode(files["entries/7-aaaaaaaaaaaa.json"], Entry, "entry") == entry


def test_an_entry_that_is_there_already_changes_nothing() -> None:
    entry = an_entry(None, a_finding())
    once = feed.added(None, [entry], HOME)
    assert feed.added(once["feed.json"], [entry], HOME) == once


def test_whatever_order_changes_are_added_in_the_feed_is_the_same() -> None:
    entries = [
        replace(an_entry(a_change(pr=n)), merged_at=f"2026-01-0{n}T00:00:00Z") for n in (1, 2, 3)
    ]
    feeds = set()
    for order in itertools.permutations(entries):
        data = None
        for entry in order:
            data = feed.added(data, [entry], HOME)["feed.json"]
        assert data is not None
        feeds.add(data)
    assert len(feeds) == 1
    assert [entry.pr for entry in feed.read(feeds.pop())] == [3, 2, 1]


def test_the_oldest_entries_leave_the_feed_and_keep_their_files() -> None:
    entries = [an_entry(a_change(pr=n + 1)) for n in range(feed.NEWEST)]
    data = feed.added(None, entries, HOME)["feed.json"]
    late = replace(an_entry(a_change(pr=9999)), merged_at="2020-01-01T00:00:00Z")
    files = feed.added(data, [late], HOME)
    assert len(feed.read(files["feed.json"])) == feed.NEWEST
    assert 9999 not in [entry.pr for entry in feed.read(files["feed.json"])]
    assert "entries/9999-aaaaaaaaaaaa.json" in files


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"schema_version": 2, "entries": []}',
        b'{"schema_version": 1, "title": "", "home": "", "updated": null, "entries": [{}]}',
        b"[" * 100_000,
        b'{"a": 1, "a": 2}',
        b"\xff\xfe",
    ],
)
def test_a_feed_that_was_damaged_is_refused(data: bytes) -> None:
    with pytest.raises(CiError, match=r"feed\.json"):
        feed.read(data)


# feed.atom.


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)


def atom_of(*entries: Entry) -> ElementTree.Element:
    return ElementTree.fromstring(feed.added(None, entries, HOME)["feed.atom"])


def test_the_atom_feed_has_all_that_the_standard_asks_for() -> None:
    root = atom_of(an_entry(None, a_finding()))
    assert root.tag == f"{ATOM}feed"
    (entry,) = root.findall(f"{ATOM}entry")
    for element in (root, entry):
        for needed in ("id", "title", "updated"):
            assert len(element.findall(f"{ATOM}{needed}")) == 1
    assert root.find(f"{ATOM}author/{ATOM}name") is not None
    assert {link.get("rel") for link in root.findall(f"{ATOM}link")} == {"self", "alternate"}
    assert entry.findtext(f"{ATOM}title") == "[compile break: allocator] Make it pure (#7)"
    labels = [category.get("term") for category in entry.findall(f"{ATOM}category")]
    assert labels == ["impact: compile-break", "surface: allocator"]


def test_nothing_of_a_pull_request_is_markup_in_the_atom_feed() -> None:
    change = a_change("csrc/<b>x</b>.cpp", "c10/core/Allocator.h", title=EVIL)
    evil = a_finding(EVIL, message=EVIL, hint=EVIL)
    root = atom_of(an_entry(change, evil))
    content = root.findtext(f"{ATOM}entry/{ATOM}content")
    assert content is not None
    tags = Tags()
    tags.feed(content)
    assert tags.seen <= {"p", "h4", "code", "pre", "ul", "li"}
    assert "\x1b" not in content
    assert "\u202e" not in content
    assert "<script>" in (root.findtext(f"{ATOM}entry/{ATOM}title") or "")  # text, not HTML


def test_an_entry_keeps_its_id_whatever_else_changes() -> None:
    ids = {
        atom_of(an_entry(a_change(title=title), *found)).findtext(f"{ATOM}entry/{ATOM}id")
        for title, found in (("one", ()), ("two", (a_finding(),)))
    }
    assert len(ids) == 1
