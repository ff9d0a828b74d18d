# SPDX-License-Identifier: BSD-3-Clause
"""Running one of the suites as its users do: in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = Path(os.environ.get("PUONE_LIB_DIR", ROOT / "build" / "lib"))
SIM = LIBRARIES / "libpuone_sim.so"
CUDA = LIBRARIES / "libpuone_cuda.so"
needs_cuda_driver = pytest.mark.skipif(
    not CUDA.exists(), reason="the cuda driver was not built: there is no nvcc, or PUONE_CUDA=OFF"
)
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # for machines that have one

#: The cuda driver without a GPU (test/standin). It needs CUDA's headers, which `make` installs.
STANDIN = LIBRARIES / "libpuone_cuda_standin.so"
#: In the place of the compiler that it takes for modules, by PUONE_CUDA_NVRTC.
FAKE_NVRTC = LIBRARIES / "libpuone_fake_nvrtc.so"
#: In the place of its library of matrix products; and the environment in which it has that.
FAKE_CUBLAS = LIBRARIES / "libpuone_fake_cublas.so"
OVER_FAKE_CUBLAS = {"PUONE_CUDA_BLAS": str(FAKE_CUBLAS), "PUONE_STANDIN_LIBRARY": str(FAKE_CUBLAS)}
#: In the place of its library of convolutions; and the environment in which it has that, alone.
FAKE_CUDNN = LIBRARIES / "libpuone_fake_cudnn.so"
OVER_FAKE_CUDNN = {
    "PUONE_CUDA_BLAS": "none",
    "PUONE_CUDA_DNN": str(FAKE_CUDNN),
    "PUONE_STANDIN_LIBRARY": str(FAKE_CUDNN),
}
#: In the place of its collective library; and the environment in which it has that.
FAKE_NCCL = LIBRARIES / "libpuone_fake_nccl.so"
OVER_FAKE_NCCL = {"PUONE_CUDA_NCCL": str(FAKE_NCCL), "PUONE_STANDIN_LIBRARY": str(FAKE_NCCL)}
needs_standin = pytest.mark.skipif(not STANDIN.exists(), reason="built without CUDA's headers")

#: A driver around another one, which is unusual and nowhere wrong (test/subjects/driver).
ODD = LIBRARIES / "libpuone_odd.so"


def odd(oddity: str, driver: Path = SIM) -> dict[str, str]:
    """The environment in which the backend uses the odd driver."""
    return {"PUONE_DRIVER": str(ODD), "PUONE_LIAR": oddity, "PUONE_LIAR_TARGET": str(driver)}


def one_at_a_time(folder: Path) -> FileLock:
    """For a build in a directory: tests run in several processes, and ninja does not look."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".building")


def build_target(target: str) -> None:
    """Build what `make build` leaves out, incrementally."""
    command = ["cmake", "--build", str(LIBRARIES.parent), "--target", target]
    with one_at_a_time(LIBRARIES.parent):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run_pytest(
    arguments: Iterable[str | Path],
    environment: Mapping[str, str] | None = None,
    *,
    launcher: Iterable[str] = ("-m", "pytest"),
    timeout: float = 900,
) -> subprocess.CompletedProcess[str]:
    """`pytest arguments...` in the checkout, with no PUONE_* variable but those given."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PUONE_")}
    options = ["-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, *launcher, *options, *map(str, arguments)],
        cwd=ROOT,
        env={**inherited, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
