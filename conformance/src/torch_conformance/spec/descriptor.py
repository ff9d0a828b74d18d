# SPDX-License-Identifier: BSD-3-Clause
"""The descriptor: the file that declares a backend to the suite.

`KEYS` is the whole vocabulary: key, expected type, meaning. A wrong or unknown key is reported with
file, line and key, and with the nearest key there is.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from torch_conformance.spec import capabilities, yaml_nodes

BUILT_IN = Path(__file__).parent / "backends"
ENTRY_POINTS = "torch_conformance.backends"


class DescriptorError(Exception):
    """A descriptor that cannot be used; the text names file, line and key."""


@dataclass(frozen=True)
class Deadlines:
    """Seconds a worker may take to load the backend, and a check (or one sample) to run."""

    startup: float = 120.0
    check: float = 60.0


@dataclass(frozen=True)
class Descriptor:
    """One backend as declared. Every default suits a backend that torch already knows."""

    name: str
    device_type: str
    description: str = ""
    file: str | None = None
    setup: str | None = None
    teardown: str | None = None
    import_before_torch: tuple[str, ...] = ()
    import_after_torch: tuple[str, ...] = ()
    autoload: bool = False
    env: dict[str, str] = field(default_factory=dict)
    adversarial_env: dict[str, str] = field(default_factory=dict)
    start_method: str = "fork"
    single_process: bool = False
    launcher: tuple[str, ...] = ()
    deadlines: Deadlines = Deadlines()
    memory_limit_mb: int | None = None
    process_group: str | None = None
    module: str | None = None
    delay: str | None = None
    driver: str | None = None
    fallback_counts: str | None = None
    fallback_reset: str | None = None
    fault: str | None = None
    backend_meta: str | None = None
    capabilities: dict[str, bool] = field(default_factory=dict)
    unsupported_dtypes: tuple[str, ...] = ()
    tolerances: dict[str, tuple[float, float]] = field(default_factory=dict)
    environment_errors: tuple[str, ...] = ()
    torch: str | None = None
    expectations: str | None = None
    workers: int | None = None
    chunk: int | None = None


STRING, BOOL, INT, NUMBER = "a string", "true or false", "a whole number", "a number"
STRINGS, TEXT_MAP, BOOL_MAP = "a list of strings", "a map of strings", "a map to true or false"

# key -> (type, meaning). A dict in the place of the type is a nested map with its own keys.
KEYS: dict[str, tuple[Any, str]] = {
    "device_type": (STRING, "what torch.device(...).type says"),
    "description": (STRING, "one line for people"),
    "device": (
        {
            "setup": (
                STRING,
                "pkg.mod:fn, called once; returns the device (string) to test, or an "
                "object with .device, which is kept alive",
            ),
            "teardown": (STRING, "pkg.mod:fn, called with that result before the worker ends"),
        },
        "for backends whose device only exists after a user call",
    ),
    "import": (
        {
            "before_torch": (STRINGS, "modules to import before torch"),
            "after_torch": (STRINGS, "modules to import after torch, in this order"),
        },
        "what makes the backend available",
    ),
    "autoload": (BOOL, "`import torch` loads the backend through its torch.backends entry point"),
    "env": (TEXT_MAP, "environment of the workers"),
    "adversarial_env": (
        TEXT_MAP,
        "environment in which work is scheduled in unusual ways; {seed} in it says in which",
    ),
    "start_method": (("fork", "spawn"), "how workers start"),
    "single_process": (BOOL, "only one process may use the device at a time"),
    "launcher": (STRINGS, "command put before the Python of a spawned worker"),
    "deadlines": (
        {
            "startup": (NUMBER, "seconds a worker may take to load the backend"),
            "check": (NUMBER, "seconds one check, or one sample of it, may take"),
        },
        "when a silent worker is killed",
    ),
    "memory_limit_mb": (INT, "limit of the address space of each worker process, in MiB"),
    "process_group": (STRING, "name of the torch.distributed backend"),
    "module": (STRING, "the device module, usually torch.<device_type>"),
    "delay": (STRING, "callable taking milliseconds that keeps the current stream busy"),
    "driver": (STRING, "callable that tells the report which driver is in use, as a dict"),
    "fallback_counts": (STRING, "callable that returns {operator: number of CPU fallbacks}"),
    "fallback_reset": (STRING, "callable that sets those counts to zero"),
    "fault": (STRING, "object that injects faults"),
    "backend_meta": (STRING, "callable that gives a tensor metadata of the backend to be saved"),
    "capabilities": (BOOL_MAP, "declared capabilities; the others are probed"),
    "dtypes": ({"unsupported": (STRINGS, "dtypes the backend does not have")}, "dtypes"),
    "tolerances": ("a map of dtype to [rtol, atol]", "replaces the default tolerances"),
    "environment_errors": (STRINGS, "regular expressions of errors that are the environment's"),
    "torch": (STRING, "the torch versions it is for, such as '>=2.11'"),
    "expectations": (STRING, "expectations file, relative to the descriptor"),
    "workers": (INT, "workers that may run at the same time"),
    "chunk": (INT, "checks a worker runs before a fresh one takes its place"),
}


# The device type of tensors without memory.
META = "meta"
NO_VALUES = "cannot be tested: its device holds no values, so there is nothing to compare"


def load(file: Path, name: str | None = None) -> Descriptor:
    """Read and verify one descriptor file."""
    reader = _Reader(file)
    values = reader.read()
    return _build(name or file.stem, file, values)


def find(name: str) -> Descriptor:
    """The descriptor of backend `name`: built in, from an entry point, or made from the type."""
    file = BUILT_IN / f"{name}.yaml"
    if file.is_file():
        return load(file)
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == name:
            return _from_entry_point(entry.load(), name)
    if name == META:
        raise DescriptorError(f"backend {META!r} {NO_VALUES}")
    if name in torch_device_types():
        return Descriptor(name=name, device_type=name)
    raise DescriptorError(
        f"unknown backend {name!r}. Known: {', '.join(known())}.\n"
        "To add one, write a descriptor and pass it with --backend-file mychip.yaml:\n"
        "    device_type: mychip\n"
        "    import: {after_torch: [torch_mychip]}\n"
        f"or let your package announce it in the entry point group {ENTRY_POINTS!r} "
        "(the value: a path to the file, or a function that returns one).\n"
        "All keys: `python -m torch_conformance help descriptor`."
    )


def known() -> list[str]:
    """Names that `find` accepts: descriptor files, entry points, then torch's device types."""
    described = {file.stem for file in BUILT_IN.glob("*.yaml")}
    described |= {entry.name for entry in entry_points(group=ENTRY_POINTS)}
    return sorted(described) + [t for t in torch_device_types() if t not in described]


def torch_device_types() -> list[str]:
    """Device types with a home of their own in torch that a worker can try to use."""
    return ["cpu", "cuda", "mps", "xpu", "mtia", "hpu"]


def _from_entry_point(loaded: Any, name: str) -> Descriptor:
    value = loaded() if callable(loaded) else loaded
    return load(Path(value), name)


class _Reader:
    """YAML to plain values, with the line of every key kept for the messages."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> dict[str, Any]:
        node = yaml_nodes.compose(self.file, DescriptorError)
        if not isinstance(node, yaml.MappingNode):
            raise DescriptorError(
                f"{self.file}:1: expected a map of keys; see "
                "`python -m torch_conformance help descriptor`"
            )
        values = self._map(node, KEYS, "")
        if "device_type" not in values:
            raise DescriptorError(f"{self.file}:1: key 'device_type' is missing")
        return values

    def _map(self, node: yaml.MappingNode, keys: dict[str, Any], prefix: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = f"{self.file}:{key_node.start_mark.line + 1}"
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            if key not in keys:
                raise DescriptorError(f"{where}: unknown key '{prefix}{key}'{_nearest(key, keys)}")
            expected = keys[key][0]
            if isinstance(expected, dict):
                if not isinstance(value_node, yaml.MappingNode):
                    raise DescriptorError(f"{where}: key '{prefix}{key}' must be a map")
                values[key] = self._map(value_node, expected, f"{prefix}{key}.")
            else:
                value = yaml_nodes.construct(value_node, where, DescriptorError)
                problem = _type_problem(key, expected, value)
                if problem:
                    raise DescriptorError(f"{where}: key '{prefix}{key}' {problem}")
                values[key] = value
        return values


def _nearest(key: str, keys: Any) -> str:
    close = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known keys: {', '.join(keys)}"


def _type_problem(key: str, expected: Any, value: Any) -> str | None:
    """What is wrong with a value, or None. One branch for each type word used in KEYS."""
    if key == "device_type" and value == META:
        return f"{META!r} {NO_VALUES}"
    if key == "tolerances":
        return _tolerances_problem(value)
    if key == "capabilities":
        return _capabilities_problem(value)
    if isinstance(expected, tuple):
        return None if value in expected else f"must be one of {', '.join(expected)}"
    if _has_type(expected, value):
        return _pattern_problem(value) if key == "environment_errors" else None
    return f"must be {expected}, not {value!r}"


def _has_type(expected: str, value: Any) -> bool:
    if expected == STRING:
        return isinstance(value, str)
    if expected == BOOL:
        return isinstance(value, bool)
    if expected == INT:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if expected == NUMBER:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    if expected == STRINGS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, dict) and all(
        isinstance(k, str) and isinstance(v, str) for k, v in value.items()
    )


def _capabilities_problem(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f"must be {BOOL_MAP}, not {value!r}"
    for name, declared in value.items():
        if name not in capabilities.MEANING:
            return (
                f"names an unknown capability '{name}'{_nearest(str(name), capabilities.MEANING)}"
            )
        if not isinstance(declared, bool):
            return f"must say true or false for '{name}', not {declared!r}"
    return None


def _tolerances_problem(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "must be a map of dtype to [rtol, atol]"
    for name, pair in value.items():
        if not (
            isinstance(pair, list)
            and len(pair) == 2
            and all(_has_type(NUMBER, p) or p == 0 for p in pair)
        ):
            return f"must give [rtol, atol] for '{name}', not {pair!r}"
    return None


def _pattern_problem(patterns: list[str]) -> str | None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            return f"has a bad regular expression {pattern!r}: {error}"
    return None


def _build(name: str, file: Path, values: dict[str, Any]) -> Descriptor:
    device, imports = values.pop("device", {}), values.pop("import", {})
    dtypes = values.pop("dtypes", {})
    if "deadlines" in values:
        values["deadlines"] = Deadlines(**values["deadlines"])
    if "expectations" in values:
        values["expectations"] = str(file.parent / values["expectations"])
    for key in ("launcher", "environment_errors"):
        values[key] = tuple(values.get(key, ()))
    values["tolerances"] = {k: (v[0], v[1]) for k, v in values.get("tolerances", {}).items()}
    return Descriptor(
        name=name,
        file=str(file),
        setup=device.get("setup"),
        teardown=device.get("teardown"),
        import_before_torch=tuple(imports.get("before_torch", ())),
        import_after_torch=tuple(imports.get("after_torch", ())),
        unsupported_dtypes=tuple(dtypes.get("unsupported", ())),
        **values,
    )
