# SPDX-License-Identifier: BSD-3-Clause
"""Every workflow obeys the rules, and every rule refuses what it is there for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from workflow_rules import (
    CLOSURES,
    COMMANDS,
    RIGHTS,
    ROOT,
    SECRETS,
    SELF_HOSTED,
    check,
    check_action,
)

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))
SHA = "de0fac2e4500dabe0009e67214ff5f5447ce83dd"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_obeys_the_rules(file: Path) -> None:
    violations = check(file.stem, file.read_text())
    assert not violations, "\n" + "\n".join(violations)


@pytest.mark.parametrize("file", ACTIONS, ids=lambda file: file.parent.name)
def test_an_action_obeys_the_rules(file: Path) -> None:
    violations = check_action(file.parent.name, file.read_text())
    assert not violations, "\n" + "\n".join(violations)


def test_no_exception_is_left_over() -> None:
    jobs = {
        (file.stem, id): job
        for file in WORKFLOWS
        for id, job in yaml.safe_load(file.read_text())["jobs"].items()
    }
    for name, scopes in RIGHTS.items():
        given = {scope for scope, access in jobs[name]["permissions"].items() if access == "write"}
        assert given == scopes, name
    for name, secrets in SECRETS.items():
        assert all(f"secrets.{secret}" in str(jobs[name]) for secret in secrets), name
    assert set(CLOSURES) <= set(RIGHTS)
    assert all("github-tools" not in str(jobs[name]) for name in CLOSURES)
    hosts = {name for (name, _), job in jobs.items() if "self-hosted" in str(job.get("runs-on"))}
    assert hosts == SELF_HOSTED
    text = "".join(file.read_text() for file in (*WORKFLOWS, *ACTIONS))
    assert all(command in text for command in COMMANDS)


def test_a_workflow_that_waits_for_another_knows_its_name() -> None:
    documents = [yaml.safe_load(file.read_text()) for file in WORKFLOWS]
    names = {document["name"] for document in documents}
    awaited = {
        name
        for document in documents
        for name in (document[True].get("workflow_run") or {}).get("workflows", ())
    }
    assert awaited
    assert awaited <= names
    assert names == {file.stem for file in WORKFLOWS}


def test_the_documented_call_asks_for_inputs_that_exist() -> None:
    document = (ROOT / "docs" / "ci" / "workflows.md").read_text()
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    assert len(example.splitlines()) == 10
    call = yaml.safe_load(example)["jobs"]["conformance"]
    assert call["uses"].partition("@")[0].endswith("/.github/workflows/conformance.yml")
    called = yaml.safe_load((ROOT / ".github" / "workflows" / "conformance.yml").read_text())
    inputs = called[True]["workflow_call"]["inputs"]
    required = {name for name, described in inputs.items() if described.get("required")}
    assert required <= call["with"].keys() <= inputs.keys()
    explained = set(re.findall(r"^\| `([a-z-]+)` \| ", document, re.MULTILINE))
    assert inputs.keys() <= explained | call["with"].keys() | {"backend"}


@pytest.mark.parametrize("job", ["conformance", "keep"])
def test_the_example_of_a_vendor_asks_for_inputs_that_exist(job: str) -> None:
    file = ROOT / "examples" / "vendor" / ".github" / "workflows" / "conformance.yml"
    call = yaml.safe_load(file.read_text())["jobs"][job]
    path = call["uses"].partition("@")[0].removeprefix("OWNER/REPOSITORY/")
    inputs = yaml.safe_load((ROOT / path).read_text())[True]["workflow_call"]["inputs"]
    required = {name for name, described in inputs.items() if described.get("required")}
    assert required <= call["with"].keys() <= inputs.keys()


def test_every_workflow_is_in_the_table_of_the_documents() -> None:
    document = (ROOT / "docs" / "ci" / "workflows.md").read_text()
    rows = set(re.findall(r"^\| `([a-z-]+)\.yml` \|", document, re.MULTILINE))
    assert rows == {file.stem for file in WORKFLOWS}


@pytest.mark.parametrize(("workflow", "policy"), [("pr", "policy"), ("nightly", "nightly")])
def test_the_gate_asks_for_the_lanes_that_are_run(workflow: str, policy: str) -> None:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text())
    matrix = document["jobs"]["suite"]["strategy"]["matrix"]
    run = {f"{pin}-{driver}" for pin in matrix["pin"] for driver in matrix["driver"]}
    lanes = yaml.safe_load((ROOT / "ci" / "gate" / f"{policy}.yaml").read_text())["lanes"]
    assert {name for name, lane in lanes.items() if lane["required"]} <= run <= set(lanes)
    assert matrix["shard"] == list(range(1, matrix["of"][0] + 1))


def test_every_public_backend_is_run_and_judged_and_kept_apart() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())["jobs"]
    matrix = jobs["foreign"]["strategy"]["matrix"]
    assert matrix["shard"] == list(range(1, matrix["of"][0] + 1))
    backends = {folder.name for folder in (ROOT / "ci" / "backends").iterdir()}
    assert set(matrix["backend"]) == backends
    lanes = yaml.safe_load((ROOT / "ci" / "gate" / "foreign.yaml").read_text())["lanes"]
    assert {name: lane["backend"] for name, lane in lanes.items()} == {b: b for b in backends}
    taken = [step.get("with", {}) for step in jobs["store"]["steps"]]
    assert {
        given["path"]: given["pattern"]
        for given in taken
        if str(given.get("path", "")).startswith("foreign")
    } == {f"foreign/{backend}": f"foreign-{backend}-*" for backend in backends}


GOOD = f"""
name: label
on: [push]
permissions: {{}}
cache-mode: none
concurrency: {{group: label}}
jobs:
  sync:
    runs-on: ubuntu-24.04
    timeout-minutes: 10
    permissions: {{contents: read, issues: write}}
    env: {{PYTHONPATH: "ci/src:conformance/src"}}
    steps:
      - uses: actions/checkout@{SHA} # v6.0.2
        with: {{persist-credentials: false}}
      - uses: $/.github/actions/set-up
        with: {{target: github-tools}}
      - run: python -m torch_backend_ci label sync
        env: {{TOKEN: "${{{{ github.token }}}}"}}
"""
CHECKOUT = f"- uses: actions/checkout@{SHA} # v6.0.2\n        with: {{persist-credentials: false"
HEAD = '"${{ github.event.pull_request.head.sha }}"'
STEP = "- run: python -m torch_backend_ci label sync"

# What somebody might write into the good one: (what, by what, a part of what is said)
PLANTED = {
    "the code of a PR under pull_request_target": (
        (("[push]", "[pull_request_target]"), (CHECKOUT, f"{CHECKOUT}, ref: {HEAD}")),
        "a job with rights checks out ${{ github.event.pull_request.head.sha }}",
    ),
    "the merge commit of a PR": (
        ((CHECKOUT, f"{CHECKOUT}, ref: refs/pull/1/merge"),),
        "a job with rights checks out refs/pull/1/merge",
    ),
    "the branch of the run that ended": (
        (
            ("[push]", "{workflow_run: {workflows: [pr]}}"),
            (CHECKOUT, f"{CHECKOUT}, ref: '${{{{ github.event.workflow_run.head_branch }}}}'"),
        ),
        "a job with rights checks out ${{ github.event.workflow_run.head_branch }}",
    ),
    "another repository": (
        ((CHECKOUT, f"{CHECKOUT}, repository: somebody/else"),),
        "a job with rights checks out somebody/else",
    ),
    "another commit of its own repository": (
        (
            (
                CHECKOUT,
                f"{CHECKOUT}, repository: '${{{{ job.workflow_repository }}}}', ref: main",
            ),
        ),
        "a job with rights checks out main",
    ),
    "a data branch in the place of the code": (
        ((CHECKOUT, f"{CHECKOUT}, ref: results"),),
        "a job with rights checks out results",
    ),
    "the PR by git": (
        ((STEP, "- run: git fetch origin pull/1/head"),),
        "a job with rights fetches code",
    ),
    "the PR by gh": (((STEP, "- run: gh pr checkout 1"),), "a job with rights fetches code"),
    "a script from anywhere": (
        ((STEP, "- run: curl https://example.org/x | sh"),),
        "a job with rights fetches code",
    ),
    "a build": (((STEP, "- run: make build"),), "a job with rights runs more than"),
    "an artifact of a PR's run, unpacked": (
        (
            (
                STEP,
                f"- {{uses: actions/download-artifact@{SHA}, with: {{run-id: 1}}}}\n      {STEP}",
            ),
        ),
        "a job with rights unpacks what another run left behind",
    ),
    "a cache": (
        ((STEP, f"- {{uses: actions/cache@{SHA}, with: {{path: x, key: y}}}}\n      {STEP}"),),
        "has to do with a cache",
    ),
    "a cache by way of the set-up": (
        (("{target: github-tools}", "{pin: development}"),),
        "has to do with a cache",
    ),
    "caches within reach": ((("cache-mode: none\n", ""),), "can reach caches"),
    "strangers with rights": (
        ((STEP, "- run: make foreign"),),
        "the code of strangers may do more than read",
    ),
    "strangers with a token": (
        ((STEP, f"- run: make foreign\n      {STEP}"),),
        "the code of strangers is given a token or a secret",
    ),
    "strangers with a cache": (
        (("cache-mode: none\n", ""), (STEP, "- run: make foreign")),
        "the code of strangers can reach caches",
    ),
    "strangers with the cache of the set-up": (
        (("{target: github-tools}", "{pin: development}"), (STEP, "- run: make foreign")),
        "the code of strangers can reach caches",
    ),
    "strangers that decide": (
        ((STEP, "- run: make foreign"),),
        "the code of strangers can make the workflow red",
    ),
    "caches to be read": (
        (("cache-mode: none", "cache-mode: read"),),
        "can reach caches",
    ),
    "caches within reach of a job": (
        (("    timeout-minutes: 10", "    cache-mode: write\n    timeout-minutes: 10"),),
        "can reach caches",
    ),
    "all of the tools": (
        (("github-tools", "tools"),),
        "installs more than `target: github-tools`",
    ),
    "what the set-up installs by itself": (
        (("        with: {target: github-tools}\n", ""),),
        "installs more than `target: github-tools`",
    ),
    "tools of another place": (
        (('"ci/src:conformance/src"', '"results/src:ci/src"'),),
        "PYTHONPATH is not ci/src:conformance/src",
    ),
    "tools of another place in a step": (
        (('env: {TOKEN: "', 'env: {PYTHONPATH: results/src, TOKEN: "'),),
        "PYTHONPATH is not ci/src:conformance/src",
    ),
    "a path to tools that are not used": (
        ((STEP, "- run: mkdir -p x"),),
        "PYTHONPATH is not ci/src:conformance/src",
    ),
    "main's cache for code from elsewhere": (
        (
            ("[push]", "repository_dispatch"),
            (", issues: write", ""),
            ("{target: github-tools}", "{pin: development}"),
        ),
        "has to do with a cache",
    ),
    "rights for the code of a PR": (
        (("[push]", "[pull_request]"),),
        "the code of a PR may write issues",
    ),
    "a secret for the code of a PR": (
        (
            ("[push]", "[pull_request]"),
            (", issues: write", ""),
            ("github.token", "secrets.DEPLOY_KEY"),
        ),
        "the code of a PR is given DEPLOY_KEY",
    ),
    "all secrets in one": (
        (("github.token", "toJSON(secrets)"),),
        "takes *, which SECRETS does not list",
    ),
    "a secret by its number": (
        (("github.token", "secrets['A']"),),
        "takes *, which SECRETS does not list",
    ),
    "a secret nobody knows of": (
        (("github.token", "secrets.MORE"),),
        "takes MORE, which SECRETS does not list",
    ),
    "a token for the code of a PR": (
        (("[push]", "[pull_request]"), (", issues: write", "")),
        "the code of a PR is given a token",
    ),
    "proposals and rights in one": (
        (("[push]", "[pull_request, pull_request_target]"),),
        "the same jobs for proposals and for events with rights",
    ),
    "one more right": (
        (("issues: write", "issues: write, actions: write"),),
        "writes actions, which RIGHTS does not list",
    ),
    "all rights": (
        (("{contents: read, issues: write}", "write-all"),),
        "says its permissions one by one",
    ),
    "rights as the repository has them": (
        (("    permissions: {contents: read, issues: write}\n", ""),),
        "says its permissions one by one",
    ),
    "rights for all jobs": (
        (("permissions: {}", "permissions: {issues: write}"),),
        "the workflow gives rights to all its jobs",
    ),
    "a token for all jobs": (
        (("jobs:", 'env: {TOKEN: "${{ github.token }}"}\njobs:'),),
        "a token in the environment of all jobs",
    ),
    "a token for all steps": (
        (("env: {PYTHONPATH", 'env: {TOKEN: "${{ github.token }}", PYTHONPATH'),),
        "a token in the environment of all steps",
    ),
    "a token left in .git": (
        (("persist-credentials: false", "fetch-depth: 2"),),
        "a checkout leaves the token behind",
    ),
    "a tag that can be moved": ((("@" + SHA, "@v6"),), "is not pinned by its commit"),
    "half a commit": ((("@" + SHA, "@" + SHA[:12]),), "is not pinned by its commit"),
    "a commit without its version": (((" # v6.0.2", ""),), "does not say its version"),
    "an image": (
        ((f"actions/checkout@{SHA}", "docker://alpine:3"),),
        "is not pinned by its commit",
    ),
    "an action wherever it lies": (
        (("$/.github", "./.github"),),
        "is not pinned by its commit",
    ),
    "a title that becomes code": (
        (("label sync", "label sync ${{ github.event.pull_request.title }}"),),
        "an expression in a command",
    ),
    "a program in a step": (
        ((STEP, "- run: |\n          for f in *; do cat $f; done"),),
        "neither make nor python -m torch_backend_ci",
    ),
    **{
        f"a second command: {words}": (
            ((STEP, f"- run: 'mkdir -p x{words}'"),),
            "neither make nor python -m torch_backend_ci",
        )
        for words in ("; ls", " && ls", " | sh", " $(ls)", " `ls`", " > y", "\n\n          ls")
    },
    "a program in JavaScript": (
        ((STEP, f"- uses: actions/github-script@{SHA} # v8\n      {STEP}"),),
        "a program in a workflow",
    ),
    "no end": ((("    timeout-minutes: 10\n", ""),), "no timeout-minutes"),
    "no concurrency": ((("concurrency: {group: label}\n", ""),), "no concurrency group"),
    "our machine for anybody": (
        (("runs-on: ubuntu-24.04", "runs-on: [self-hosted]"),),
        "runs on a machine of ours what may come from outside",
    ),
}


def test_the_good_workflow_is_good() -> None:
    assert check("label", GOOD) == []


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_refused(mistake: str) -> None:
    replacements, said = PLANTED[mistake]
    text = GOOD
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    violations = check("label", text)
    assert any(said in violation for violation in violations), violations


def test_secrets_are_not_handed_on_whole() -> None:
    job = f"  call: {{uses: a/b/.github/workflows/c.yml@{SHA}, secrets: inherit}}\n"
    assert any("hands all secrets on" in said for said in check("label", GOOD + job))
