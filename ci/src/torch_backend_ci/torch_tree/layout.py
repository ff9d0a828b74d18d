# SPDX-License-Identifier: BSD-3-Clause
"""Where a file of PyTorch's repository lies in a wheel, and back.

Paths are relative, with `/`. `WHEEL` is the whole mapping; the first row that fits is meant. What a
build writes has no place in the repository: `GENERATED` lists it, and `SOURCES_OF_GENERATED` what
it is written from.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from wcmatch import glob


class Row(NamedTuple):
    """Files `repository`/X with one of the `suffixes` lie in `wheel`/X."""

    repository: str
    wheel: str
    suffixes: tuple[str, ...]
    deep: bool = True  # also those in subfolders


HEADERS = (".h", ".hpp", ".cuh")
PYTHON = (".py", ".pyi")
TEMPLATES = (".h", ".cpp", ".cu", ".ini", ".in", ".py.in")

# Exact files first, then directories from the special to the general.
FILES = {
    "aten/src/ATen/native/native_functions.yaml": (
        "torchgen/packaged/ATen/native/native_functions.yaml"
    ),
    "aten/src/ATen/native/tags.yaml": "torchgen/packaged/ATen/native/tags.yaml",
    "tools/autograd/derivatives.yaml": "torchgen/packaged/autograd/derivatives.yaml",
    "tools/autograd/deprecated.yaml": "torchgen/packaged/autograd/deprecated.yaml",
    "torch/lib/libshm/libshm.h": "torch/include/libshm.h",
}
WHEEL = (
    Row("aten/src/ATen/templates", "torchgen/packaged/ATen/templates", TEMPLATES),
    Row("tools/autograd/templates", "torchgen/packaged/autograd/templates", TEMPLATES),
    Row("tools/autograd", "torchgen/packaged/autograd", (".py",), deep=False),
    Row("aten/src/ATen", "torch/include/ATen", HEADERS),
    Row("aten/src/THC", "torch/include/THC", HEADERS),
    Row("c10", "torch/include/c10", HEADERS),
    Row("caffe2", "torch/include/caffe2", HEADERS),
    Row("torch/csrc", "torch/include/torch/csrc", HEADERS),
    Row("torch/headeronly", "torch/include/torch/headeronly", HEADERS),
    Row("torch", "torch/include/torch", HEADERS, deep=False),
    Row("torch", "torch", PYTHON),
    Row("torchgen", "torchgen", PYTHON),
    Row("third_party/kineto/libkineto/include", "torch/include/kineto", HEADERS),
    Row("third_party/pybind11/include/pybind11", "torch/include/pybind11", HEADERS),
    Row("third_party/fmt/include/fmt", "torch/include/fmt", HEADERS),
)

# What a build of PyTorch writes, by its place in the wheel.
GENERATED = (
    "torch/version.py",
    "torch/return_types.pyi",
    "torch/_VF.pyi",
    "torch/_C/{__init__,_VariableFunctions,_nn}.pyi",
    "torch/nn/functional.pyi",
    "torch/utils/data/datapipes/datapipe.pyi",
    "torch/_inductor/packaged/**",
    "torch/include/ATen/{Config,CPUFunctions,CUDAFunctions,MetaFunctions,Functions}.h",
    "torch/include/ATen/{CPU,CUDA,Meta}Functions_inl.h",
    "torch/include/ATen/Composite*Functions{,_inl}.h",
    "torch/include/ATen/Native{,Meta}Functions.h",
    "torch/include/ATen/{MethodOperators,Operators,RedispatchFunctions}.h",
    "torch/include/ATen/{FunctionalInverses,RegistrationDeclarations,VmapGeneratedPlumbing}.h",
    "torch/include/ATen/{FakeTensorDispatchTables,NativeAotStubs,ViewMetaClasses,XPUFunctions}.h",
    "torch/include/ATen/UnboxingFunctions.h",
    "torch/include/ATen/core/{ATenOpList,TensorBody,TensorMethods,aten_interned_strings}.h",
    "torch/include/ATen/core/enum_tag.h",
    "torch/include/ATen/cuda/CUDAConfig.h",
    "torch/include/ATen/ops/**",
    "torch/include/c10/{macros,cuda/impl}/*cmake_macros.h",
    "torch/include/caffe2/core/macros.h",
    "torch/include/torch/csrc/api/include/torch/version.h",
    "torch/include/torch/csrc/autograd/generated/**",
    "torch/include/torch/csrc/lazy/generated/**",
    "torch/include/torch/headeronly/version.h",
    "torch/include/torch/headeronly/macros/cmake_macros.h",
)

# But for these, which lie among them and are of the repository.
BY_HAND = ("torch/include/ATen/ops/{from_blob,tensor}.h",)

# What it writes them from, by its place in the repository.
SOURCES_OF_GENERATED = (
    "aten/src/ATen/templates/**",
    "tools/autograd/templates/**",
    "**/*.{h,py,pyi}.in",
)

# What no installed PyTorch has, in any form.
BESIDE = (
    "{.ci,.circleci,.github,.vscode,.devcontainer,benchmarks,docs,test,tools/testing}/**",
    "*.{md,txt,toml,cfg,ini}",
    "**/*.{md,rst}",
)

_GLOB = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB


def to_wheel(path: str) -> str | None:
    """The wheel's path of a file of the repository; None for what no wheel carries."""
    if path in FILES:
        return FILES[path]
    rows = ((row, _below(path, row.repository, row)) for row in WHEEL)
    return next((f"{row.wheel}/{rest}" for row, rest in rows if rest is not None), None)


def to_repository(path: str) -> str | None:
    """The repository's path of a file of a wheel; None for what is not in the repository."""
    if path in _BACK:
        return _BACK[path]
    if is_generated(path):
        return None
    rows = ((row, _below(path, row.wheel, row)) for row in WHEEL)
    return next((f"{row.repository}/{rest}" for row, rest in rows if rest is not None), None)


def is_generated(path: str) -> bool:
    """True if a build writes this file of a wheel."""
    return bool(_any_of(GENERATED).fullmatch(path)) and not _any_of(BY_HAND).fullmatch(path)


def makes_generated(path: str) -> bool:
    """True if a build writes other files from this file of the repository."""
    return _any_of(SOURCES_OF_GENERATED).fullmatch(path) is not None


def is_beside(path: str) -> bool:
    """True for a file of the repository that makes no part of an installed PyTorch."""
    return _any_of(BESIDE).fullmatch(path) is not None


_BACK = {wheel: repository for repository, wheel in FILES.items()}


def _below(path: str, folder: str, row: Row) -> str | None:
    """What follows `folder` in `path`, if the row is about such a file."""
    if not path.startswith(folder + "/") or not path.endswith(row.suffixes):
        return None
    rest = path[len(folder) + 1 :]
    return rest if row.deep or "/" not in rest else None


@functools.cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    included, _ = glob.translate(list(patterns), flags=_GLOB)
    return re.compile("|".join(f"(?:{pattern})" for pattern in included))
