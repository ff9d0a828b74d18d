# SPDX-License-Identifier: BSD-3-Clause
"""The checkout obeys the arrows, and every arrow is really watched."""

from __future__ import annotations

from pathlib import Path

import pytest
from layers import LAYERS, VENDOR_ALLOWED, check

ROOT = Path(__file__).resolve().parents[2]


def test_the_checkout_has_no_forbidden_arrow() -> None:
    violations = check(ROOT)
    assert not violations, "\n" + "\n".join(map(str, violations))


def test_every_exception_for_a_vendor_is_still_needed() -> None:
    stale = [
        f"{path}: {code}"
        for path, code in VENDOR_ALLOWED
        if not (ROOT / path).is_file() or code not in (ROOT / path).read_text()
    ]
    assert not stale


def plant(root: Path, name: str, text: str) -> list[str]:
    """The reasons for which a checkout with only this file in it is refused."""
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    violations = check(root)
    assert all(violation.path == name for violation in violations)
    return [str(violation) for violation in violations]


FORBIDDEN_CPP = [
    ("csrc/hal/loader.cpp", "#include <c10/core/Device.h>", "must not know PyTorch"),
    ("csrc/hal/loader.cpp", '#include "runtime/device.h"', "hal must not include runtime/"),
    ("csrc/hal/loader.cpp", '#include "drivers/sim/sim.h"', "hal must not include drivers/"),
    ("csrc/kernels/copy.cpp", "#include <ATen/Tensor.h>", "must not know PyTorch"),
    ("csrc/kernels/copy.cpp", "#include <torch/headeronly/util/Half.h>", "must not know PyTorch"),
    ("csrc/kernels/copy.cpp", '#include "hal/hal.h"', "kernels must not include hal/"),
    ("csrc/drivers/sim/stream.cpp", '#include "runtime/stream.h"', "must not include runtime/"),
    ("csrc/drivers/sim/stream.cpp", '#include "hal/loader.h"', "must not include hal/loader.h"),
    ("csrc/drivers/sim/a.cpp", '#include "drivers/template/a.h"', "must not include drivers/"),
    ("csrc/drivers/sim/a.cpp", "# include  <c10/util/Half.h>", "must not know PyTorch"),
    ("csrc/drivers/sim/a.cpp", "#if __has_include(<ATen/ATen.h>)\n#endif", "not know PyTorch"),
    ("csrc/runtime/device.cpp", '#include "aten/core/copy.h"', "runtime must not include aten/"),
    ("csrc/runtime/device.cpp", '#include "kernels/cast.h"', "runtime must not include kernels/"),
    ("csrc/runtime/device.cpp", '#include "bindings/module.h"', "runtime must not include bind"),
    ("csrc/runtime/device.cpp", "#include <pybind11/pybind11.h>", "only bindings may know Python"),
    (
        "csrc/aten/core/copy.cpp",
        '#include "kernels/copy.h"',
        "aten/core must not include kernels/copy.h",
    ),
    (
        "csrc/aten/core/copy.cpp",
        '#include "autocast/rules.h"',
        "aten/core must not include autocast/",
    ),
    ("csrc/aten/core/copy.cpp", '#include "../hal/hal.h"', "goes around the layers"),
    ("csrc/aten/core/a.cpp", '#include "aten/sort/a.h"', "aten/core must not include aten/sort"),
    ("csrc/aten/sort/a.cpp", '#include "bindings/a.h"', "aten/sort must not include bindings"),
    ("csrc/bindings/a.cpp", '#include "aten/sort/a.h"', "bindings must not include aten/sort"),
    ("csrc/aten/a.cpp", "#include <vector>", "csrc/aten is not a layer of this project"),
    ("csrc/autocast/a.cpp", '#include "kernels/cast.h"', "autocast must not include kernels/"),
    ("csrc/profiler/a.cpp", '#include "aten/core/copy.h"', "profiler must not include aten/"),
    ("csrc/graph/a.cpp", '#include "drivers/sim/sim.h"', "graph must not include drivers/"),
    ("csrc/distributed/a.cpp", '#include "bindings/a.h"', "distributed must not include bind"),
    ("csrc/bindings/module.cpp", '#include "kernels/copy.h"', "bindings must not include kern"),
    ("csrc/bindings/module.cpp", '#include "drivers/sim/a.h"', "bindings must not include driv"),
    ("csrc/runtime/stream.cpp", "#include <cuda_runtime.h>", 'only csrc/drivers/cuda says "cuda"'),
    ("csrc/runtime/stream.cpp", 'call("torch.cuda");', 'only csrc/drivers/cuda says "cuda"'),
    (
        "csrc/aten/core/copy.cpp",
        "/* a comment */ tensor.is_cuda();",
        'only csrc/drivers/cuda says "cuda"',
    ),
    ("csrc/runtime/device.cpp", 'bundledDriver("cuda");', 'only csrc/drivers/cuda says "cuda"'),
    ("csrc/misc/a.cpp", "#include <vector>", "is not a layer of this project"),
]

PACKAGE = "reference_backend/torch_puone"
FORBIDDEN_PYTHON = [
    ("conformance/a.py", "import torch_puone", "must never import torch_puone"),
    ("conformance/a.py", "def f():\n  from torch_puone import _C", "must never import"),
    ("hal_conformance/src/hal_conformance/a.py", "import torch", "must never import torch"),
    ("conformance/a.py", 'm = importlib.import_module("torch_puone")', "must never import"),
    (
        "conformance/src/torch_conformance/checks/a.py",
        "from torch_backend_ci.gate import run",
        "must never import torch_backend_ci",
    ),
    ("ci/a.py", "import torch", "must not import torch at start-up"),
    ("ci/a.py", "try:\n  from torch import nn\nexcept ImportError:\n  pass", "at start-up"),
    ("ci/a.py", "class A:\n  import torch.nn", "must not import torch at start-up"),
    ("ci/a.py", "def f():\n  import torch_puone", "must never import torch_puone"),
    (
        f"{PACKAGE}/a.py",
        "import torch_conformance.authoring.check",
        "must never import torch_conformance",
    ),
    (f"{PACKAGE}/a.py", "import torch\ntorch.cuda.init()", 'says "cuda"'),
    (f"{PACKAGE}/a.py", 'device = "cuda:0"', 'says "cuda"'),
    (f"{PACKAGE}/a.py", "from torch.cuda import amp", 'says "cuda"'),
]


@pytest.mark.parametrize(("name", "text", "reason"), FORBIDDEN_CPP + FORBIDDEN_PYTHON)
def test_a_forbidden_arrow_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    violations = plant(tmp_path, name, text + "\n")
    assert len(violations) == 1
    assert reason in violations[0]


ALLOWED = [
    ("csrc/hal/loader.cpp", '#include <dlfcn.h>\n#include "hal/loader.h"\n#include "hal/hal.h"'),
    ("csrc/kernels/copy.cpp", '#include "kernels/args.h"\n#include <cmath>'),
    ("csrc/drivers/sim/a.cpp", '#include "hal/hal.h"\n#include "kernels/copy.h"'),
    ("csrc/drivers/sim/a.cpp", '#include "drivers/sim/sim.h"\n#include "sim.h"'),
    ("csrc/drivers/cuda/a.cu", '#include <cuda_runtime.h>\nauto s = "cudaStream_t";'),
    ("csrc/runtime/driver_choice.cpp", "#include <c10/core/Stream.h>\nf(bundledDriver(name));"),
    ("csrc/runtime/a.cpp", "// as c10/cuda/CUDAStream.h does\n/* cuda\n   cuda */ int x;"),
    ("csrc/aten/core/copy.cpp", '#include "runtime/stream.h"\n#include "kernels/args.h"'),
    ("csrc/aten/sort/a.cpp", '#include "aten/core/copy.h"\n#include "aten/reduce/a.h"'),
    ("csrc/bindings/m.cpp", '#include <pybind11/pybind11.h>\n#include "runtime/stream.h"'),
    ("csrc/bindings/m.cpp", '#include "aten/core/fallback.h"\n#include "hal/hal.h"'),
    ("csrc/bindings/m.cpp", '#include "kernels/args.h"\n// #include "kernels/copy.h"'),
    ("conformance/a.py", "import torch\nimport torch_conformance.authoring.check"),
    ("ci/a.py", "def f():\n  import torch\nimport torch_conformance.results.report"),
    ("ci/a.py", "if TYPE_CHECKING:\n  import torch"),
    (f"{PACKAGE}/a.py", '"""As torch.cuda does."""\nimport torch  # cuda'),
]


@pytest.mark.parametrize(("name", "text"), ALLOWED)
def test_an_allowed_arrow_is_not_refused(tmp_path: Path, name: str, text: str) -> None:
    assert plant(tmp_path, name, text + "\n") == []


def test_a_violation_names_file_and_line(tmp_path: Path) -> None:
    text = "// one\n/* two\n three */\n#include <ATen/ATen.h>\n"
    assert plant(tmp_path, "csrc/hal/a.h", text)[0].startswith("csrc/hal/a.h:4: ")


def test_every_layer_on_disk_is_declared() -> None:
    folders = {path.name for path in (ROOT / "csrc").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} <= {layer.split("/")[0] for layer in LAYERS}
