# SPDX-License-Identifier: BSD-3-Clause
"""What pytest loads where the suite is installed. It sleeps until a run asks for the suite.

Most runs of pytest in an environment with the suite are of other projects. They get no option, no
marker and no import of torch from it. A run asks for the suite by naming it (``--pyargs
torch_conformance``, or a path inside the package), by ``--checks-dir``, or by ``-p
torch_conformance.plugin``.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from torch_conformance import INI_BACKEND, INI_BACKEND_FILE, INI_EXPECTATIONS

PLUGIN = "torch_conformance.pytest_plugin.plugin"
NAME, OLD_NAME = "torch_conformance", "conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    """In every run, because pytest complains about keys of an ini file that it does not know."""
    add = parser.addini
    add(INI_BACKEND, "backends that torch_conformance tests without --backend", type="args")
    add(INI_BACKEND_FILE, "descriptors of such backends, as with --backend-file", type="paths")
    add(INI_EXPECTATIONS, "expectations file, as with --expectations", type="paths")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    known = early_config.known_args_namespace
    if known.pyargs:
        for arguments in (args, known.file_or_dir):
            _rename(arguments)
    if _is_asked_for(args, known.file_or_dir, known.plugins, known.pyargs):
        early_config.pluginmanager.import_plugin(PLUGIN)


def _rename(arguments: list[str]) -> None:
    """Until 0.3, `--pyargs conformance` means this package."""
    for i, argument in enumerate(arguments):
        module, separator, rest = argument.partition("::")
        if module != OLD_NAME:
            continue
        arguments[i] = NAME + separator + rest
        warnings.warn(
            f"--pyargs {OLD_NAME} ends with version 0.3 of the suite: write --pyargs {NAME}",
            pytest.PytestWarning,
            stacklevel=2,
        )


def _is_asked_for(args: list[str], paths: list[str], plugins: list[str], pyargs: bool) -> bool:
    if __name__ in plugins or any(arg.startswith("--checks-dir") for arg in args):
        return True
    return any(_is_ours(path.partition("::")[0], pyargs) for path in paths)


def _is_ours(path: str, pyargs: bool) -> bool:
    if pyargs and path.partition(".")[0] == NAME:
        return True
    return Path(path).resolve().is_relative_to(Path(__file__).resolve().parent)
