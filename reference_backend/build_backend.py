# SPDX-License-Identifier: BSD-3-Clause
"""The PEP 517 build backend of torch-puone: scikit-build-core, after a look at the environment.

The extension is compiled for one torch, the one that is installed. torch is not a requirement of
the build: pip would download it, with the libraries of CUDA, into an environment that is thrown
away afterwards. So each hook checks first and says what to do. pyproject.toml lists no requirements
for the same reason: nothing is downloaded before the first hook has run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

BUILD_REQUIRES = ["scikit-build-core>=1.1", "pybind11>=2.13", "pyyaml>=6"]
TOOLS = " ".join(f'"{name}"' for name in BUILD_REQUIRES) + " cmake ninja"

#: What pip hands to a hook.
Settings = Mapping[str, "str | list[str]"] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What pip installs before it builds a wheel in isolation; the first hook that pip calls."""
    _require_torch()
    return _requirements()


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """The same for an editable installation."""
    return get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """The same for a source distribution, which needs no torch."""
    return BUILD_REQUIRES


def prepare_metadata_for_build_wheel(folder: str, config_settings: Settings = None) -> str:
    """Write the metadata of the wheel into the directory `folder`."""
    return str(_hook("prepare_metadata_for_build_wheel")(folder, config_settings))


def prepare_metadata_for_build_editable(folder: str, config_settings: Settings = None) -> str:
    """Write the metadata of an editable installation into the directory `folder`."""
    return str(_hook("prepare_metadata_for_build_editable")(folder, config_settings))


def build_wheel(folder: str, config_settings: Settings = None, metadata: str | None = None) -> str:
    """Compile, and write the wheel into the directory `folder`."""
    return str(_hook("build_wheel")(folder, config_settings, metadata))


def build_editable(
    folder: str, config_settings: Settings = None, metadata: str | None = None
) -> str:
    """Write the wheel of an editable installation into the directory `folder`."""
    return str(_hook("build_editable")(folder, config_settings, metadata))


def build_sdist(folder: str, config_settings: Settings = None) -> str:
    """Write the source distribution into the directory `folder`."""
    return str(_hook("build_sdist", needs_torch=False)(folder, config_settings))


class TorchRequirement:
    """Requires-Dist of torch: any supported one for the source, the compiled-for one for a wheel.

    A provider of dynamic metadata, called by scikit-build-core.
    """

    def build_state(self, state: str) -> None:
        """Note what is built: "sdist", "wheel", "metadata_wheel" or an editable installation."""
        self.state = state

    def dynamic_metadata(
        self, settings: Mapping[str, Any], project: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """The dependencies for that."""
        version = _torch_version()
        if version is None or not self.state.endswith("wheel"):
            return {"dependencies": [f"torch>={_oldest_torch()}"]}
        return {"dependencies": [f"torch{specifier(version)}"]}

    def dynamic_wheel(self, settings: Mapping[str, Any]) -> dict[str, bool]:
        """That a wheel made from the source distribution says something else."""
        return {"dependencies": True}


def specifier(version: str) -> str:
    """The versions of torch that an extension compiled for `version` may run with."""
    public = version.partition("+")[0]
    if re.fullmatch(r"\d+(\.\d+)+", public) is None:  # a nightly, a source build
        return f"=={public}"
    return "==" + ".".join(public.split(".")[:2]) + ".*"


def _requirements() -> list[str]:
    # scikit-build-core adds cmake and ninja itself, but it is not there yet.
    from shutil import which

    return [*BUILD_REQUIRES, *(tool for tool in ("cmake", "ninja") if which(tool) is None)]


def _hook(name: str, needs_torch: bool = True) -> Any:
    if needs_torch:
        _require_torch()
    try:
        from scikit_build_core import build
    except ModuleNotFoundError:
        raise SystemExit(
            "torch-puone cannot be built: without build isolation, the tools of the build must be "
            f"installed first:\n  pip install {TOOLS}"
        ) from None
    return getattr(build, name)


def _require_torch() -> None:
    version = _torch_version()
    if version is not None:
        _require_supported(version)
        return
    hidden = _hidden_torch(_site_folders())
    if hidden is not None:
        reason = f"torch is installed in {hidden}, but build isolation hides it from the build."
        first = ""
    else:
        reason = f"torch is not installed for {sys.executable}."
        first = "  pip install torch\n"
    raise SystemExit(
        f"torch-puone cannot be built: {reason}\n"
        "It is compiled for the torch that it runs with, and never downloads one. Run\n"
        f"{first}"
        f"  pip install {TOOLS}\n"
        "and then the same command again with --no-build-isolation."
    )


def _require_supported(version: str) -> None:
    release, oldest = re.match(r"(\d+)\.(\d+)", version), _oldest_torch()
    if release is None or tuple(map(int, release.groups())) >= tuple(map(int, oldest.split("."))):
        return
    raise SystemExit(
        f"torch-puone cannot be built: torch {version} is too old: {oldest} or newer is needed. "
        f'Run\n  pip install "torch>={oldest}"\nand then the same command again.'
    )


def _oldest_torch() -> str:
    """As CMake refuses older ones, which it can say only within the log of a build."""
    text = (Path(__file__).resolve().parents[1] / "cmake" / "torch.cmake").read_text()
    return re.findall(r"^set\(OLDEST_TORCH ([0-9.]+)\)$", text, re.MULTILINE)[0]


def _torch_version() -> str | None:
    """Version of the torch that this interpreter would import, without importing it."""
    spec = importlib.util.find_spec("torch")
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder) / "version.py"
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            match = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
            return match[1] if match else None
    return None


def _hidden_torch(folders: Iterable[Path]) -> Path | None:
    seen = {Path(entry).resolve() for entry in sys.path if entry}
    for folder in folders:
        if (folder / "torch" / "version.py").is_file() and folder.resolve() not in seen:
            return folder
    return None


def _site_folders() -> Iterable[Path]:
    """Where packages of the environment are that the build is for.

    pip's isolated build runs the environment's own interpreter; that of other tools is an
    environment of its own, and then only VIRTUAL_ENV may name the user's.
    """
    for base in dict.fromkeys([sys.prefix, sys.base_prefix, os.environ.get("VIRTUAL_ENV")]):
        if base:
            variables = {"base": base, "platbase": base}
            for kind in ("purelib", "platlib"):
                yield Path(sysconfig.get_path(kind, vars=variables))
    yield Path(site.getusersitepackages())
