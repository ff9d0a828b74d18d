# SPDX-License-Identifier: BSD-3-Clause
"""The runner of workflows plays them as GitHub does, and takes fewer mistakes than GitHub."""

from __future__ import annotations

import io
import tarfile
import textwrap
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from small_hub import SmallHub, commit, git
from workflow_runner.events import Event, starts
from workflow_runner.expressions import Expressions
from workflow_runner.matrix import legs
from workflow_runner.mistakes import Mistake
from workflow_runner.permissions import resolve
from workflow_runner.results import WorkflowRun
from workflow_runner.runs import Runner

WORKFLOW = ".github/workflows/w.yml"
ACTION = ".github/actions/a/action.yml"
CHECKOUT = "actions/checkout@1234"
UPLOAD = "actions/upload-artifact@1234"
DOWNLOAD = "actions/download-artifact@1234"


@pytest.fixture(scope="module")
def expressions() -> Iterator[Expressions]:
    with Expressions() as process:
        yield process


@pytest.fixture
def hub(tmp_path: Path) -> SmallHub:
    return SmallHub(tmp_path / "hub")


@pytest.fixture
def runner(hub: SmallHub, expressions: Expressions, tmp_path: Path) -> Runner:
    return Runner(hub, expressions, tmp_path / "machine")


Play = Callable[..., WorkflowRun]


@pytest.fixture
def play(hub: SmallHub, runner: Runner) -> Play:
    """Plays a workflow, given by its jobs, on a push to main."""

    def play(
        jobs: str,
        head: str = "permissions: {contents: read}",
        files: Mapping[str, str] | None = None,
        **event: Any,
    ) -> WorkflowRun:
        body = textwrap.indent(textwrap.dedent(jobs), "  ")
        workflow = f"name: w\non: push\n{textwrap.dedent(head)}\njobs:\n{body}\n"
        sha = commit(hub.folder / "org/repo", {WORKFLOW: workflow, **(files or {})})
        return runner.play(WORKFLOW, push(sha, **event))

    return play


def push(sha: str = "0" * 40, **more: Any) -> Event:
    said = {"payload": {"after": sha}, "ref": "refs/heads/main", "name": "push", **more}
    return Event(repository="org/repo", sha=sha, **said)


def steps(*lines: str) -> str:
    """A job of these steps."""
    text = "a:\n  runs-on: ubuntu-24.04\n  steps:\n"
    return text + "".join(textwrap.indent(f"- {line}\n", "    ") for line in lines)


def log(run: WorkflowRun) -> str:
    return run.leg("a").log


# ---- what a step gets and gives ------------------------------------------------------------


def test_a_step_runs_in_bash_with_the_environment_of_its_event(play: Play) -> None:
    run = play(steps('run: echo "$GITHUB_EVENT_NAME $GITHUB_REPOSITORY $GITHUB_REF_NAME $CI"'))
    assert "push org/repo main true" in log(run)
    assert run.conclusion == "success"


def test_nothing_of_the_environment_of_the_tests_reaches_a_step(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_RUN_URL", "of the tests")
    monkeypatch.setenv("MINE", "of the tests")
    assert "of the tests" not in log(play(steps("run: env")))


def test_the_event_is_in_a_file(play: Play) -> None:
    run = play(steps('run: cat "$GITHUB_EVENT_PATH"'), payload={"action": "opened"})
    assert '{"action": "opened"}' in log(run)


def test_the_environment_of_a_step_is_that_of_all_around_it_the_nearest_first(play: Play) -> None:
    run = play(
        """
        a:
          runs-on: ubuntu-24.04
          env: {B: job, C: job}
          steps:
          - run: echo "$A-$B-$C-${{ env.A }}-${{ env.C }}"
            env: {C: step}
        """,
        head="permissions: {}\nenv: {A: workflow, B: workflow, C: workflow}",
    )
    assert "workflow-job-step-workflow-step" in log(run)


def test_outputs_environment_and_path_reach_the_steps_after(play: Play) -> None:
    run = play(
        steps(
            'id: one\n  run: |\n    echo "x=1" >> "$GITHUB_OUTPUT"\n'
            '    printf "y<<E\\ntwo\\nlines\\nE\\n" >> "$GITHUB_OUTPUT"\n'
            '    echo "Z=3" >> "$GITHUB_ENV"\n    echo "/of/step" >> "$GITHUB_PATH"',
            'run: echo "$X/$Y/$Z/$PATH"\n  env:\n    X: ${{ steps.one.outputs.x }}\n'
            "    Y: ${{ steps.one.outputs.y }}",
        )
    )
    assert "1/two\nlines/3//of/step:" in log(run)


def test_what_a_step_says_to_people_is_kept(play: Play) -> None:
    run = play(
        steps(
            'run: |\n    echo "# Summary" >> "$GITHUB_STEP_SUMMARY"\n'
            '    echo "::error file=a.h,line=3,title=A%2C B::one%0Atwo%25"'
        )
    )
    assert run.leg("a").summary == "# Summary\n"
    (annotation,) = run.leg("a").annotations
    assert (annotation.level, annotation.message) == ("error", "one\ntwo%")
    assert annotation.properties == {"file": "a.h", "line": "3", "title": "A, B"}


@pytest.mark.parametrize(("shell", "conclusion"), [("", "success"), ("\n  shell: bash", "failure")])
def test_only_bash_by_its_name_notices_a_failure_within_a_pipe(
    play: Play, shell: str, conclusion: str
) -> None:
    assert play(steps(f"run: false | true{shell}")).conclusion == conclusion


def test_a_step_ends_at_its_first_failing_line(play: Play) -> None:
    run = play(steps("name: s\n  run: |\n    false\n    echo reached"))
    assert run.conclusion == "failure"
    assert "reached" not in log(run)


def test_a_step_that_takes_too_long_is_killed(play: Play) -> None:
    run = play(steps("run: sleep 60\n  timeout-minutes: 0.002"))
    assert run.conclusion == "failure"
    assert "timed out" in log(run)


def test_a_fresh_machine_has_no_identity_for_git(play: Play) -> None:
    run = play(steps("run: git init -q . && git commit --allow-empty -m x"))
    assert run.conclusion == "failure"


# ---- which steps and jobs run --------------------------------------------------------------


def test_after_a_failure_only_those_run_that_ask_for_it(play: Play) -> None:
    run = play(
        steps(
            "run: exit 3",
            "run: echo one",
            "run: echo two\n  if: failure()",
            "run: echo three\n  if: ${{ !cancelled() }}",
            "run: echo four\n  if: always()",
            "run: echo five\n  if: ${{ failure() && github.event_name == 'pull_request' }}",
        )
    )
    assert [step.outcome for step in run.leg("a").steps] == [
        "failure", "skipped", "success", "success", "success", "skipped",
    ]  # fmt: skip
    assert run.conclusion == "failure"


def test_a_step_may_fail_and_the_job_go_on(play: Play) -> None:
    run = play(
        steps(
            "id: one\n  run: exit 1\n  continue-on-error: true",
            "run: echo ${{ steps.one.outcome }} ${{ steps.one.conclusion }}",
        )
    )
    assert run.conclusion == "success"
    assert "failure success" in log(run)


def test_jobs_run_after_those_they_need_and_read_their_outputs(play: Play) -> None:
    run = play(
        """
        b:
          needs: a
          runs-on: ubuntu-24.04
          steps:
          - run: echo "got ${{ needs.a.outputs.x }} of a ${{ needs.a.result }}"
        a:
          runs-on: ubuntu-24.04
          outputs: {x: "${{ steps.s.outputs.x }}"}
          steps:
          - id: s
            run: echo x=7 >> "$GITHUB_OUTPUT"
        """
    )
    assert "got 7 of a success" in run.leg("b").log


def test_a_job_is_skipped_if_one_that_it_needs_failed_even_at_second_hand(play: Play) -> None:
    job = "{runs-on: x, steps: [{run: 'true'}]"
    run = play(
        f"""
        a: {{runs-on: x, steps: [{{run: exit 1}}]}}
        b: {job}, needs: a}}
        c: {job}, needs: b, if: "${{{{ !cancelled() }}}}"}}
        d: {job}, needs: c}}
        e: {job}, needs: b, if: failure()}}
        """
    )
    assert {name: result.result for name, result in run.jobs.items()} == {
        "a": "failure", "b": "skipped", "c": "success", "d": "skipped", "e": "success",
    }  # fmt: skip


def test_a_matrix_may_come_from_a_job(play: Play) -> None:
    run = play(
        """
        a:
          runs-on: ubuntu-24.04
          outputs: {m: "${{ steps.s.outputs.m }}"}
          steps:
          - id: s
            run: echo 'm={"pin":["old","new"]}' >> "$GITHUB_OUTPUT"
        b:
          needs: a
          name: b of ${{ matrix.pin }}
          strategy: {matrix: "${{ fromJSON(needs.a.outputs.m) }}"}
          runs-on: ubuntu-24.04
          steps:
          - run: echo ${{ matrix.pin }} ${{ strategy.job-index }}/${{ strategy.job-total }}
        """
    )
    assert [leg.name for leg in run.jobs["b"].legs] == ["b of old", "b of new"]
    assert "new 1/2" in run.leg("b", 1).log


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ({"a": [1, 2], "b": ["x"]}, [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]),
        ({"a": [1, 2], "exclude": [{"a": 1}]}, [{"a": 2}]),
        ({"a": [1], "include": [{"a": 1, "b": 2}]}, [{"a": 1, "b": 2}]),
        ({"a": [1], "include": [{"a": 3, "b": 2}]}, [{"a": 1}, {"a": 3, "b": 2}]),
        ({"a": [1, 2], "include": [{"b": 5}]}, [{"a": 1, "b": 5}, {"a": 2, "b": 5}]),
        ({"include": [{"a": 1}, {"a": 2}]}, [{"a": 1}, {"a": 2}]),
    ],
)
def test_a_matrix_has_the_legs_that_github_makes(
    matrix: Mapping[str, Any], expected: list[dict[str, Any]]
) -> None:
    assert legs(matrix) == expected


@pytest.mark.parametrize(
    ("on", "event", "expected"),
    [
        ("push", push(), True),
        (["pull_request"], push(), False),
        ({"push": {"branches": ["main"]}}, push(), True),
        ({"push": {"branches": ["release/**"]}}, push(), False),
        ({"push": {"branches": ["release/**"]}}, push(ref="refs/heads/release/1/2"), True),
        ({"push": {"branches": ["release/*"]}}, push(ref="refs/heads/release/1/2"), False),
        ({"push": {"branches-ignore": ["main"]}}, push(), False),
        ({"push": {"branches": ["**", "!main"]}}, push(), False),
        ({"push": {"tags": ["v*"]}}, push(), False),
        ({"push": {"tags": ["v*"]}}, push(ref="refs/tags/v1.0"), True),
        ({"push": {"branches": ["main"]}}, push(ref="refs/tags/v1.0"), False),
        ({"push": {"paths": ["labels/**"]}}, push(changed=("labels/a/b.yml",)), True),
        ({"push": {"paths": ["labels/**"]}}, push(changed=("ci/a.py",)), False),
        ({"push": {"paths-ignore": ["docs/**"]}}, push(changed=("docs/a", "x")), True),
        ({"pull_request": None}, push(name="pull_request", payload={"action": "opened"}), True),
        ({"pull_request": None}, push(name="pull_request", payload={"action": "closed"}), False),
        (
            {"pull_request": {"types": ["closed"]}},
            push(name="pull_request", payload={"action": "closed"}),
            True,
        ),
        (
            {"pull_request": {"branches": ["main"]}},
            push(name="pull_request", payload={"action": "opened"}, base_ref="dev"),
            False,
        ),
        ({"schedule": [{"cron": "1 2 * * *"}]}, push(name="schedule", schedule="1 2 * * *"), True),
        ({"schedule": [{"cron": "1 2 * * *"}]}, push(name="schedule", schedule="0 0 * * *"), False),
        ({"workflow_dispatch": None}, push(name="workflow_dispatch"), True),
        (
            {"repository_dispatch": {"types": ["pull_request"]}},
            push(name="repository_dispatch", payload={"action": "push"}),
            False,
        ),
    ],
)  # fmt: skip
def test_an_event_starts_a_workflow_by_its_filters(on: Any, event: Event, expected: bool) -> None:
    assert starts(on, event) is expected


def test_the_end_of_a_run_starts_the_workflows_that_name_it() -> None:
    on = {"workflow_run": {"workflows": ["pr"], "types": ["completed"]}}
    payload = {"action": "completed", "workflow_run": {"head_branch": "x"}}
    event = push(name="workflow_run", payload=payload)
    assert starts(on, event, "pr")
    assert not starts(on, event, "nightly")


def test_every_workflow_of_the_repository_that_an_event_starts_is_played(
    hub: SmallHub, runner: Runner
) -> None:
    job = "jobs: {a: {runs-on: x, steps: [{run: 'true'}]}}\npermissions: {}\n"
    sha = commit(
        hub.folder / "org/repo",
        {
            ".github/workflows/a.yml": f"on: push\n{job}",
            ".github/workflows/b.yml": f"on: [pull_request, push]\n{job}",
            ".github/workflows/c.yml": f"on: pull_request\n{job}",
        },
    )
    assert [run.path[-5:] for run in runner.happens(push(sha))] == ["a.yml", "b.yml"]


# ---- rights --------------------------------------------------------------------------------


def test_the_token_of_a_job_may_do_what_the_job_says_and_no_more(play: Play, hub: SmallHub) -> None:
    play(
        """
        a: {runs-on: x, permissions: {issues: write}, steps: [{run: 'true'}]}
        b: {runs-on: x, steps: [{run: 'true'}]}
        """
    )
    assert sorted(map(str, hub.tokens.values())) == ["{'contents': 'read'}", "{'issues': 'write'}"]


def test_a_job_without_permissions_is_a_mistake(play: Play) -> None:
    with pytest.raises(Mistake, match="neither the workflow nor the job says its permissions"):
        play(steps("run: echo"), head="")


def test_a_pr_from_a_fork_reads_only_and_gets_no_secrets(play: Play, hub: SmallHub) -> None:
    hub.kept_secrets = {"KEY": "a-secret-key"}
    run = play(
        steps('run: echo "[$KEY]"\n  env: {KEY: "${{ secrets.KEY }}"}'),
        head="permissions: {contents: write, id-token: write}",
        name="pull_request",
        from_fork=True,
    )
    assert "[]" in log(run)
    assert list(hub.tokens.values()) == [{"contents": "read"}]


def test_a_secret_that_a_step_prints_is_a_mistake_and_is_not_told(
    play: Play, hub: SmallHub
) -> None:
    hub.kept_secrets = {"KEY": "a-secret-key"}
    with pytest.raises(Mistake, match="prints a secret") as caught:
        play(steps('run: echo "$KEY"\n  env: {KEY: "${{ secrets.KEY }}"}'))
    assert "a-secret-key" not in str(caught.value)


def test_what_a_step_masks_is_a_secret_from_then_on(play: Play) -> None:
    with pytest.raises(Mistake, match="prints a secret"):
        play(steps("run: |\n    echo ::add-mask::fetched-token\n    echo fetched-token"))


def test_only_a_job_that_may_asks_for_its_identity(play: Play) -> None:
    run = play(
        """
        a: {runs-on: x, permissions: {id-token: write}, steps: [{run: env}]}
        b: {runs-on: x, permissions: {}, steps: [{run: env}]}
        """
    )
    assert "ACTIONS_ID_TOKEN_REQUEST_URL=" in run.leg("a").log
    assert "ACTIONS_ID_TOKEN_REQUEST_URL=" not in run.leg("b").log


def test_permissions_of_a_job_replace_those_of_its_workflow() -> None:
    assert resolve({"contents": "write"}, {"issues": "read"}) == {"issues": "read"}
    assert resolve({"contents": "write"}, None) == {"contents": "write"}
    assert resolve({"contents": "none"}, None) == {}
    assert resolve(None, None, {"contents": "read"}) == {"contents": "read"}


# ---- actions -------------------------------------------------------------------------------

COMPOSITE = """
name: a
description: an action
inputs:
  who: {description: whom to greet, required: true}
  how: {description: in which words, default: hello}
outputs:
  said: {description: the greeting, value: "${{ steps.say.outputs.text }}"}
runs:
  using: composite
  steps:
  - id: say
    shell: bash
    run: echo "text=$HOW $WHO $(basename "$GITHUB_ACTION_PATH")" >> "$GITHUB_OUTPUT"
    env: {WHO: "${{ inputs.who }}", HOW: "${{ inputs.how }}"}
"""


@pytest.mark.parametrize("prefix", ["$/", "./"])
def test_a_composite_action_gets_its_inputs_and_gives_its_outputs(play: Play, prefix: str) -> None:
    run = play(
        steps(
            f"uses: {CHECKOUT}",
            f"id: a\n  uses: {prefix}.github/actions/a\n  with: {{who: you}}",
            "run: echo '${{ steps.a.outputs.said }}!'",
        ),
        files={ACTION: COMPOSITE},
    )
    assert "hello you a!" in log(run)


def test_a_failure_in_an_action_is_one_of_the_job(play: Play) -> None:
    action = COMPOSITE.replace("run: echo", "run: exit 1 #")
    run = play(
        steps("uses: $/.github/actions/a\n  with: {who: you}"),
        files={ACTION: action.replace("${{ steps.say.outputs.text }}", "x")},
    )
    assert run.conclusion == "failure"


def test_a_checkout_has_the_commit_of_the_event_and_what_the_machine_has_built(play: Play) -> None:
    run = play(
        steps(f"uses: {CHECKOUT}", "run: cat file; ls furnished; git log --oneline | wc -l"),
        files={"file": "contents\n"},
    )
    assert "contents\nfurnished\n1" in log(run)


def test_a_checkout_is_as_deep_as_was_asked_for(play: Play, hub: SmallHub) -> None:
    for text in ("1", "2", "3"):
        commit(hub.folder / "org/repo", {"file": text})
    deep = "uses: " + CHECKOUT + "\n  with: {fetch-depth: %d, path: d%d}"
    run = play(steps(*(deep % (n, n) for n in (0, 1, 2)), *(
        f"run: git -C d{n} log --oneline | wc -l" for n in (0, 1, 2)
    )))  # fmt: skip
    assert [step.log.split()[0] for step in run.leg("a").steps[3:]] == ["4", "1", "2"]


def test_who_checks_out_without_credentials_or_rights_cannot_push(play: Play) -> None:
    pushes = (
        "run: git -c user.name=a -c user.email=a@b commit -qm x --allow-empty && "
        "git push -q origin HEAD:refs/heads/new"
    )
    plain = f"uses: {CHECKOUT}"
    without = f"uses: {CHECKOUT}\n  with: {{persist-credentials: false}}"
    write = "permissions: {contents: write}"
    assert play(steps(plain, pushes)).conclusion == "failure"
    assert play(steps(without, pushes), head=write).conclusion == "failure"
    assert play(steps(plain, pushes), head=write).conclusion == "success"


def test_a_branch_that_is_not_there_lets_the_checkout_fail(play: Play) -> None:
    run = play(steps(f"uses: {CHECKOUT}\n  with: {{ref: results}}"))
    assert run.conclusion == "failure"


def test_artifacts_go_from_job_to_job(play: Play) -> None:
    run = play(
        f"""
        a:
          strategy: {{matrix: {{n: [1, 2]}}}}
          runs-on: x
          steps:
          - run: mkdir -p out/sub; echo ${{{{ matrix.n }}}} > out/sub/${{{{ matrix.n }}}}.txt
          - uses: {UPLOAD}
            with: {{name: "r-${{{{ matrix.n }}}}", path: out}}
        b:
          needs: a
          runs-on: x
          steps:
          - uses: {DOWNLOAD}
            with: {{pattern: r-*, path: all, merge-multiple: true}}
          - uses: {DOWNLOAD}
            with: {{pattern: r-*, path: each}}
          - uses: {DOWNLOAD}
            with: {{name: r-1}}
          - run: find all each sub -type f | sort
        """
    )
    found = run.leg("b").steps[-1].log.split()
    assert found[:2] == ["all/sub/1.txt", "all/sub/2.txt"]
    assert found[2:5] == ["each/r-1/sub/1.txt", "each/r-2/sub/2.txt", "sub/1.txt"]


def test_an_artifact_without_files_or_by_a_taken_name_fails(play: Play) -> None:
    with_ = "\n  with: {name: x, path: %s, if-no-files-found: error}"
    assert play(steps(f"uses: {UPLOAD}" + with_ % "nothing")).conclusion == "failure"
    twice = [f"uses: {UPLOAD}" + with_ % "f"] * 2
    run = play(steps("run: touch f", *twice))
    assert [step.outcome for step in run.leg("a").steps] == ["success", "success", "failure"]


PAGES = """
site:
  runs-on: x
  steps:
  - run: mkdir -p site/api; echo hello > site/index.html; touch site/api/a.json site/.state
  - uses: actions/upload-pages-artifact@1234
    with: {path: site}
deploy:
  needs: site
  runs-on: x
  permissions: {pages: write, id-token: write}
  environment: {name: github-pages, url: "${{ steps.out.outputs.page_url }}"}
  steps:
  - uses: actions/configure-pages@1234
  - {id: out, uses: actions/deploy-pages@1234}
"""


def test_a_site_is_deployed_without_what_is_hidden(play: Play, hub: SmallHub) -> None:
    run = play(PAGES)
    assert run.leg("deploy").url == "https://org.github.io/repo/"
    with zipfile.ZipFile(io.BytesIO(hub.artifacts(run.number)["github-pages"])) as archive:
        site = tarfile.open(fileobj=io.BytesIO(archive.read("artifact.tar")))
    assert site.getnames() == ["api/a.json", "index.html"]


@pytest.mark.parametrize("scope", ["pages", "id-token"])
def test_who_deploys_a_site_needs_the_rights_to(play: Play, scope: str) -> None:
    with pytest.raises(Mistake, match=f"needs the permission {scope}: "):
        play(PAGES.replace(f"{scope}: write", f"{scope}: none"))


def test_there_must_be_a_site_to_deploy(play: Play) -> None:
    run = play(PAGES.replace("{path: site}", "{path: site, name: other}"))
    assert "no artifacts named 'github-pages'" in run.leg("deploy").log


def test_a_cache_gives_back_what_an_earlier_run_left(play: Play) -> None:
    job = steps(
        "id: c\n  uses: actions/cache@1\n"
        "  with: {path: kept, key: 'k-${{ github.event.n }}', restore-keys: k-}",
        'run: cat kept/f || true; mkdir -p kept; echo "of ${{ github.event.n }}" > kept/f',
        "run: echo hit=${{ steps.c.outputs.cache-hit }}",
    )
    first, other, again = (play(job, payload={"n": n}) for n in (1, 2, 1))
    assert "hit=\n" in log(first)
    assert "of 1" in log(other)
    assert "hit=false" in log(other)
    assert "of 1" in log(again)
    assert "hit=true" in log(again)


@pytest.mark.parametrize(
    ("mode", "restores", "saves"),
    [
        ("none", False, False),
        ("read", True, False),
        ("write-only", False, True),
        ("write", True, True),
    ],
)
@pytest.mark.parametrize("place", ["workflow", "job"])
def test_a_job_does_with_caches_what_its_cache_mode_allows(
    play: Play, mode: str, restores: bool, saves: bool, place: str
) -> None:
    def job(key: str) -> str:
        return steps(
            f"uses: actions/cache@1\n  with: {{path: kept, key: {key}}}",
            "run: cat kept/f || true; mkdir -p kept; echo $((40 + 2)) > kept/f",
        )

    def held(key: str) -> WorkflowRun:
        head, text = "permissions: {}", job(key)
        if place == "workflow":
            head += f"\ncache-mode: {mode}"
        else:
            text = text.replace("a:\n", f"a:\n  cache-mode: {mode}\n")
        return play(text, head=head)

    play(job("there"))
    assert ("42\n" in log(held("there"))) == restores
    held("new")
    assert ("42\n" in log(play(job("new")))) == saves


def test_a_cache_mode_that_there_is_not_is_a_mistake(play: Play) -> None:
    with pytest.raises(Mistake, match="cache-mode: all is not one of"):
        play(steps('run: "true"'), head="permissions: {}\ncache-mode: all")


# ---- reusable workflows --------------------------------------------------------------------

CALLED = """
name: called
on:
  workflow_call:
    inputs:
      pin: {type: string, required: true}
      often: {type: number, default: 2}
    secrets:
      KEY: {required: false}
    outputs:
      said: {value: "${{ jobs.x.outputs.said }}"}
permissions: {contents: read}
jobs:
  x:
    runs-on: x
    outputs: {said: "${{ steps.s.outputs.said }}"}
    steps:
    - id: s
      run: |
        echo "said=${{ inputs.pin }} ${{ inputs.often }}" >> "$GITHUB_OUTPUT"
        echo "of ${{ github.repository }}, file of ${{ job.workflow_repository }}"
        echo "[${{ secrets.KEY }}]"
"""
CALLING = """
a:
  uses: {uses}
  with: {{pin: new}}
b:
  needs: a
  runs-on: x
  steps:
  - run: echo "${{{{ needs.a.outputs.said }}}}"
"""


def test_a_reusable_workflow_gets_inputs_and_gives_outputs(play: Play) -> None:
    jobs = CALLING.format(uses="./.github/workflows/called.yml")
    run = play(jobs, files={".github/workflows/called.yml": CALLED})
    assert "new 2" in run.leg("b").log
    assert "of org/repo, file of org/repo\n[]" in run.leg("a / x").log


def test_a_reusable_workflow_of_another_repository_runs_for_the_caller(
    play: Play, hub: SmallHub
) -> None:
    sha = commit(hub.folder / "other/suite", {".github/workflows/called.yml": CALLED})
    run = play(CALLING.format(uses=f"other/suite/.github/workflows/called.yml@{sha}"))
    assert "of org/repo, file of other/suite" in run.leg("a / x").log


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("with: {pin: new}", "with: {pim: new}"), "pim"),
        (("with: {pin: new}", "secrets: inherit"), "pin is required|needs the input pin"),
        (("{pin: new}", "{pin: new}\n  secrets: {NO: x}"), "NO is not defined|no such secret"),
        (("{pin: new}", "{pin: new, often: many}"), "often"),
        (("a:\n", "a:\n  permissions: {}\n"), "asks for contents: read"),
        (("called.yml", "none.yml"), "Unable to find reusable workflow"),
        (("outputs.said", "outputs.sad"), "there is no needs.a.outputs.sad"),
    ],
)
def test_a_call_that_does_not_fit_is_a_mistake(
    play: Play, change: tuple[str, str], why: str
) -> None:
    jobs = CALLING.format(uses="./.github/workflows/called.yml").replace(*change)
    with pytest.raises(Mistake, match=why):
        play(jobs, files={".github/workflows/called.yml": CALLED})


# ---- mistakes that GitHub takes for emptiness, or finds only when it is too late --------------


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["id: s\n  run: echo x=1", "run: echo ${{ steps.s.outputs.x }}"], "steps.s.outputs.x"),
        (["run: echo ${{ steps.later.outputs.x }}", "id: later\n  run: 'true'"], "steps.later"),
        (["run: echo ${{ env.NOPE }}"], "env.NOPE"),
        (["run: echo ${{ matrix.pin }}"], "matrix.pin"),
        (["run: echo ${{ needs.b.result }}"], "needs.b"),
        (["run: echo ${{ hashFiles('requirements/*.txt') }}"], "requirements"),
        (["run: echo ${{ nonsense }}"], "Unrecognized named-value: 'nonsense'"),
        (["run: echo ${{ upper('x') }}"], "Unrecognized function: 'upper'"),
        (["run: echo\n  if: ${{ true }} && false"], "always holds"),
        (["run: echo\n  with: {x: y}"], "Unexpected value"),
        (["run: echo\n  shell: fish"], "shell: fish"),
        (["run: echo\n  working-directory: nowhere"], "working-directory"),
        (["uses: some/action@v1"], "no stand-in for some/action"),
        (["uses: ./.github/actions/a\n  with: {who: x}"], "is the repository checked out"),
        (["uses: $/.github/actions/none"], "none"),
        (["uses: $/.github/actions/a"], "needs the input who"),
        (["uses: $/.github/actions/a\n  with: {who: x, whom: y}"], "no input whom"),
        ([f"uses: {CHECKOUT}\n  with: {{fetch-dept: 0}}"], "no input fetch-dept"),
        ([f"uses: {UPLOAD}\n  with: {{path: x}}"], "needs name"),
        (['run: echo "::set-output name=x::1"'], "withdrawn"),
        (['run: echo "::eror::x"'], "no command ::eror::"),
        (['run: echo "nonsense" >> "$GITHUB_OUTPUT"'], "not a value"),
        (['run: echo "x<<E" >> "$GITHUB_OUTPUT"'], "has no end"),
        (['run: head -c 1100000 /dev/zero >> "$GITHUB_STEP_SUMMARY"'], "larger"),
        ([f"uses: {DOWNLOAD}\n  with: {{name: x, run-id: 1}}"], "actions: read"),
        (["uses: pypa/gh-action-pypi-publish@1"], "id-token: write"),
    ],
)
def test_a_mistake_in_a_step_fails_even_where_the_step_may_fail(
    play: Play, lines: list[str], why: str
) -> None:
    lines[-1] += "\n  continue-on-error: true"
    with pytest.raises(Mistake, match=why):
        play(steps(*lines), files={ACTION: COMPOSITE})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("needs: nobody", "depends on unknown job 'nobody'"),
        ("need: b", "Unexpected value 'need'"),
        ("container: x", "cannot be played"),
        ("outputs: {x: '${{ steps.s.outputs.x }}'}", "steps.s"),
        ("outputs: {x: '${{ matrix.x }}'}", "matrix.x"),
        ("strategy: {matrix: {a: []}}", "values"),
        ("if: ${{ needs.b.outputs.x == 'y' }}", "needs.b"),
    ],
)
def test_a_mistake_in_a_job_fails(play: Play, line: str, why: str) -> None:
    other = "b: {runs-on: x, steps: [{run: 'true'}]}\n"
    with pytest.raises(Mistake, match=why):
        play(other + steps("run: echo").replace("runs-on", f"{line}\n  runs-on"))


def test_a_checkout_needs_the_right_to_read(play: Play) -> None:
    with pytest.raises(Mistake, match="contents: read"):
        play(steps(f"uses: {CHECKOUT}"), head="permissions: {}")


def test_the_output_of_a_step_that_failed_or_was_skipped_may_be_empty(play: Play) -> None:
    run = play(
        steps(
            "id: s\n  run: exit 1",
            "id: t\n  run: 'true'",
            "run: echo [${{ steps.s.outputs.x }}${{ steps.t.outputs.x }}]\n  if: always()",
        )
    )
    assert "[]" in log(run)


def test_the_record_knows_which_steps_were_played(play: Play, runner: Runner) -> None:
    play(
        steps(
            "run: 'true'",
            "uses: $/.github/actions/a\n  with: {who: x}",
            "run: 'true'\n  if: failure()",
        ),
        files={ACTION: COMPOSITE},
    )
    assert runner.record.played == {(WORKFLOW, "a", 0), (WORKFLOW, "a", 1), (ACTION, "", 0)}


def test_git_of_the_hub_is_left_as_it_was(play: Play, hub: SmallHub) -> None:
    play(steps(f"uses: {CHECKOUT}\n  with: {{fetch-depth: 0}}", "run: touch new; git status -s"))
    assert git(hub.folder / "org/repo", "status", "--short") == ""


# ---- again -----------------------------------------------------------------------------------

AGAIN = """
    first:
      runs-on: ubuntu-24.04
      outputs: {said: "${{ steps.s.outputs.said }}"}
      steps:
      - id: s
        run: echo said=$GITHUB_RUN_ATTEMPT >> "$GITHUB_OUTPUT"
    second:
      needs: first
      runs-on: ubuntu-24.04
      steps:
      - run: test "$GITHUB_RUN_ATTEMPT" = 2
    third:
      needs: [first, second]
      if: ${{ always() }}
      runs-on: ubuntu-24.04
      steps:
      - run: echo "first in ${{ needs.first.outputs.said }}, second ${{ needs.second.result }}"
    fourth:
      needs: first
      runs-on: ubuntu-24.04
      steps:
      - run: "true"
"""


def test_a_re_run_plays_what_failed_and_what_needs_it(play: Play, runner: Runner) -> None:
    run = play(AGAIN)
    assert "first in 1, second failure" in run.leg("third").log
    again = runner.rerun_failed(run)
    assert (again.attempt, again.number, again.conclusion) == (2, run.number, "success")
    assert "first in 1, second success" in again.leg("third").log
    assert again.jobs["fourth"] is run.jobs["fourth"]


def test_a_run_without_a_failed_job_has_nothing_to_run_again(play: Play, runner: Runner) -> None:
    run = play(steps('run: "true"'))
    with pytest.raises(Mistake, match="no failed jobs"):
        runner.rerun_failed(run)
