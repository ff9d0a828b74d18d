# SPDX-License-Identifier: BSD-3-Clause
"""How the headers are compiled: gcc's own C++ library, the flags of an extension."""

from __future__ import annotations

import functools
import os
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from torch_backend_ci.errors import CiError
from torch_backend_ci.torch_tree import TorchTree

COMPILER = "g++"

# gcc's headers of intrinsics define functions that clang has built in: they count as included.
_WITHOUT_INTRINSICS = tuple(
    f"-D_{name}_INCLUDED"
    for name in ("X86INTRIN_H", "IMMINTRIN_H", "EMMINTRIN_H", "XMMINTRIN_H", "X86GPRINTRIN_H")
)


@dataclass(frozen=True)
class Profile:
    """A way to preprocess the headers, beyond what every extension defines."""

    name: str
    defines: tuple[str, ...]


# What a declaration `requires` is one of the defines of the profile that alone can see it.
PROFILES = (Profile("plain", ()), Profile("vendor", ("USE_C10D_NCCL", "USE_CUDA")))

EVERYWHERE = ("USE_DISTRIBUTED", "USE_C10D_GLOO", "USE_KINETO")


def standard(version: str) -> str:
    """The C++ standard that extensions of this torch are compiled with."""
    return "c++17" if Version(version) < Version("2.8") else "c++20"


def flags(tree: TorchTree, profile: Profile) -> list[str]:
    """The command line of libclang, without the file; also good for g++ but for -nostdinc++."""
    return [
        *("-x", "c++", f"-std={standard(tree.version)}", "-w"),
        *(f"-D{name}" for name in (*EVERYWHERE, *profile.defines)),
        *(f"-I{folder}" for folder in include_folders(tree)),
    ]


def include_folders(tree: TorchTree) -> list[Path]:
    """The tree's directories, and those that its headers need: Kineto's and Python's."""
    kineto = [folder / "kineto" for folder in tree.include if (folder / "kineto").is_dir()]
    return [*tree.include, *kineto, Path(sysconfig.get_paths()["include"])]


@functools.cache
def system_flags() -> tuple[str, ...]:
    """libclang comes without a C++ library: the one of the machine's gcc, and nothing else."""
    folders = (word for folder in _gcc_folders() for word in ("-isystem", folder))
    return ("-nostdinc", "-nostdinc++", *_WITHOUT_INTRINSICS, *folders)


def _gcc_folders() -> list[str]:
    command = [COMPILER, "-E", "-x", "c++", "/dev/null", "-v"]
    try:
        # gcc speaks the user's language, and what it says is read here.
        english = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=english)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CiError(
            f"reading C++ needs the standard headers of {COMPILER}, and it does not run ({error}); "
            "install it (Debian: apt-get install g++)"
        ) from error
    _, _, rest = done.stderr.partition("#include <...>")
    listed, _, _ = rest.partition("End of search list")
    return [line.strip() for line in listed.splitlines()[1:] if line.strip()]
