# SPDX-License-Identifier: BSD-3-Clause
"""The descriptor: the file that declares a backend to the suite.

`Document` is the whole vocabulary: keys, types and meanings. A wrong or unknown key is reported
with file, line and key, and with the nearest key there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from torch_conformance.spec import user_file
from torch_conformance.spec.capabilities import MEANING
from torch_conformance.spec.typed import Steps
from torch_conformance.spec.user_file import Part, Text
from torch_conformance.spec.versions import specifier_error

BUILT_IN = Path(__file__).parent / "backends"
ENTRY_POINTS = "torch_conformance.backends"
SCHEMA: Final = "urn:torch-conformance:descriptor:1"


class DescriptorError(Exception):
    """A descriptor that cannot be used; the text names file, line and key."""


# A week: what waits is given seconds, and a system call refuses far larger numbers.
Seconds = Annotated[float, Meta(gt=0, le=604_800)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Mebibytes = Annotated[int, Meta(ge=1, le=1 << 32)]
Bound = Annotated[float, Meta(ge=0)]
Tolerance = Annotated[tuple[Bound, Bound], Meta(title="[rtol, atol]")]
Tolerances = Annotated[dict[str, Tolerance], Meta(title="a map of dtype to [rtol, atol]")]
Variable = Annotated[str, Meta(pattern=r"^[^=\x00]+$", title="the name of an environment variable")]
Value = Annotated[str, Meta(pattern=r"^[^\x00]*$", title="a string (without a null character)")]
Environment = dict[Variable, Value]
Pattern = Annotated[str, Meta(min_length=1, extra_json_schema={"format": "regex"})]
# The names are checked in `problems`; the schema gives them to editors.
Capability = Annotated[str, Meta(extra_json_schema={"enum": list(MEANING)})]
Capabilities = Annotated[
    dict[Capability, bool],
    Meta(
        title="a map to true or false",
        extra_json_schema={
            "properties": {
                name: {"description": meaning, "type": "boolean"}
                for name, meaning in MEANING.items()
            }
        },
    ),
]


class Setup(Part, frozen=True, kw_only=True):
    """How the device is made and ended."""

    setup: Text | UnsetType = UNSET
    """`pkg.mod:fn`, called once; returns the device (a string) to test, or an object with
    `.device`, which is kept alive"""
    teardown: Text | UnsetType = UNSET
    """`pkg.mod:fn`, called with what `setup` returned before the worker ends"""


class Imports(Part, frozen=True, kw_only=True):
    """Modules to import, in this order."""

    before_torch: tuple[Text, ...] = ()
    """modules to import before torch, in this order"""
    after_torch: tuple[Text, ...] = ()
    """modules to import after torch, in this order"""


class Deadlines(Part, frozen=True, kw_only=True):
    """When a silent worker is killed."""

    startup: Seconds = 120.0
    """seconds a worker may take to load the backend"""
    check: Seconds = 60.0
    """seconds one check, or a sample of it, may take; above 60, checks' own deadlines grow alike"""

    def of(self, own: float | None) -> float:
        """The deadline of a check, which may have one of its own."""
        return own * max(1.0, self.check / Deadlines().check) if own else self.check


class Dtypes(Part, frozen=True, kw_only=True):
    """Data types."""

    unsupported: tuple[Text, ...] = ()
    """dtypes the backend does not have"""


class Document(Part, frozen=True, kw_only=True):
    """A backend as its descriptor declares it. Every default suits a backend that torch knows."""

    device_type: Annotated[Text, Meta(extra_json_schema={"not": {"const": "meta"}})]
    """what `torch.device(...).type` says"""
    description: str = ""
    """one line about the backend, for reports"""
    imports: Imports = field(default=Imports(), name="import")
    """what makes the backend available"""
    autoload: bool = False
    """`import torch` loads the backend through its `torch.backends` entry point"""
    device: Setup = Setup()
    """for a backend whose device only exists after a call"""
    env: Environment = field(default_factory=dict)
    """environment of the workers"""
    adversarial_env: Environment = field(default_factory=dict)
    """for `--verify`: environment in which work is scheduled in unusual but valid ways, such as
    `{CHIP_CHAOS: "{seed}"}`; `{seed}` stands for a number"""
    blocking_env: Environment = field(default_factory=dict)
    """environment in which each call waits for the work that it queues, such as
    `{CHIP_LAUNCH_BLOCKING: "1"}`"""
    stacks_env: Environment = field(default_factory=dict)
    """environment in which a late error has the Python stack of the call that queued the work"""
    no_device_env: Environment = field(default_factory=dict)
    """environment in which the machine has no device, such as `{CHIP_VISIBLE_DEVICES: ""}`"""
    start_method: Literal["fork", "spawn"] = "fork"
    """how workers start: `fork` (default) or `spawn`"""
    single_process: bool = False
    """only one process may use the device at a time"""
    launcher: tuple[Value, ...] = ()
    """command put before the Python of a spawned worker"""
    deadlines: Deadlines = Deadlines()
    """when a silent worker is killed"""
    memory_limit_mb: Mebibytes | UnsetType = UNSET
    """limit of the address space of each worker process, in MiB"""
    module: Text | UnsetType = UNSET
    """the device module, usually `torch.<device_type>`"""
    delay: Text | UnsetType = UNSET
    """callable taking milliseconds that keeps the current stream busy"""
    driver: Text | UnsetType = UNSET
    """callable that returns the driver in use, for the report, as a dict"""
    fallback_counts: Text | UnsetType = UNSET
    """callable that returns `{operator: number of CPU fallbacks}`"""
    fallback_reset: Text | UnsetType = UNSET
    """callable that sets those counts to zero"""
    fault: Text | UnsetType = UNSET
    """object that injects faults"""
    backend_meta: Text | UnsetType = UNSET
    """callable taking a tensor that gives it metadata of the backend (`c10::BackendMeta`) that is
    saved with it"""
    process_group: Text | UnsetType = UNSET
    """name of the torch.distributed backend"""
    capabilities: Capabilities = field(default_factory=dict)
    """capabilities declared present (`true`) or absent (`false`); the others are probed"""
    dtypes: Dtypes = Dtypes()
    """data types"""
    tolerances: Tolerances = field(default_factory=dict)
    """dtype to `[rtol, atol]`, in place of the default tolerances"""
    environment_errors: tuple[Pattern, ...] = ()
    """regular expressions: an error that matches is caused by the environment, not by the
    backend"""
    torch: Text | UnsetType = UNSET
    """supported torch versions, such as `">=2.11"`"""
    expectations: Text | UnsetType = UNSET
    """expectations file, relative to the descriptor"""
    workers: Count | UnsetType = UNSET
    """workers that may run at the same time"""
    chunk: Count | UnsetType = UNSET
    """checks a worker runs before a fresh one takes its place"""

    def problems(self) -> Iterator[tuple[Steps, str]]:
        """What is wrong beyond the types."""
        if self.device_type == META:
            yield ("device_type",), f"{META!r} {NO_VALUES}"
        for name in self.capabilities:
            if name not in MEANING:
                known = user_file.nearest(name, MEANING)
                yield ("capabilities", name), f"names an unknown capability '{name}'{known}"
        for index, pattern in enumerate(self.environment_errors):
            if problem := _pattern_problem(pattern):
                yield ("environment_errors", index), problem
        if self.torch and (problem := specifier_error(self.torch)):
            yield ("torch",), f"is no range of versions such as '>=2.11': {problem}"


class Descriptor(Document, frozen=True, kw_only=True):
    """A backend as declared, with its name and the file that declares it."""

    name: str
    file: str | None = None


# The device type of tensors without memory.
META = "meta"
NO_VALUES = "cannot be tested: its device holds no values, so there is nothing to compare"


def load(file: Path, name: str | None = None) -> Descriptor:
    """Read and verify one descriptor file."""
    content = user_file.read(file, DescriptorError)
    if not isinstance(content.yaml.value, dict):
        raise DescriptorError(
            f"{file}:1: expected a map of keys; see `python -m torch_conformance help descriptor`"
        )
    document, problems = user_file.convert(content.yaml.value, Document)
    if document is None:
        raise DescriptorError(
            user_file.listed([f"{content.where(p.path)}: {p.text}" for p in problems])
        )
    keys = msgspec.structs.asdict(document)
    if document.expectations:
        keys["expectations"] = str(file.parent / document.expectations)
    return Descriptor(name=name or file.stem, file=str(file), **keys)


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


def encode(target: Descriptor) -> str:
    """The descriptor as text for another process: `decode` returns an equal one.

    Neither its name nor its file has to be one that the other process could find.
    """
    return msgspec.json.encode(target).decode()


def decode(text: str) -> Descriptor:
    """What `encode` was given."""
    return msgspec.json.decode(text, type=Descriptor)


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


def _pattern_problem(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"has a bad regular expression {pattern!r}: {error}"
    return None
