# SPDX-License-Identifier: BSD-3-Clause
"""Whether the extension fits the torch that is installed.

PyTorch's C++ interface changes with each minor version. An extension that was compiled for another
one often loads, and then fails later or computes nonsense: virtual functions have moved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PACKAGE = __package__ or "torch_puone"
#: pip would take the wheel that it compiled for the other torch from its cache.
REBUILD = "pip install --no-build-isolation --no-deps --no-cache-dir --force-reinstall"
_VERSION = re.compile(r"(?P<release>\d+\.\d+)(?:\.\d+)*(?P<pre>[^+]*)")


@dataclass(frozen=True)
class TorchBuild:
    """One build of torch: its `__version__` and the commit it was made from."""

    version: str
    git_version: str

    @property
    def minor(self) -> str:
        """Major and minor version, such as "2.13"."""
        return self._parts()[0]

    @property
    def is_prerelease(self) -> bool:
        """Whether it is a nightly or a source build: the same version may be another interface."""
        return bool(self._parts()[1])

    def _parts(self) -> tuple[str, str]:
        match = _VERSION.match(self.version)
        return (match["release"], match["pre"]) if match else (self.version, "")


def mismatch(compiled: TorchBuild, installed: TorchBuild) -> str | None:
    """Why an extension for `compiled` cannot be used with `installed`, and what to do; or None."""
    if compiled.minor == installed.minor:
        if not compiled.is_prerelease and not installed.is_prerelease:
            return None
        if compiled.git_version == installed.git_version:
            return None
    names = [compiled.version, installed.version]
    if names[0] == names[1]:
        names = [f"{b.version} (commit {b.git_version[:12]})" for b in (compiled, installed)]
    return (
        f"{PACKAGE} was compiled for torch {names[0]}, but torch {names[1]} is installed. "
        "Compile it for that torch:\n"
        f"  {REBUILD} torch-puone\n"
        "(in its source directory, `.` instead of `torch-puone`; in a checkout that is used in "
        f"place, `make build`){_or_the_torch_that_fits(compiled)}.\n"
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps `import torch` from loading this backend."
    )


def _or_the_torch_that_fits(compiled: TorchBuild) -> str:
    if compiled.is_prerelease:
        return ""
    return (
        f", or install the torch that it was compiled for: pip install 'torch=={compiled.minor}.*'"
    )
