# SPDX-License-Identifier: BSD-3-Clause
"""YAML files of users, read as nodes: every value keeps its line, every problem names it.

PyYAML reports bad input by exceptions of many kinds: its own, ValueError for a date such as
2027-13-01, RecursionError for deep nesting. Here they all become the caller's own error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

#: A file that people write is far below this; above it reading takes minutes.
MAX_BYTES = 4 << 20

#: For the suite's own files. It needs libyaml, which not every build of PyYAML has, and is ten
#: times as fast. Users' files need the other one: its messages are better, and it bears any depth.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def compose(file: Path, error: type[Exception]) -> yaml.Node | None:
    """The root node of a file, None if it is empty; raises `error` with file, line and problem."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise error(f"{file}: larger than {MAX_BYTES >> 20} MiB")
        text = file.read_text(encoding="utf-8")
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as problem:
        raise error(f"{file}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise error(f"{file}: not UTF-8") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        what = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "not YAML"
        raise error(f"{file}:{line}: {what}") from None
    except RecursionError:
        raise error(f"{file}:1: nested too deep") from None
    except (ValueError, OverflowError) as problem:  # an escape beyond the last character there is
        raise error(f"{file}:1: {problem}") from None


def construct(node: yaml.Node, where: str, error: type[Exception]) -> Any:
    """The plain value of a node; raises `error` beginning with `where`."""
    try:
        return yaml.SafeLoader("").construct_document(node)
    except yaml.YAMLError as problem:
        raise error(
            f"{where}: {getattr(problem, 'problem', None) or 'not a plain value'}"
        ) from None
    except (ValueError, TypeError, OverflowError) as problem:
        raise error(f"{where}: {problem}") from None
    except RecursionError:
        raise error(f"{where}: nested too deep") from None
