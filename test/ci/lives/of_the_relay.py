# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's relay sends: a PR is opened and later closed, and a nightly is out."""

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

from lives.selection import SUITE

NIGHTLY = "cf30153c4c131c8164ee7798e5022d810682e2cb"  # the commit of the torch that is here
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
    nightly: Runs
    relay: RelayFake
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
            pull = {"number": 42, "head": head, "labels": [], "title": "$(reboot)"}
            opened = _sent(scene, relay.dispatch_pull_request(pull_request=pull))
            closed = _sent(scene, relay.dispatch_pull_request("closed", pull_request=pull))
            about = {"event_type": "nightly", "delivery_id": NIGHTLY, "payload": {}}
            nightly = _sent(scene, {"action": "nightly", "client_payload": about})
        assert not relay.violations, "\n".join(relay.violations)
    return Life(opened, closed, nightly, relay, scene)


def _sent(scene: Stage, event: Mapping[str, Any]) -> Runs:
    return scene.dispatch(event["action"], event["client_payload"])
