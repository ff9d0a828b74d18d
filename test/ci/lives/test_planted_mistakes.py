# SPDX-License-Identifier: BSD-3-Clause
"""A mistake in one of our workflows, or in what it calls, does not pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stage.acts import Stage, stage
from workflow_runner.expressions import Expressions
from workflow_runner.mistakes import Mistake
from workflow_runner.results import WorkflowRun

pytestmark = pytest.mark.nightly

LABEL, RELAY = ".github/workflows/label.yml", ".github/workflows/relay.yml"
RIGHTS = """      issues: write # labels of a PR are those of an issue
      pull-requests: write # GitHub asks for it as well where the issue is a PR
"""
ACTION = ".github/actions/set-up/action.yml"
Play = Callable[..., WorkflowRun]


@pytest.fixture
def play(expressions: Expressions, tmp_path: Path) -> Play:
    """A PR is opened, and labelled by a workflow with a change in this file."""

    def play(path: str, old: str, new: str) -> WorkflowRun:
        with stage(expressions, tmp_path, {path: [(old, new)]}) as scene:
            return labelled(scene)

    return play


def labelled(scene: Stage) -> WorkflowRun:
    scene.left_out = {"pr", "lint", "pr-report"}
    number = scene.fake.open_pull({"csrc/aten/new.cpp": "\n"}).number
    return scene.pull_request(number, "opened")["label"]


def test_without_a_mistake_it_is_well(play: Play) -> None:
    assert play(LABEL, "name: label", "name: label").conclusion == "success"


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        (LABEL, "ci label apply", "ci label add", "invalid choice: 'add'"),
        (LABEL, '--pr "$NUMBER"', '--number "$NUMBER"', "required: --pr"),
        (LABEL, "pull_request.number }}\n          GITHUB", "pull_request.nr }}\n          GITHUB",
         "--pr"),
        (LABEL, RIGHTS, RIGHTS.replace("write", "read"), "permission"),
        (LABEL, "          NUMBER: ${{ github.event.pull_request.number }}\n"
         "          GITHUB_TOKEN: ${{ github.token }}\n",
         "          NUMBER: ${{ github.event.pull_request.number }}\n", "GITHUB_TOKEN"),
        (LABEL, "target: github-tools", "target: gitlab-tools",
         "No rule to make target 'gitlab-tools'"),
        ("Makefile", "locked/github.txt\n\t@rm", "locked/gitlab.txt\n\t@rm", "gitlab.txt"),
    ],
    ids=["verb", "option", "field", "permission", "token", "target", "file"],
)  # fmt: skip
def test_a_step_that_cannot_work_is_red(
    play: Play, path: str, old: str, new: str, said: str
) -> None:
    run = play(path, old, new)
    assert run.conclusion == "failure"
    assert said in run.log


@pytest.mark.parametrize(
    ("path", "old", "new", "why"),
    [
        (LABEL, "$/.github/actions/set-up", "$/.github/actions/setup", "actions/setup"),
        (LABEL, "persist-credentials", "persist-credential", "no input persist-credential"),
        (LABEL, "    permissions:\n      contents: read\n      issues: write # labels of a PR",
         "    permissions:\n      issues: write # labels of a PR", "contents: read"),
        (LABEL, "runs-on", "run-on", "run-on"),
        (ACTION, "inputs.pin == ''", "inputs.pins == ''", "no inputs.pins"),
        (ACTION, "actions/setup-python@", "actions/set-up-python@", "no stand-in"),
    ],
    ids=["action", "input", "permission", "key", "context", "foreign"],
)  # fmt: skip
def test_a_mistake_in_a_workflow_fails_the_test(
    play: Play, path: str, old: str, new: str, why: str
) -> None:
    with pytest.raises(Mistake, match=why):
        play(path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("needs: [payload, begun]", "needs: [payload, begin]", "unknown job 'begin'"),
        ("steps.payload.outputs.run", "steps.payload.outputs.ran", "payload.outputs.ran"),
        ("      run: ${{ steps.payload.outputs.run }}\n", "", "no needs.payload.outputs.run"),
        ("      - id: payload\n        run:", "      - run:", "no steps.payload"),
    ],
    ids=["job", "output of a step", "output of a job", "id"],
)
def test_what_one_job_says_to_another_must_be_there(
    expressions: Expressions, tmp_path: Path, old: str, new: str, why: str
) -> None:
    sent = {
        "event_type": "push",
        "delivery_id": "1",
        "payload": {
            "repository": {"full_name": "pytorch/pytorch"},
            "ref": "refs/heads/main",
            "after": "5" * 40,
            "deleted": True,
        },
    }
    with (
        pytest.raises(Mistake, match=why),
        stage(expressions, tmp_path, {RELAY: [(old, new)]}) as scene,
    ):
        scene.dispatch("push", sent)
