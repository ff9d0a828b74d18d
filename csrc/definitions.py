# SPDX-License-Identifier: BSD-3-Clause
"""Reads the definitions that sources are generated from, which are YAML, and writes the sources.

What aten/generate_operators.py and hal/generate_kernels.py have in common.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    import yaml
except ImportError:
    sys.exit(
        f"{Path(sys.argv[0]).name} needs PyYAML, which {sys.executable} does not have: "
        f"{sys.executable} -m pip install pyyaml"
    )

# The first needs libyaml, which not every build of PyYAML has, and is ten times as fast.
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class GeneratorError(ValueError):
    """Nothing can be generated; the message is one line, which names the file."""


class UniqueKeys(Loader):  # type: ignore[misc]  # a class that is chosen at run time
    """Refuses a key that a mapping already has: YAML would keep the last of them."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key.value, str):
                raise _at(key, "a key is not a word")
            if key.value in seen:
                raise _at(key, f"{key.value} is declared twice")
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep=deep))


def _at(node: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def read(path: Path, loader: Any = UniqueKeys) -> tuple[Any, Any]:
    """What a YAML file says, and its root node, which knows the lines. Raises GeneratorError."""
    try:
        document = loader(path.read_text(encoding="utf-8"))
        node = document.get_single_node()
        return document.construct_document(node) if node else None, node
    except OSError as error:
        raise GeneratorError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise GeneratorError(f"{path}: not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise GeneratorError(f"{path}:{line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise GeneratorError(f"{path}: {' '.join(str(error).split())}") from None


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Write the texts into the files of these names, those that differ. Raises GeneratorError.

    A file that would not change is left alone, so that nothing is compiled again for it.
    """
    try:
        for name, text in files.items():
            path = directory / name
            if path.is_file() and path.read_text(encoding="utf-8") == text:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GeneratorError(f"{error.filename}: cannot be written: {error.strerror}") from None
