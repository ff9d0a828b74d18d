# SPDX-License-Identifier: BSD-3-Clause
"""`label apply` and `label sync`: what is missing is added, what people decided is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from github_fake import BOT, GitHubFake
from github_fixtures import Verb, writes

from torch_backend_ci.github.labels import Event
from torch_backend_ci.label import rules
from torch_backend_ci.label.apply import Decision, decide

ALLOCATOR = "surface: allocator"
BREAK, REBUILD, NONE = "impact: compile-break", "impact: rebuild", "impact: none"
HEADER = {"c10/core/Allocator.h": "struct Allocator;\n"}
FINDINGS = Path(__file__).parents[3] / "docs/surface/examples/label-findings.json"
RULES = rules.load()


def labels_of(fake: GitHubFake, number: int) -> set[str]:
    return set(fake.repository.issue(number).labels)


def no_findings(tmp_path: Path) -> Path:
    report = json.loads(FINDINGS.read_text())
    report |= {"findings": [], "verdict": "no finding"}
    (tmp_path / "none.json").write_text(json.dumps(report))
    return tmp_path / "none.json"


# What is decided, without GitHub.


def given(label: str, actor: str | None = "alice") -> Event:
    return Event(label, True, actor, actor != BOT)


def taken(label: str, actor: str | None = "alice") -> Event:
    return Event(label, False, actor, actor != BOT)


@pytest.mark.parametrize(
    ("planned", "present", "history", "decision"),
    [
        (["a"], [], [], Decision(("a",), (), ())),
        (["a"], ["A"], [], Decision((), (), ())),
        (["a"], [], [given("a", BOT), taken("A")], Decision((), (), ("a",))),
        (["a"], [], [taken("a", None)], Decision((), (), ("a",))),
        (["a"], [], [given("a", BOT), taken("a", BOT)], Decision(("a",), (), ())),
        (["a"], [], [taken("a"), given("a"), taken("a", BOT)], Decision(("a",), (), ())),
        (["a"], [], [taken("a"), given("a", BOT), taken("a", BOT)], Decision((), (), ("a",))),
        (["a"], ["z"], [given("z", BOT)], Decision(("a",), (), ())),
        ([NONE], [BREAK], [given(BREAK, BOT)], Decision((NONE,), (BREAK,), ())),
        ([NONE], [BREAK], [given(BREAK)], Decision((NONE,), (), ())),
        ([NONE], [BREAK], [given(BREAK, BOT), given(BREAK)], Decision((NONE,), (), ())),
        ([NONE], [BREAK], [given(BREAK, "other[bot]")], Decision((NONE,), (), ())),
        ([NONE], [BREAK], [], Decision((NONE,), (), ())),
        ([NONE], [BREAK], [given(BREAK, BOT), taken(NONE)], Decision((), (BREAK,), (NONE,))),
        ([ALLOCATOR], [BREAK], [given(BREAK, BOT)], Decision((ALLOCATOR,), (), ())),
    ],
)
def test_people_have_the_last_word(
    planned: Sequence[str], present: Sequence[str], history: Sequence[Event], decision: Decision
) -> None:
    assert decide(planned, present, history, [BREAK, NONE], BOT) == decision


# With GitHub.


def test_a_pr_gets_its_labels_with_their_colours_and_once(
    github_fake: GitHubFake, verb: Verb
) -> None:
    number = github_fake.open_pull(HEADER).number
    assert verb("label", "apply", "--pr", number, "--findings", FINDINGS).status == 0
    assert labels_of(github_fake, number) == {ALLOCATOR, BREAK}
    label = github_fake.repository.label(ALLOCATOR)
    assert label and (label.color, label.description is not None) == ("0a4a8c", True)
    assert writes(github_fake) == [
        "issues/create-label",
        "issues/create-label",
        "issues/add-labels",
    ]

    github_fake.calls.clear()
    assert verb("label", "apply", "--pr", number, "--findings", FINDINGS).status == 0
    assert writes(github_fake) == []


def test_labels_of_others_stay(github_fake: GitHubFake, verb: Verb) -> None:
    number = github_fake.open_pull(HEADER).number
    github_fake.person("alice").adds_label(number, "topic: not user facing")
    verb("label", "apply", "--pr", number)
    assert labels_of(github_fake, number) == {ALLOCATOR, "topic: not user facing"}


def test_a_label_that_a_person_took_away_is_not_put_back(
    github_fake: GitHubFake, verb: Verb
) -> None:
    number = github_fake.open_pull(HEADER).number
    verb("label", "apply", "--pr", number)
    github_fake.person("alice").removes_label(number, ALLOCATOR)
    ended = verb("label", "apply", "--pr", number)
    assert (ended.status, labels_of(github_fake, number)) == (0, set())
    assert f'a person took "{ALLOCATOR}" away' in ended.err


def test_a_label_taken_away_during_the_run_is_not_put_back(
    github_fake: GitHubFake, verb: Verb
) -> None:
    number = github_fake.open_pull(HEADER).number
    verb("label", "apply", "--pr", number)
    alice = github_fake.person("alice")
    for operation in ("pulls/list-files", "issues/get", "issues/list-events-for-timeline"):
        alice.adds_label(number, ALLOCATOR)
        github_fake.after(operation, lambda: alice.removes_label(number, ALLOCATOR))
        verb("label", "apply", "--pr", number)
        assert labels_of(github_fake, number) == set(), operation


def test_the_timeline_is_read_to_its_last_page(github_fake: GitHubFake, verb: Verb) -> None:
    number = github_fake.open_pull(HEADER).number
    alice = github_fake.person("alice")
    for index in range(230):
        alice.comments(number, f"remark {index}")
    alice.adds_label(number, ALLOCATOR)
    alice.removes_label(number, ALLOCATOR)
    verb("label", "apply", "--pr", number)
    assert labels_of(github_fake, number) == set()


def test_an_impact_of_ours_that_is_no_longer_so_goes(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    number = github_fake.open_pull(HEADER).number
    verb("label", "apply", "--pr", number, "--findings", FINDINGS)
    github_fake.person("alice").adds_label(number, REBUILD)
    ended = verb("label", "apply", "--pr", number, "--findings", no_findings(tmp_path))
    assert labels_of(github_fake, number) == {ALLOCATOR, NONE, REBUILD}
    assert f'take "{BREAK}" away' in ended.err


def test_an_outdated_impact_that_is_gone_already_is_no_error(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    number = github_fake.open_pull(HEADER).number
    verb("label", "apply", "--pr", number, "--findings", FINDINGS)
    alice = github_fake.person("alice")
    github_fake.before("issues/remove-label", lambda: alice.removes_label(number, BREAK))
    assert verb("label", "apply", "--pr", number, "--findings", no_findings(tmp_path)).status == 0
    assert labels_of(github_fake, number) == {ALLOCATOR, NONE}


def test_a_dry_run_says_all_and_does_nothing(github_fake: GitHubFake, verb: Verb) -> None:
    number = github_fake.open_pull(HEADER).number
    ended = verb("label", "apply", "--pr", number, "--dry-run")
    assert ended.out.splitlines() == [
        f'would define the label "{ALLOCATOR}"',
        f'would label #{number} with "{ALLOCATOR}"',
    ]
    assert writes(github_fake) == [] and labels_of(github_fake, number) == set()


def test_3500_files_are_labelled_as_far_as_github_lists_them(
    github_fake: GitHubFake, verb: Verb
) -> None:
    files = {f"third_party/file{i}.txt": str(i) for i in range(3_499)}
    number = github_fake.open_pull(files | {"c10/core/Allocator.h": "x"}).number
    ended = verb("label", "apply", "--pr", number)
    assert ended.status == 0 and "3000 files or more" in ended.err
    assert labels_of(github_fake, number) == {ALLOCATOR}
    assert sum(call.operation == "pulls/list-files" for call in github_fake.calls) == 30


def test_a_renamed_file_counts_by_both_names(github_fake: GitHubFake, verb: Verb) -> None:
    github_fake.person("alice").pushes({"c10/core/Allocator.h": "content"})
    number = github_fake.open_pull({"c10/core/Allocator.h": None, "elsewhere.h": "content"}).number
    verb("label", "apply", "--pr", number)
    assert labels_of(github_fake, number) == {ALLOCATOR}


def test_odd_names_of_files_are_names(github_fake: GitHubFake, verb: Verb) -> None:
    odd = ["a b%2F?#&é😀.h", "-rf", "::set-output name=x::y", "x\n::error::y", "$(id)`id`", "日本"]
    number = github_fake.open_pull(HEADER | {f"csrc/{name}": "x" for name in odd}).number
    ended = verb("label", "apply", "--pr", number)
    assert ended.status == 0
    assert labels_of(github_fake, number) == {ALLOCATOR, "reference-backend: touched"}
    assert not any(line.lstrip().startswith("::") for line in ended.err.splitlines())


def test_a_pr_that_was_closed_is_left_alone_and_a_merged_one_is_not(
    github_fake: GitHubFake, verb: Verb
) -> None:
    closed = github_fake.open_pull(HEADER).number
    merged = github_fake.open_pull(HEADER, branch="other").number
    alice = github_fake.person("alice")
    alice.closes(closed)
    alice.merges(merged)
    assert "is closed" in verb("label", "apply", "--pr", closed).err
    verb("label", "apply", "--pr", merged)
    assert (labels_of(github_fake, closed), labels_of(github_fake, merged)) == (set(), {ALLOCATOR})


def test_a_locked_pr_is_labelled(github_fake: GitHubFake, verb: Verb) -> None:
    number = github_fake.open_pull(HEADER).number
    github_fake.person("alice").locks(number)
    assert verb("label", "apply", "--pr", number).status == 0
    assert labels_of(github_fake, number) == {ALLOCATOR}


def test_an_issue_is_no_pr(github_fake: GitHubFake, verb: Verb) -> None:
    number = github_fake.person("alice").opens_issue("Help").number
    ended = verb("label", "apply", "--pr", number)
    assert ended.status == 2 and "does not exist, or this token must not see it" in ended.err


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "٣", "1e3", "9" * 30, "x", ""])
def test_what_is_no_number_is_refused(
    number: str, capsys: pytest.CaptureFixture[str], verb: Verb
) -> None:
    with pytest.raises(SystemExit):
        verb("label", "apply", f"--pr={number}")
    assert "is not a number of a pull request" in capsys.readouterr().err


def test_bad_findings_are_refused_before_anything_is_asked(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    (tmp_path / "f.json").write_text('{"schema_version": 1}')
    ended = verb("label", "apply", "--pr", 1, "--findings", tmp_path / "f.json")
    assert ended.status == 2 and github_fake.calls == []


def test_two_runs_at_once_give_each_label_once(github_fake: GitHubFake, verb: Verb) -> None:
    number = github_fake.open_pull(HEADER).number
    world = github_fake.world

    def other() -> None:
        world.define_label(github_fake.repository, ALLOCATOR, "ffffff", None)
        world.add_label(
            github_fake.repository, github_fake.repository.issue(number), ALLOCATOR, BOT
        )

    github_fake.before("issues/create-label", other)
    assert verb("label", "apply", "--pr", number).status == 0
    assert github_fake.repository.issue(number).labels == [ALLOCATOR]
    label = github_fake.repository.label(ALLOCATOR)
    assert label and label.color == "0a4a8c", "the definition of labels.yml won"


# Definitions.


def test_sync_defines_all_labels_once(github_fake: GitHubFake, verb: Verb) -> None:
    assert verb("label", "sync").status == 0
    defined = [(x.name, x.color, x.description) for x in github_fake.repository.labels]
    assert defined == [(x.name, x.colour, x.description) for x in RULES.labels]
    github_fake.calls.clear()
    assert verb("label", "sync").status == 0
    assert writes(github_fake) == []


def test_sync_corrects_what_differs_and_leaves_what_it_does_not_know(
    github_fake: GitHubFake, verb: Verb
) -> None:
    world, repository = github_fake.world, github_fake.repository
    world.define_label(repository, "Surface: ALLOCATOR", "ffffff", None)
    for index in range(150):
        world.define_label(repository, f"module: {index}", "aabbcc", "theirs")
    ended = verb("label", "sync")
    assert ended.status == 0 and f'redefine the label "{ALLOCATOR}"' in ended.err
    assert len(repository.labels) == 150 + len(RULES.labels)
    label = repository.label(ALLOCATOR)
    assert label and (label.name, label.color) == (ALLOCATOR, "0a4a8c")


def test_labels_with_odd_names_are_defined_given_and_taken(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path
) -> None:
    odd = {NONE: "a/b %2F?#&:é😀", BREAK: "x/../y"}
    text = rules.LABELS.read_text()
    for old, new in odd.items():
        text = text.replace(f'"{old}"', json.dumps(new, ensure_ascii=False))
    (tmp_path / "labels.yml").write_text(text)
    number = github_fake.open_pull(HEADER).number
    options = ["--labels", tmp_path / "labels.yml"]
    assert verb("label", "sync", *options).status == 0
    apply = ["label", "apply", "--pr", number, *options, "--findings"]
    assert verb(*apply, FINDINGS).status == 0
    assert labels_of(github_fake, number) == {ALLOCATOR, "x/../y"}
    assert verb(*apply, no_findings(tmp_path)).status == 0
    assert labels_of(github_fake, number) == {ALLOCATOR, "a/b %2F?#&:é😀"}


@pytest.mark.parametrize("name", [".", ".."])
def test_a_label_that_no_address_can_name_is_refused(
    github_fake: GitHubFake, verb: Verb, tmp_path: Path, name: str
) -> None:
    text = rules.LABELS.read_text().replace(f'"{NONE}"', f'"{name}"')
    (tmp_path / "labels.yml").write_text(text)
    ended = verb("label", "sync", "--labels", tmp_path / "labels.yml")
    assert ended.status == 2 and "no label can be called" in ended.err
    assert github_fake.calls == []


def test_what_the_documents_show_is_what_is_printed(
    github_fake: GitHubFake, verb: Verb, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    page = (root / "docs" / "ci" / "labels-and-comments.md").read_text()
    (shown,) = re.findall(r"```console\n\$ torch-backend-ci ([^\n]*)\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(root)
    assert github_fake.open_pull(HEADER).number == 1
    assert verb(*shown[0].split()).out == shown[1]
