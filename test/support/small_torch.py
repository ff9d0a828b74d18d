# SPDX-License-Identifier: BSD-3-Clause
"""A torch of a few files, on disk and as a wheel."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"

GUARD = (
    '#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n{}\n#else\n#error "This \
file should not be included when either TORCH_STABLE_ONLY or TORCH_TARGET_VERSION is defined."\n\
#endif  // !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n'
)

ALLOCATOR = """#pragma once

#include <cstddef>
#include <c10/core/Device.h>

namespace c10 {

struct Allocator {
  virtual ~Allocator() = default;

  virtual void* allocate(size_t n) = 0;

  virtual void deallocate(void* p) = 0;
};

} // namespace c10
"""

DEVICE = """#pragma once

namespace c10 {

struct Device {
  int index = 0;
};

} // namespace c10
"""

OPERATORS = """- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: function, method
"""


def version_py(version: str) -> str:
    """torch/version.py as a build writes it."""
    return (
        f"__all__ = ['__version__', 'git_version']\n__version__ = '{version}'\n"
        f"debug = False\ngit_version = '{COMMIT}'\n"
    )


def files(version: str = "2.13.0", wrapped: bool = True) -> dict[str, str]:
    """By their place in the wheel; headers with the guard of a wheel, or as in the repository."""
    around = GUARD if wrapped else "{}"
    return {
        "torch/version.py": version_py(version),
        "torch/__init__.py": "from torch import accelerator as accelerator\n",
        "torch/accelerator/__init__.py": "def current_device_index() -> int:\n    return 0\n",
        "torch/include/c10/core/Allocator.h": around.replace("{}", ALLOCATOR),
        "torch/include/c10/core/Device.h": around.replace("{}", DEVICE),
        "torch/include/c10/macros/cmake_macros.h": "#define C10_GENERATED\n",
        "torch/include/ATen/core/TensorBody.h": "#pragma once\n",
        "torch/include/torch/headeronly/version.h": "#define TORCH_VERSION_MAJOR 2\n",
        "torchgen/__init__.py": "",
        "torchgen/packaged/ATen/native/native_functions.yaml": OPERATORS,
        "torchgen/packaged/ATen/native/tags.yaml": "- tag: core\n  desc: in the core set\n",
        f"torch-{version}.dist-info/METADATA": f"Name: torch\nVersion: {version}\n",
    }


def unpacked(root: Path, contents: Mapping[str, str] | None = None) -> Path:
    """Write it below `root`."""
    for name, text in (contents or files()).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def checkout(root: Path, contents: Mapping[str, str] | None = None) -> Path:
    """The repository it would be built from, below `root`; `contents` changes files of it."""
    written = {
        "version.txt": "2.14.0a0\n",
        "c10/core/Allocator.h": ALLOCATOR,
        "c10/core/Device.h": DEVICE,
        "c10/core/Allocator.cpp": "// no wheel has it\n",
        "aten/src/ATen/native/native_functions.yaml": OPERATORS,
        "aten/src/ATen/native/tags.yaml": "- tag: core\n  desc: in the core set\n",
        "torch/csrc/Module.cpp": "",
        "torch/__init__.py": "from torch import accelerator as accelerator\n",
        "torch/accelerator/__init__.py": "def current_device_index() -> int:\n    return 0\n",
        "torchgen/__init__.py": "",
    }
    return unpacked(root, written | dict(contents or {}))


def wheel(path: Path, contents: Mapping[str, str] | None = None, ballast: int = 0) -> str:
    """Write it as a wheel, with libraries of `ballast` bytes between; its SHA-256.

    Equal contents give equal bytes, whenever it is.
    """
    entries = dict(contents or files())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, text) in enumerate(sorted(entries.items())):
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
            if number == 8:
                library = hashlib.shake_128(b"library").digest(ballast)
                entry = zipfile.ZipInfo("torch/lib/libtorch_cpu.so")
                archive.writestr(entry, library, zipfile.ZIP_DEFLATED)
    return hashlib.sha256(path.read_bytes()).hexdigest()
