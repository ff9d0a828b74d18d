# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's relay sends: a PR is opened, pushed to and later closed; a push breaks what is
tested, and somebody presses "re-run"; and what nobody sends: a nightly and a periodic run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pin_index import PinIndex
from relay_fake import RelayFake
from relay_fake import serving as serving_relay
from stage.acts import Runs, Stage, stage
from wheel_server import Behaviour, serving
from workflow_runner.expressions import Expressions
from workflow_runner.results import WorkflowRun

from lives.selection import SUITE

NIGHTLY, PERIODIC = "37 7 * * *", "37 13 * * 1,4"
BACKEND = "reference_backend/torch_puone/memory.py"
BROKEN = ('"reserved_bytes.all.current"', '"allocated_bytes.all.current"')
PLAYS = {"relay"}
UPSTREAM = "pytorch/pytorch"
# A checkout of PyTorch, as far as building one by pip looks at it.
PYTORCH = {
    "pyproject.toml": '[project]\nname = "torch"\nversion = "2.16.0a0"\n',
    "requirements-build.txt": "setuptools\n",
}


@dataclass
class Life:
    """What was done for each event, and what the relay has been told."""

    opened: Runs
    closed: Runs
    unlisted: Runs
    """The clock of the nightly run, before the relay lists the repository."""
    nightly: Runs
    periodic: Runs
    red: Runs
    again: WorkflowRun
    """The second attempt of `red`."""
    relay: RelayFake
    viable: str
    """PyTorch's last good commit."""
    stage: Stage


def play(expressions: Expressions, folder: Path) -> Life:
    """The relay and the issuer of identities are on this machine."""
    (folder / "index").mkdir()
    with serving(Behaviour(folder / "index")) as index, serving_relay() as relay:
        PinIndex(index.behaviour).add("2.16.0.dev20260101+cpu")
        here = relay.environment()
        env = {
            **SUITE,
            "PIP_RETRIES": "0",
            "PIN_INDEX_NIGHTLY_CPU": index.index(),
            "RELAY_CALLBACK_URL": here.pop("RELAY_CALLBACK_URL"),
        }
        with stage(expressions, folder, env=env) as scene:
            scene.hub.issuer = here
            upstream = scene.fake.world.add_repository(UPSTREAM, PYTORCH)
            head = {"sha": upstream.refs["refs/heads/main"], "ref": "patch-1"}
            labels = [{"name": "ciflow/crcr/puone"}]
            pull = {"number": 42, "head": head, "labels": labels, "title": "$(reboot)"}
            opened = _sent(scene, relay.dispatch_pull_request(pull_request=pull))
            closed = _sent(scene, relay.dispatch_pull_request("closed", pull_request=pull))
            unlisted = scene.clock(NIGHTLY)
            scene.hub.kept_variables = {"RELAY": "true"}
            nightly = scene.clock(NIGHTLY)
            upstream.refs["refs/heads/viable/strict"] = viable = head["sha"]
            periodic = scene.clock(PERIODIC)
            _break(scene)
            pushed = relay.dispatch_pull_request("synchronize", pull_request=pull)
            red = _sent(scene, pushed)
            again = _rerun(scene, relay, red["relay"])
        assert not relay.violations, "\n".join(relay.violations)
    runs = (opened, closed, unlisted, nightly, periodic, red, again)
    return Life(*runs, relay=relay, viable=viable, stage=scene)


def _break(scene: Stage) -> None:
    module = scene.fake.world.file(scene.repository, "main", BACKEND) or b""
    broken = module.decode().replace(*BROKEN)
    scene.fake.person("maintainer").pushes({BACKEND: broken})


def _rerun(scene: Stage, relay: RelayFake, run: WorkflowRun) -> WorkflowRun:
    """Somebody presses the button at the check of PyTorch's PR."""
    name, _, conclusion = relay.check_runs[-1]
    assert conclusion == "failure"
    assert relay.rerequested(name) == (scene.repository.full_name, run.number)
    return scene.runner.rerun_failed(run)


def _sent(scene: Stage, event: Mapping[str, Any]) -> Runs:
    return scene.dispatch(event["action"], event["client_payload"])
