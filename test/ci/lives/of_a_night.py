# SPDX-License-Identifier: BSD-3-Clause
"""Two nights: the first finds a nightly torch and no results, the second compares with it."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pin_index import PinIndex
from stage.acts import Changes, Runs, Stage, stage
from wheel_server import Behaviour, serving
from workflow_runner.expressions import Expressions

from lives.selection import SUITE

PLAYS = {"nightly"}
CRON = "23 4 * * *"
NIGHTLY = "2.16.0.dev20260101+cpu"
BROKEN = ('"reserved_bytes.all.current"', '"allocated_bytes.all.current"')

# Two of four pins, the nightly among them, each in one piece: the others would do the same. The
# machines have one torch, that of the pin `development`, whichever is asked for. The CPU stands for
# a public backend, which would have to be fetched. Of our own tests one runs; a repository of the
# scaffold, which takes a quarter of an hour, is only asked for.
ONE_TEST = "PYTEST_ADDOPTS= python -m pytest test/layering/test_layers.py"
LESS: Changes = {
    ".github/workflows/nightly.yml": [
        (
            "pin: [development, oldest, newest, nightly]\n        driver: [sim]\n"
            "        shard: [1, 2, 3, 4]\n        of: [4]\n",
            "pin: [oldest, nightly]\n        driver: [sim]\n        shard: [1]\n        of: [1]\n",
        ),
        (
            "backend: [mycelya]\n        shard: [1, 2, 3, 4]\n        of: [4]\n",
            "backend: [cpu]\n        shard: [1]\n        of: [1]\n",
        ),
        ("run: make foreign", "run: PYTEST_ADDOPTS=--check=view/write:* make shard TIER="),
        (
            "foreign-mycelya-*\n          path: foreign/mycelya",
            "foreign-cpu-*\n          path: foreign/cpu",
        ),
        ("run: make test-all", f"run: {ONE_TEST}"),
        ("run: make scaffold", "run: make scaffold PYTEST_ADDOPTS=--collect-only"),
    ],
    "ci/gate/foreign.yaml": [
        (
            "  mycelya: {required: true, pin: development, backend: mycelya}\n",
            "  cpu: {required: true, pin: development, backend: cpu}\n",
        )
    ],
    "ci/gate/nightly.yaml": [
        (
            "  development-sim: {required: true, pin: development, backend: puone, driver: sim}\n"
            "  oldest-sim: {required: true, pin: oldest, backend: puone, driver: sim}\n"
            "  newest-sim: {required: true, pin: newest, backend: puone, driver: sim}\n"
            "  # Some days have no nightly, or one that does not install.\n"
            "  nightly-sim: {required: false, pin: nightly, backend: puone, driver: sim}\n",
            "  oldest-sim: {required: true, pin: development, backend: puone, driver: sim}\n"
            "  nightly-sim: {required: false, pin: development, backend: puone, driver: sim}\n",
        )
    ],
}


Files = Mapping[str, bytes]


@dataclass
class Life:
    """Both nights, and what is kept of them."""

    first: Runs
    second: Runs
    kept_of_first: Files
    """The files on the branch of results after the first night."""
    kept: Files
    """After the second."""
    stage: Stage

    def site(self, runs: Runs) -> dict[str, bytes]:
        """What a night has deployed."""
        archive = self.stage.hub.artifacts(runs["nightly"].number)["github-pages"]
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            packed = io.BytesIO(zipped.read("artifact.tar"))
        with tarfile.open(fileobj=packed) as tar:
            files = {member.name: tar.extractfile(member) for member in tar.getmembers()}
            return {name: file.read() for name, file in files.items() if file}


def play(expressions: Expressions, folder: Path) -> Life:
    """Between the nights somebody breaks the reference backend."""
    (folder / "index").mkdir()
    with serving(Behaviour(folder / "index")) as index:
        PinIndex(index.behaviour).add(NIGHTLY)
        env = {**SUITE, "PIN_INDEX_NIGHTLY_CPU": index.index(), "PIP_RETRIES": "0"}
        with stage(expressions, folder, LESS, env=env) as scene:
            scene.hub.kept_variables = {"PAGES": "true"}
            scene.hub.issuer = {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://issuer.invalid/?v=1"}
            first = scene.clock(CRON)
            kept_of_first = _kept(scene)
            backend = "reference_backend/torch_puone/memory.py"
            module = scene.fake.world.file(scene.repository, "main", backend) or b""
            broken = module.decode().replace(*BROKEN)
            scene.fake.person("maintainer").pushes({backend: broken})
            second = scene.clock(CRON)
            return Life(first, second, kept_of_first, _kept(scene), scene)


def _kept(scene: Stage) -> Files:
    objects, refs = scene.fake.world.objects, scene.repository.refs
    tree = objects.commits[refs["refs/heads/results"]].tree
    return {path: objects.blobs[entry.sha] for path, entry in objects.files(tree).items()}
