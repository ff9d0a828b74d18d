# SPDX-License-Identifier: BSD-3-Clause
"""What a PR that changes a header costs the check: `python -m bench.surface_headers [TORCH]`.

Processor seconds of the whole `surface check`, with all that it starts, and seconds by the clock;
first with an empty cache, in which the base is read too, then with that cache. Of each header one
declaration is changed, as EDITS has it. Processor time means the same on a machine that has other
work to do, the clock does not.
"""

from __future__ import annotations

import argparse
import difflib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from torch_backend_ci.torch_tree import locate
from torch_backend_ci.torch_tree.cache import default_folder

ROOT = Path(__file__).parents[1]


class Edit(NamedTuple):
    """A declaration of a header, and what becomes of it."""

    header: str
    old: str
    new: str


EDITS = (
    Edit(
        "c10/core/TensorImpl.h",
        "  virtual IntArrayRef strides_custom() const;\n",
        "  virtual IntArrayRef strides_custom() const;\n"
        "  virtual IntArrayRef strides_planned() const;\n",
    ),
    Edit(
        "c10/core/Allocator.h",
        "  virtual DeleterFnPtr raw_deleter() const {\n",
        "  virtual bool is_pooled() const { return false; }\n"
        "  virtual DeleterFnPtr raw_deleter() const {\n",
    ),
    Edit(
        "c10/core/impl/DeviceGuardImplInterface.h",
        "  virtual Device getDevice() const = 0;\n",
        "  virtual Device getDevice() const = 0;\n"
        "  virtual bool isReady() const { return true; }\n",
    ),
    Edit(
        "ATen/detail/PrivateUse1HooksInterface.h",
        "  at::Device getDeviceFromPtr(void* data) const override {\n",
        "  virtual bool isPeerReachable() const { return false; }\n"
        "  at::Device getDeviceFromPtr(void* data) const override {\n",
    ),
    Edit(
        "torch/csrc/utils/device_lazy_init.h",
        "void device_lazy_init(at::DeviceType device_type);\n",
        "void device_lazy_init(at::DeviceType device_type, bool quiet = false);\n",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.surface_headers", description=__doc__)
    parser.add_argument("torch", nargs="?", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3, help="with a warm cache (default: 3)")
    args = parser.parse_args()
    include = locate(args.torch, default_folder()).include[0]
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "cache")
        patches = [_patch(include, edit, Path(folder)) for edit in EDITS]
        report("cold cache", args.torch, patches[0], cache, 1)
        for patch in patches:
            report("warm cache", args.torch, patch, cache, args.rounds)


def _patch(include: Path, edit: Edit, folder: Path) -> Path:
    """The edit as a patch of PyTorch's repository."""
    before = (include / edit.header).read_text()
    if before.count(edit.old) != 1:
        raise SystemExit(f"{edit.header} does not have once: {edit.old}")
    place = edit.header.replace("ATen/", "aten/src/ATen/", 1)
    old, new = (t.splitlines(True) for t in (before, before.replace(edit.old, edit.new)))
    diff = difflib.unified_diff(old, new, f"a/{place}", f"b/{place}")
    path = folder / f"{Path(edit.header).name}.diff"
    path.write_text("".join(diff))
    return path


def report(title: str, torch: str, patch: Path, cache: Path, rounds: int) -> None:
    """Print the medians of the rounds."""
    took = [run(torch, patch, cache) for _ in range(rounds)]
    computed, clock = (statistics.median(column) for column in zip(*took, strict=True))
    print(f"{title}  {patch.stem:30}{computed:7.1f} s computed{clock:7.1f} s elapsed", flush=True)


def run(torch: str, patch: Path, cache: Path) -> tuple[float, float]:
    """Processor seconds and elapsed seconds of one check."""
    words = ["check", "--base", torch, "--patch", str(patch), "--cache", str(cache)]
    command = [sys.executable, "-m", "torch_backend_ci", "surface", *words]
    begun = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: a finding, which the PR has
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun


if __name__ == "__main__":
    main()
