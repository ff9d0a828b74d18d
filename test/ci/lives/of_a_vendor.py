# SPDX-License-Identifier: BSD-3-Clause
"""The repository of a backend that has the suite in its CI: examples/vendor, as it is copied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stage.acts import Runs, Stage, stage
from stage.machine import ROOT
from workflow_runner.expressions import Expressions

PLAYS = {"conformance", "keep-baseline"}
NAME = "mychip-org/torch-mychip"
SUITE = {"PYTEST_ADDOPTS": "--check=view/conti* --check=view/resize* --check=view/expanded*"}
EXAMPLE = ROOT / "examples" / "vendor"
WORKFLOW = ".github/workflows/conformance.yml"
MODULE = "torch-mychip/torch_mychip.py"
BROKEN = "import torch\n\ntorch.Tensor.contiguous = torch.Tensor.clone\n"
# Its commands change what is tested, where the reviewed descriptor says something else.
INSTALL = "install: pip install --no-build-isolation ./torch-mychip"
CHANGED = "install: \"echo '# another' >> ci/mychip.yaml; pip install ./torch-mychip\""


@dataclass
class Life:
    """Pushes to main, PRs that change nothing that matters, and others."""

    first: Runs
    """The first push to main: there is nothing to compare with."""
    good: Runs
    bad: Runs
    changed: Runs
    """A PR that exchanges the descriptor behind the back of the gate."""
    merged: Runs
    """The bad PR, merged all the same."""
    later: Runs
    """A PR to main as it is then."""
    stage: Stage

    def baseline(self, runs: Runs) -> bytes:
        """What a push to main has kept."""
        return self.kept[id(runs)]

    kept: dict[int, bytes]


def play(expressions: Expressions, folder: Path) -> Life:
    """Their repository is on the same fake as ours."""
    with stage(expressions, folder, env=SUITE) as scene:
        files = _files(scene)
        scene.fake.repository = scene.fake.world.add_repository(NAME, files)
        kept: dict[int, bytes] = {}
        first = _kept(scene, scene.pushed(), kept)
        workflow = files[WORKFLOW]
        assert INSTALL in workflow
        good = _proposed(scene, "good", {MODULE: "import torch  # as before\n"})
        bad = _proposed(scene, "bad", {MODULE: BROKEN})
        changed = _proposed(scene, "changed", {WORKFLOW: workflow.replace(INSTALL, CHANGED)})
        merged = _kept(scene, scene.pushes({MODULE: BROKEN}), kept)
        later = _proposed(scene, "later", {MODULE: f"{BROKEN}# later\n"})
        return Life(first, good, bad, changed, merged, later, scene, kept)


def _files(scene: Stage) -> dict[str, str]:
    """The example, with our repository and its main in the place of what is to be filled in."""
    files = {
        str(path.relative_to(EXAMPLE)): path.read_text()
        for path in sorted(EXAMPLE.rglob("*"))
        if path.is_file()
    }
    ours = scene.repository.full_name
    workflow = re.sub(
        r"OWNER/REPOSITORY/(\S+)@[0-9a-f]{40}", rf"{ours}/\1@{scene.main}", files[WORKFLOW]
    )
    assert f"uses: {ours}/" in workflow
    # The one torch that the machines have.
    with_ = "      backend-file: ci/mychip.yaml\n"
    files[WORKFLOW] = workflow.replace(with_, f"{with_}      torch: development\n")
    return files


def _kept(scene: Stage, runs: Runs, kept: dict[int, bytes]) -> Runs:
    path = "baseline/backend.json.gz"
    kept[id(runs)] = scene.fake.world.file(scene.repository, "conformance", path) or b""
    return runs


def _proposed(scene: Stage, branch: str, files: dict[str, str]) -> Runs:
    number = scene.fake.open_pull(files, branch=branch, author="colleague", fork=False).number
    return scene.pull_request(number, "opened")
