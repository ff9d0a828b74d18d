# SPDX-License-Identifier: BSD-3-Clause
"""What no workflow of this repository may do, a function for each rule.

zizmor and GitHub's schema, which `make lint` asks, know what is a mistake everywhere. These rules
are this project's own, above all: whoever holds a right or a secret runs nothing that comes from a
PR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
SET_UP = "$/.github/actions/set-up"

# Here GitHub hands rights and secrets to a run that somebody outside may have caused.
PRIVILEGED_EVENTS = {
    "discussion",
    "discussion_comment",
    "issue_comment",
    "issues",
    "pull_request_target",
    "workflow_run",
}
# Here the code of the run is somebody's proposal.
PROPOSAL_EVENTS = {"merge_group", "pull_request", "pull_request_review"}

# Who may write what. A new right is a change of this table, with its reason in the workflow.
RIGHTS: Mapping[tuple[str, str], set[str]] = {
    ("feed", "add"): {"contents", "issues", "pull-requests"},
    ("keep-baseline", "keep"): {"contents"},
    ("label", "apply"): {"issues", "pull-requests"},
    ("label", "sync"): {"issues"},
    ("nightly", "deploy"): {"id-token", "pages"},
    ("nightly", "store"): {"contents"},
    ("pr-report", "pull-request"): {"checks", "issues", "pull-requests"},
    ("pr-report", "baseline"): {"contents"},
    ("relay", "begun"): {"id-token"},
    ("relay", "completed"): {"id-token"},
    ("release", "attest"): {"attestations", "id-token"},
    ("release", "publish"): {"id-token"},
    ("update-pins", "open-pr"): {"contents", "pull-requests"},
}
# Jobs to whom a secret is given, besides the token of the run.
SECRETS = {("update-pins", "open-pr"): {"PINS_TOKEN"}}
# Workflows whose jobs may run on machines that outlive them.
SELF_HOSTED = {"gpu"}

# Jobs with rights that need more than talking to GitHub, each with its reason.
CLOSURES = {
    ("nightly", "store"): "puts reports into the store, by a database",
    ("update-pins", "open-pr"): "compares the headers of two torches for the text of a PR",
}

# The tools of the checkout that a step is in, by their path: nothing of it is installed.
TOOL = "python -m torch_backend_ci"
SOURCES = "ci/src:conformance/src"
# This installs and runs the code of strangers.
OF_STRANGERS = "make foreign"
# One command, nothing behind it, no shell in its words.
COMMAND = re.compile(
    rf"(make|{TOOL}|mkdir -p)"
    r"( ([^;&|<>`$]|\$(?!\())*)?"
)
# Other commands, each with its reason.
COMMANDS = {
    'bash -euo pipefail -c "$INSTALL"': "the caller of conformance.yml says how to build a backend",
    'echo "$PWD/$DIRECTORY/.venv/bin" >> "$GITHUB_PATH"': "without it python is not that of .venv",
}
USES = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
USES_LINE = re.compile(r"uses: (?P<uses>[^\s#]+)(?P<comment> # v\d+(\.\d+)*)?\s*$")


@dataclass(frozen=True)
class Job:
    """A job, and what is around it."""

    workflow: str
    id: str
    events: frozenset[str]
    content: Mapping[str, Any]
    cache_mode: str | None = None
    """What it may do to caches; None: what the event says."""

    @property
    def name(self) -> tuple[str, str]:
        """By which the tables know it."""
        return self.workflow, self.id

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Its steps; none if it calls a workflow."""
        return list(self.content.get("steps", ()))

    @property
    def permissions(self) -> Mapping[str, str]:
        """What its token may."""
        permissions = self.content.get("permissions")
        return permissions if isinstance(permissions, dict) else {}

    @property
    def writes(self) -> set[str]:
        """What its token may change."""
        return {scope for scope, access in self.permissions.items() if access == "write"}

    @property
    def trusted(self) -> bool:
        """Whether it must run reviewed code only."""
        held = self.writes or _secrets(self.content)
        return bool(self.events & PRIVILEGED_EVENTS or held)


def check(name: str, text: str) -> list[str]:
    """What is wrong with a workflow."""
    document = yaml.safe_load(text)
    events = _events(document)
    of_all = document.get("cache-mode")
    jobs = [
        Job(name, id, events, job, job.get("cache-mode", of_all))
        for id, job in document["jobs"].items()
    ]
    found = [f"{name}: {said}" for rule in OF_WORKFLOWS for said in rule(document, events)]
    found += [f"{name}: {said}" for said in _pins(text)]
    for job in jobs:
        found += [f"{name}.{job.id}: {said}" for rule in OF_JOBS for said in rule(job)]
    return found


def check_action(name: str, text: str) -> list[str]:
    """What is wrong with a composite action."""
    steps = yaml.safe_load(text)["runs"]["steps"]
    return [f"{name}: {said}" for said in (*_pins(text), *_commands(steps))]


def _events(document: Mapping[Any, Any]) -> frozenset[str]:
    on = document[True]  # YAML 1.1 takes `on` for a truth
    return frozenset([on] if isinstance(on, str) else on)


# --- of a workflow


def no_rights_by_default(document: Mapping[Any, Any], events: frozenset[str]) -> Iterator[str]:
    if document.get("permissions") != {}:
        yield "the workflow gives rights to all its jobs: `permissions: {}`, and each job its own"


def runs_do_not_pile_up(document: Mapping[Any, Any], events: frozenset[str]) -> Iterator[str]:
    if "group" not in document.get("concurrency", {}):
        yield "no concurrency group"


def environment_without_tokens(
    document: Mapping[Any, Any], events: frozenset[str]
) -> Iterator[str]:
    if _secrets(document.get("env", {})) or "github.token" in str(document.get("env", {})):
        yield "a token in the environment of all jobs: give it to the step that needs it"


def proposals_apart(document: Mapping[Any, Any], events: frozenset[str]) -> Iterator[str]:
    if events & PROPOSAL_EVENTS and events & PRIVILEGED_EVENTS:
        yield "the same jobs for proposals and for events with rights"


# --- of a job


def no_untrusted_checkout(job: Job) -> Iterator[str]:
    """The rule all others serve: privileged, and code from outside, never meet."""
    if not job.trusted:
        return
    for step in job.steps:
        given = step.get("with", {})
        if _action(step) == "actions/checkout":
            ref = given.get("ref")
            if (given.get("repository"), ref) == OWN_CODE:
                continue
            if ref and (ref not in DATA_BRANCHES or "path" not in given):
                yield f"a job with rights checks out {ref}"
            if repository := given.get("repository"):
                yield f"a job with rights checks out {repository}"
        elif _action(step) == "actions/download-artifact" and "run-id" in given:
            yield "a job with rights unpacks what another run left behind"
        for command in _lines(step):
            if re.search(r"\b(git (fetch|pull|checkout|switch|clone)|gh pr|curl|wget)\b", command):
                yield f"a job with rights fetches code: {command}"
            elif re.match(r"(make|bash|sh|pip|npm)\b", command):
                yield f"a job with rights runs more than `{TOOL}`: {command}"


# Of a reusable workflow: the repository that it is in, at its own commit.
OWN_CODE = ("${{ job.workflow_repository }}", "${{ job.workflow_sha }}")
DATA_BRANCHES = {"results"}  # only written by this repository's own jobs, and not run


def no_foreign_caches(job: Job) -> Iterator[str]:
    """What a PR's run leaves in a cache may be taken by a later run. A dispatched run has main's
    caches, and may run what somebody proposes elsewhere."""
    dispatched = "repository_dispatch" in job.events
    if not (job.trusted or dispatched or "release" in job.workflow):
        return
    for step in job.steps:
        given = step.get("with", {})
        cached = step.get("uses") == SET_UP and given.get("pin") and given.get("cache") is not False
        if cached or "cache" in (_action(step) or "") or "cache" in given.keys() - {"cache"}:
            yield "a job with rights, of a release or sent from elsewhere has to do with a cache"


def caches_are_out_of_reach(job: Job) -> Iterator[str]:
    """GitHub enforces it, whatever the code in the job tries."""
    dispatched = "repository_dispatch" in job.events
    kept_apart = job.cache_mode == "none"
    if (job.trusted or dispatched or "release" in job.workflow) and not kept_apart:
        yield "a job with rights, of a release or sent from elsewhere can reach caches"


def strangers_are_alone(job: Job) -> Iterator[str]:
    """They may read what anybody may, leave nothing to other jobs, and fail as they like."""
    if not any(line.startswith(OF_STRANGERS) for step in job.steps for line in _lines(step)):
        return
    if job.permissions != {"contents": "read"}:
        yield "the code of strangers may do more than read"
    if "github.token" in str(job.content) or _secrets(job.content):
        yield "the code of strangers is given a token or a secret"
    taken = (step.get("with", {}) for step in job.steps if step.get("uses") == SET_UP)
    if job.cache_mode != "none" or any(given.get("cache") is not False for given in taken):
        yield "the code of strangers can reach caches"
    if job.content.get("continue-on-error") is not True:
        yield "the code of strangers can make the workflow red"


def tools_are_few_and_hashed(job: Job) -> Iterator[str]:
    for step in job.steps if job.trusted else ():
        target = step.get("with", {}).get("target")
        if step.get("uses") == SET_UP and target != "github-tools" and job.name not in CLOSURES:
            yield "a job with rights installs more than `target: github-tools`"


def tools_are_those_of_the_checkout(job: Job) -> Iterator[str]:
    """Python looks where the job says before it looks anywhere else."""
    uses_them = any(line.startswith(TOOL) for step in job.steps for line in _lines(step))
    places = [part.get("env", {}) for part in (job.content, *job.steps)]
    said = [env["PYTHONPATH"] for env in places if "PYTHONPATH" in env]
    if said != ([SOURCES] if uses_them else []):
        yield f"PYTHONPATH is not {SOURCES} where a job runs {TOOL}, and unset elsewhere"


def proposals_have_no_rights(job: Job) -> Iterator[str]:
    if not job.events & PROPOSAL_EVENTS:
        return
    if job.writes:
        yield f"the code of a PR may write {', '.join(sorted(job.writes))}"
    if secrets := _secrets(job.content):
        yield f"the code of a PR is given {', '.join(sorted(secrets))}"
    if "github.token" in str(job.content):
        yield "the code of a PR is given a token"


def rights_are_listed(job: Job) -> Iterator[str]:
    if not isinstance(job.content.get("permissions"), dict):
        yield "a job says its permissions one by one"
    elif extra := job.writes - RIGHTS.get(job.name, set()):
        yield f"writes {', '.join(sorted(extra))}, which RIGHTS does not list"
    if extra := _secrets(job.content) - SECRETS.get(job.name, set()):
        yield f"takes {', '.join(sorted(extra))}, which SECRETS does not list"
    if job.content.get("secrets") == "inherit":
        yield "hands all secrets on"


def tokens_go_to_steps(job: Job) -> Iterator[str]:
    environment = str(job.content.get("env", {}))
    if "github.token" in environment or "secrets." in environment:
        yield "a token in the environment of all steps: give it to the step that needs it"


def checkouts_forget_the_token(job: Job) -> Iterator[str]:
    for step in job.steps:
        kept = step.get("with", {}).get("persist-credentials") is not False
        if kept and _action(step) == "actions/checkout":
            yield "a checkout leaves the token behind: `persist-credentials: false`"


def ends_some_day(job: Job) -> Iterator[str]:
    if "timeout-minutes" not in job.content and "uses" not in job.content:
        yield "no timeout-minutes"


def own_machines_are_ours(job: Job) -> Iterator[str]:
    outside = job.workflow not in SELF_HOSTED or job.events & (PROPOSAL_EVENTS | PRIVILEGED_EVENTS)
    if outside and "self-hosted" in str(job.content.get("runs-on", "")):
        yield "runs on a machine of ours what may come from outside"


def steps_are_thin(job: Job) -> Iterator[str]:
    yield from _commands(job.steps)


OF_WORKFLOWS: tuple[Callable[[Mapping[Any, Any], frozenset[str]], Iterator[str]], ...] = (
    no_rights_by_default,
    runs_do_not_pile_up,
    environment_without_tokens,
    proposals_apart,
)
OF_JOBS: tuple[Callable[[Job], Iterator[str]], ...] = (
    no_untrusted_checkout,
    no_foreign_caches,
    caches_are_out_of_reach,
    strangers_are_alone,
    tools_are_few_and_hashed,
    tools_are_those_of_the_checkout,
    proposals_have_no_rights,
    rights_are_listed,
    tokens_go_to_steps,
    checkouts_forget_the_token,
    ends_some_day,
    own_machines_are_ours,
    steps_are_thin,
)


# --- of steps


def _pins(text: str) -> Iterator[str]:
    """Actions by their commit, which nobody can move; the version beside it for people."""
    for line in text.splitlines():
        if not (found := USES_LINE.search(line)):
            if "uses:" in line and not line.lstrip().startswith("#"):
                yield f"cannot be read: {line.strip()}"
            continue
        uses = found["uses"]
        if uses.startswith("$/"):
            continue
        if not USES.fullmatch(uses):
            yield f"{uses} is not pinned by its commit"
        elif not found["comment"]:
            yield f"{uses} does not say its version"


def _commands(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        for command in _lines(step):
            if "${{" in command:
                yield f"an expression in a command, where it becomes code: {command}"
            elif command not in COMMANDS and not COMMAND.fullmatch(command):
                yield f"neither make nor {TOOL}: {command}"
        if _action(step) == "actions/github-script":
            yield "a program in a workflow: make it a verb"


def _lines(step: Mapping[str, Any]) -> list[str]:
    return [line for line in str(step.get("run", "")).splitlines() if line.strip()]


def _action(step: Mapping[str, Any]) -> str | None:
    uses = step.get("uses")
    return uses.partition("@")[0] if uses else None


def _secrets(content: object) -> set[str]:
    """Which secrets expressions in here read; `*` for all."""
    text = str(content)
    named = re.findall(r"secrets\s*(?:\.\s*(\w+)|\[)", text)
    every = re.search(r"\(\s*secrets\s*\)", text)
    return {name or "*" for name in named} | ({"*"} if every else set())
