# SPDX-License-Identifier: BSD-3-Clause
"""The repository of a backend that calls the suite in ten lines, as the documents have it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stage.acts import Runs, Stage, stage
from stage.machine import ROOT
from workflow_runner.expressions import Expressions

PLAYS = {"conformance"}
NAME = "mychip-org/torch-mychip"
SUITE = {"PYTEST_ADDOPTS": "--check=view/conti* --check=view/resize* --check=view/expanded*"}

# A backend for a device type that torch knows, so that no compiler is needed.
BACKEND = {
    "torch-mychip/pyproject.toml": '[project]\nname = "torch-mychip"\nversion = "1.0"\n',
    "torch-mychip/torch_mychip.py": "import torch\n",
    "ci/mychip.yaml": "device_type: cpu\nimport: {after_torch: [torch_mychip]}\n",
}
BROKEN = "import torch\n\ntorch.Tensor.contiguous = torch.Tensor.clone\n"


@dataclass
class Life:
    """A PR that changes nothing that matters, and one that breaks the backend."""

    good: Runs
    bad: Runs
    stage: Stage


def play(expressions: Expressions, folder: Path) -> Life:
    """Their repository is on the same fake as ours."""
    with stage(expressions, folder, env=SUITE) as scene:
        ours = scene.repository
        workflow = _documented().replace("OWNER/REPOSITORY", ours.full_name)
        workflow = re.sub(r"@[0-9a-f]{40}", f"@{scene.main}", workflow)
        workflow += "      torch: development\n"  # the one that the machines have
        files = {".github/workflows/conformance.yml": workflow, **BACKEND}
        scene.fake.repository = scene.fake.world.add_repository(NAME, files)
        return Life(
            _proposed(scene, "good", "import torch  # as before\n"),
            _proposed(scene, "bad", BROKEN),
            scene,
        )


def _proposed(scene: Stage, branch: str, module: str) -> Runs:
    files = {"torch-mychip/torch_mychip.py": module}
    number = scene.fake.open_pull(files, branch=branch, author="colleague", fork=False).number
    return scene.pull_request(number, "opened")


def _documented() -> str:
    document = (ROOT / "docs/ci/workflows.md").read_text()
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    return str(example)
