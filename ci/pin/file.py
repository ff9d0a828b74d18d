# SPDX-License-Identifier: BSD-3-Clause
"""ci/pins/NAME.yaml <-> Pin.

A pull request can put anything there, so the reader trusts nothing. What the writer writes has one
form only: a pin that did not change is the same file, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ci.errors import CiError
from ci.pin.model import REASON_LIMIT, Pin, Source, Torch, Wheel, check_name, check_wheel, version

ROOT = Path(__file__).parents[2]
IN_REPOSITORY = "ci/pins"
SCHEMA = Path(__file__).parent / "schema" / "pin.schema.json"
SIZE_LIMIT = 64 << 10

_HEAD = """\
# SPDX-License-Identifier: BSD-3-Clause
# Kept by `python -m ci pin update` (docs/ci/pins.md), which writes this file anew: say in `reason`
# what is to be said.
"""


def place(name: str) -> str:
    """Where a pin is kept, in the repository."""
    return f"{IN_REPOSITORY}/{check_name(name)}.yaml"


def read(name: str, root: Path = ROOT) -> Pin:
    """The pin of this name; CiError says what is wrong with it."""
    path = root / place(name)
    try:
        with open(path, "rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError as error:
        there = ", ".join(names(root)) or "none"
        raise CiError(f"there is no pin {name!r}; there are: {there}") from error
    except OSError as error:
        raise CiError(f"cannot read {path}: {error.strerror}") from error
    return parse(name, data, str(path))


def read_all(wanted: Sequence[str] = (), root: Path = ROOT) -> list[Pin]:
    """The pins of these names, else all of them."""
    found = [read(name, root) for name in dict.fromkeys(wanted or names(root))]
    if not found:
        raise CiError(f"there is no pin in {root / IN_REPOSITORY}")
    return found


def names(root: Path = ROOT) -> list[str]:
    """The names of all pins, sorted."""
    return sorted(check_name(path.stem) for path in (root / IN_REPOSITORY).glob("*.yaml"))


def parse(name: str, data: bytes, where: str) -> Pin:
    """The pin that these bytes are; `where` is for messages."""
    try:
        fields = _load(data)
        for error in _schema().iter_errors(fields):
            at = "/".join(map(str, error.absolute_path)) or "the pin"
            raise CiError(f"{at}: {_short(error.message)}")
        return _pin(name, fields)
    except CiError as error:
        raise CiError(f"{where}: {error}") from error


def as_fields(pin: Pin) -> dict[str, Any]:
    """The pin as schema/pin.schema.json says."""
    torch: dict[str, Any] = {"unresolved": pin.unresolved}
    if pin.torch:
        torch = {
            "version": pin.torch.version,
            "git_version": pin.torch.git_version,
            "wheels": [_wheel_fields(wheel) for wheel in pin.torch.wheels],
        }
    rest = {"index": pin.index, "source": pin.source.value, "reason": pin.reason}
    return {"name": pin.name, **torch, **rest}


def render(pin: Pin) -> bytes:
    """The file of a pin."""
    text = yaml.safe_dump(as_fields(pin), sort_keys=False, width=98, allow_unicode=True)
    return (_HEAD + text).encode()


def _wheel_fields(wheel: Wheel) -> dict[str, Any]:
    digest = {"unhashed": True} if wheel.sha256 is None else {"sha256": wheel.sha256}
    return {"file": wheel.file, **digest}


def _pin(name: str, fields: dict[str, Any]) -> Pin:
    if fields["name"] != name:
        raise CiError(f"the file of pin {name!r} calls itself {fields['name']!r}")
    check_reason(fields["reason"])
    unresolved = fields.get("unresolved")
    if unresolved is not None and not unresolved.isprintable():
        raise CiError("unresolved: one line of printable text")
    torch = None if unresolved is not None else _torch(fields)
    source = Source(fields["source"])
    return Pin(name, torch, unresolved, fields["index"], source, fields["reason"])


def check_reason(text: str) -> None:
    """CiError for words that cannot be a pin's reason."""
    if not text.isprintable() or not 0 < len(text) <= REASON_LIMIT:
        raise CiError(f"reason: one line of printable text of up to {REASON_LIMIT} characters")


def _torch(fields: dict[str, Any]) -> Torch:
    exact = version(fields["version"])
    files = [check_wheel(wheel["file"], exact) for wheel in fields["wheels"]]
    if files != sorted(set(files)):
        raise CiError("wheels: each file once, sorted")
    wheels = tuple(Wheel(wheel["file"], wheel.get("sha256")) for wheel in fields["wheels"])
    return Torch(str(exact), fields["git_version"], wheels)


class _Loader(yaml.SafeLoader):
    """YAML without tags, without aliases (which can make a small file huge), without a key that
    is there twice (of which the second would be believed without a word)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise CiError("anchors and aliases are not allowed in a pin")
        if getattr(event, "tag", None) is not None:
            raise CiError("tags are not allowed in a pin")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
            raise CiError("a key is there twice, or is not text")
        return super().construct_mapping(node, deep)


def _load(data: bytes) -> Any:
    if len(data) > SIZE_LIMIT:
        raise CiError(f"larger than {SIZE_LIMIT >> 10} KiB: that is not a pin")
    try:
        return yaml.load(data, Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise CiError(f"not plain YAML: {_short(' '.join(str(error).split()))}") from error
    except RecursionError as error:
        raise CiError("nested too deeply: that is not a pin") from error


@cache
def _schema() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:296] + " ..."
