# SPDX-License-Identifier: BSD-3-Clause
"""module.h and all that it includes as one text, in a C++ source that a driver links.

    python amalgamate.py host|simt OUTPUT --depfile FILE --include DIRECTORY...

Headers of the system stay as #include lines, unless --standard names a file that takes the place of
all of them. Fails with one line if a header of the project is included under a condition other
than the flavour: a text without #pragma once could lack it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = "kernels/module.h"
FLAVOUR = "PUONE_SIMT"  # the macro that chooses one
DELIMITER = "puone"  # of the raw string
INCLUDE = re.compile(r'#\s*include\s+"([^"]+)"')
SYSTEM_INCLUDE = re.compile(r"#\s*include\s+<[^>]+>")
CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(.*)")


class AmalgamationError(ValueError):
    """The headers cannot be made one text; the message names the header."""


@dataclass
class Amalgamation:
    """Collects the text of headers, each once."""

    directories: list[Path]
    simt: bool
    standard: Path | None = None
    seen: list[Path] = field(default_factory=list)

    def lines(self, name: str) -> Iterator[str]:
        """The lines of a header, and before their use those of what it includes."""
        path = self._find(name)
        if path is None:
            raise AmalgamationError(f"there is no header {name}")
        if path in self.seen:
            return
        self.seen.append(path)
        name = path.name if path == self.standard else name
        yield f'#line 1 "{name}"'
        #: The conditions that the line is under: None for one of the compiler's, else whether it
        #: holds.
        conditions: list[bool | None] = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := CONDITION.fullmatch(line.strip()):
                if self._enter(conditions, found[1], found[2].split("//")[0].strip()):
                    continue
            elif False in conditions or line.strip() == "#pragma once":
                continue
            if self.standard is not None and SYSTEM_INCLUDE.match(line.strip()):
                if False not in conditions and self.standard not in self.seen:
                    yield from self.lines(str(self.standard))
                yield f'#line {number + 1} "{name}"'
            elif included := INCLUDE.match(line.strip()):
                if None in conditions:
                    raise AmalgamationError(f"{name}:{number}: an include under a condition")
                yield from self.lines(included[1])
                yield f'#line {number + 1} "{name}"'
            elif False not in conditions:
                yield line

    def _enter(self, conditions: list[bool | None], word: str, rest: str) -> bool:
        """Whether the directive belongs to the choice of the flavour, which is made here."""
        if word in ("if", "ifdef", "ifndef"):
            ours = rest == FLAVOUR and word != "if"
            conditions.append((word == "ifdef") == self.simt if ours else None)
            return ours
        top = conditions[-1]
        if word == "endif":
            conditions.pop()
        elif word == "else" and top is not None:
            conditions[-1] = not top
        return top is not None

    def _find(self, name: str) -> Path | None:
        return next((d / name for d in self.directories if (d / name).is_file()), None)


def source(text: str) -> str:
    """The C++ source that defines moduleDialect()."""
    if f'){DELIMITER}"' in text:
        raise AmalgamationError("the text has the delimiter of the raw string in it")
    return f"""\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from csrc/{ROOT} by csrc/kernels/amalgamate.py: edit that.
#include "kernels/module_dialect.h"

std::string_view puone::kernels::moduleDialect() {{
  static constexpr char kText[] = R"{DELIMITER}({text}){DELIMITER}";
  return {{kText, sizeof kText - 1}};
}}
"""


def _path(text: str) -> Path:
    return Path(text).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("flavour", choices=("host", "simt"))
    parser.add_argument("output", type=Path)
    parser.add_argument("--depfile", type=Path, required=True, help="of the headers, for ninja")
    parser.add_argument("--include", type=Path, action="append", required=True)
    parser.add_argument("--standard", type=_path, help="what takes the place of system headers")
    options = parser.parse_args()
    gathered = Amalgamation(options.include, options.flavour == "simt", options.standard)
    try:
        text = source("\n".join(gathered.lines(ROOT)) + "\n")
    except AmalgamationError as error:
        sys.exit(str(error))
    options.output.write_text(text)
    headers = " ".join(str(path) for path in gathered.seen)
    options.depfile.write_text(f"{options.output}: {headers}\n")


if __name__ == "__main__":
    main()
