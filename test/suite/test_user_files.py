# SPDX-License-Identifier: BSD-3-Clause
"""A descriptor or expectations file that is wrong: file, line and key; the schemas agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from msgspec.structs import fields

from torch_conformance import schemas
from torch_conformance.expectations import Expectations, ExpectationsError
from torch_conformance.expectations.document import ENTRIES
from torch_conformance.expectations.entry import LISTS
from torch_conformance.expectations.file import read
from torch_conformance.spec import descriptor
from torch_conformance.spec.capabilities import MEANING
from torch_conformance.spec.descriptor import Deadlines, DescriptorError
from torch_conformance.spec.user_file import MAX_BYTES, MAX_PROBLEMS

#: Every key of a descriptor, with a good value.
DESCRIPTOR: dict[str, Any] = {
    "device_type": "chip",
    "description": "d",
    "import": {"before_torch": ["a"], "after_torch": ["b", "c"]},
    "autoload": True,
    "device": {"setup": "m:f", "teardown": "m:g"},
    "env": {"A": "b"},
    "adversarial_env": {"B": "{seed}"},
    "blocking_env": {"C": "1"},
    "stacks_env": {"D": "1"},
    "no_device_env": {"E": ""},
    "start_method": "spawn",
    "single_process": True,
    "launcher": ["run", ""],
    "deadlines": {"startup": 9, "check": 2.5},
    "memory_limit_mb": 10,
    "module": "torch.chip",
    "delay": "m.d",
    "driver": "m.i",
    "fallback_counts": "m.c",
    "fallback_reset": "m.r",
    "fault": "m.x",
    "backend_meta": "m.b",
    "process_group": "pg",
    "capabilities": {"streams": False},
    "dtypes": {"unsupported": ["float64"]},
    "tolerances": {"float32": [1.0e-3, 0]},
    "environment_errors": ["no licen[cs]e"],
    "torch": ">=2.11",
    "expectations": "e.yaml",
    "workers": 3,
    "chunk": 7,
}
TEXTS = (
    *("device_type", "module", "delay", "driver", "fallback_counts", "fallback_reset", "fault"),
    *("backend_meta", "process_group", "torch", "expectations"),
)
NUMBER, LONG = 10**18, "x" * 500
WRONG_TEXT: tuple[Any, ...] = (3, True, None, "", ["a"], {"a": "b"})
WRONG_FLAG: tuple[Any, ...] = (3, None, "", "yes", [], {})
WRONG_MAP: tuple[Any, ...] = (3, None, "", "a", ["a"], {"x": 1})
#: Keys of a descriptor and wrong values of each.
WRONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(TEXTS, WRONG_TEXT),
    "device.setup": WRONG_TEXT,
    "device.teardown": WRONG_TEXT,
    "description": (3, None, ["a"], {}),
    "autoload": WRONG_FLAG,
    "single_process": WRONG_FLAG,
    "start_method": (3, None, "", LONG, "thread", ["fork"], {}),
    **dict.fromkeys(("import", "device", "deadlines", "dtypes"), WRONG_MAP),
    **dict.fromkeys(
        ("import.before_torch", "import.after_torch", "dtypes.unsupported"),
        (3, None, "", "a", {}, [""], [3], [None], [["a"]]),
    ),
    "launcher": (3, None, "", "run", {}, [3], [None], ["\0"]),
    **dict.fromkeys(
        ("env", "adversarial_env", "blocking_env", "stacks_env", "no_device_env"),
        (3, None, "a", ["a"], {"A": 1}, {"A": None}, {"A": "\0"}, {"A=": "b"}, {"": "b"}),
    ),
    **dict.fromkeys(
        ("deadlines.startup", "deadlines.check"), (0, -1, NUMBER, "9", True, None, [], {})
    ),
    **dict.fromkeys(
        ("workers", "chunk", "memory_limit_mb"), (0, -1, 1.5, NUMBER, "3", True, None, [], {})
    ),
    "capabilities": (3, None, "", ["streams"], {"streams": "yes"}, {"streams": None}, {"": True}),
    "tolerances": (
        *(3, None, "", [], {"float32": 1}, {"float32": [1]}, {"float32": [1, 2, 3]}),
        *({"float32": [1, -1]}, {"float32": [1, "2"]}, {"float32": [1, None]}, {"float32": None}),
    ),
    "environment_errors": (3, None, "", "a", {}, [""], [3], [None]),
}
#: What a JSON Schema cannot say or a validator does not look at.
BEYOND_THE_SCHEMA = {
    "environment_errors": (["("], ["a{99999999999}"]),
    "torch": ("two", "2.11", LONG),
}
ENTRY: dict[str, dict[str, Any]] = {
    kind: {
        "id": "a/b",
        "reason": "r",
        "link": "l",
        **({"status": "fail"} if kind == "xfail" else {}),
        **({"expires": "2027-01-31"} if kind != "unsupported" else {}),
    }
    for kind in LISTS
}
WRONG_ENTRY: dict[str, tuple[Any, ...]] = {
    "id": (*(value for value in WRONG_TEXT if value != ["a"]), "a*b", "**", []),
    "reason": WRONG_TEXT,
    "link": WRONG_TEXT,
    "status": (3, None, "", "bad", "pass", LONG, [], {}),
    "expires": (3, True, None, [], {}),
}
WRONG_DATES = ("", "soon", "2027-13-01", "2027-02-30", "2027-01-01T10:00:00", "20270131")


def each(table: dict[str, tuple[Any, ...]]) -> list[tuple[str, Any]]:
    """A key and a wrong value of it, for each."""
    return [(key, value) for key, values in table.items() for value in values]


def put(value: Any, path: list[str], new: Any) -> Any:
    """A copy of a document in which something else is at the path."""
    return {**value, path[0]: put(value[path[0]], path[1:], new)} if path else new


def written(value: Any) -> str:
    """YAML in block style, so that each key has a line; long texts stay in one."""
    return yaml.safe_dump(value, sort_keys=False, width=10_000)


def line_of(text: str, path: list[str]) -> int:
    """The line of a key, by its indentation."""
    lines, line = text.splitlines(), 0
    for depth, key in enumerate(path):
        line = next(
            n for n in range(line, len(lines)) if re.match(f"{'  ' * depth}{key}:", lines[n])
        )
    return line + 1


def refused(file: Path, text: str | bytes) -> str:
    """What is said of a wrong descriptor."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DescriptorError) as error:
        descriptor.load(file)
    return str(error.value)


def accepts(schema: Path, value: Any) -> bool:
    """What another library says of a document by the committed schema."""
    return bool(jsonschema.Draft202012Validator(json.loads(schema.read_text())).is_valid(value))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the file is put."""
    return tmp_path / "chip.yaml"


def test_every_key_of_the_descriptor_can_be_read(file: Path) -> None:
    file.write_text(written(DESCRIPTOR))
    chip = descriptor.load(file)
    assert list(DESCRIPTOR) == [field.encode_name for field in fields(descriptor.Document)]
    assert (chip.name, chip.device.setup) == ("chip", "m:f")
    assert chip.imports.after_torch == ("b", "c")
    assert chip.deadlines.check == 2.5
    assert chip.tolerances == {"float32": (1e-3, 0)}
    assert chip.expectations == str(file.parent / "e.yaml")
    assert accepts(schemas.DESCRIPTOR, DESCRIPTOR)


def test_the_table_of_wrong_values_has_every_key() -> None:
    assert {key.partition(".")[0] for key in WRONG} == set(DESCRIPTOR)
    assert set(WRONG_ENTRY) == {f.name for kind in ENTRIES.values() for f in fields(kind)}


@pytest.mark.parametrize(("key", "value"), each(WRONG))
def test_a_wrong_value_of_a_descriptor_is_named_with_file_line_and_key(
    file: Path, key: str, value: Any
) -> None:
    path = key.split(".")
    content = put(DESCRIPTOR, path, value)
    text = written(content)
    said = refused(file, text)
    assert said.startswith(f"{file}:")
    line = int(said.removeprefix(f"{file}:").partition(":")[0])
    first = line_of(text, path)
    assert first <= line <= first + len(written(value).splitlines())
    assert key in said or "x" in value
    assert len(said) < len(str(file)) + 800
    assert said.isprintable()
    assert not accepts(schemas.DESCRIPTOR, content)


@pytest.mark.parametrize(("key", "value"), each(BEYOND_THE_SCHEMA))
def test_what_types_cannot_say_is_named_too(file: Path, key: str, value: Any) -> None:
    text = written({**DESCRIPTOR, key: value})
    assert re.match(rf"{file}:\d+: key '{key}", refused(file, text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("device_type: x\nstart_metod: fork\n", 2, ("start_metod", "did you mean 'start_method'")),
        ("device_type: x\nimport:\n  after: [m]\n", 3, ("'import.after'", "'after_torch'")),
        ("device_type: 3\n", 1, ("'device_type' must be a string, not 3",)),
        ("device_type: x\nmodule:\n", 2, ("'module' has no value; it must be a string",)),
        (
            "device_type: x\nworkers: many\n",
            2,
            ("'workers' must be a whole number of at least 1 and at most",),
        ),
        ("device_type: x\n\nautoload: 'yes'\n", 3, ("autoload", "true or false, not 'yes'")),
        ("device_type: x\nstart_method: thread\n", 2, ("start_method", "one of fork, spawn")),
        ("device_type: x\ncapabilities:\n  stream: true\n", 3, ("'stream'", "'streams'")),
        ("device_type: x\ncapabilities: {zzz: true}\n", 2, ("known are: accelerator, ",)),
        ("device_type: x\nenvironment_errors: ['(']\n", 2, ("environment_errors", "expression")),
        ("device_type: x\ntolerances: {float32: 1}\n", 2, ("'tolerances.float32'", "[rtol, atol]")),
        ("device_type: x\nimport: [m]\n", 2, ("a map with the keys before_torch, after_torch",)),
        ("device_type: x\nenv: {A: {B: c}}\n", 2, ("'env.A' must be a string",)),
        ("device_type: x\ntorch: 2.11\n", 2, ("'torch' must be a string, not 2.11",)),
        ("device_type: x\ntorch: two\n", 2, ("'torch' is no range of versions",)),
        ("device_type: meta\n", 1, ("holds no values",)),
        ("description: x\n", 1, ("'device_type' is missing",)),
        ("- device_type: x\n", 1, ("expected a map of keys; see",)),
        ("", 1, ("expected a map of keys; see",)),
    ],
)
def test_the_message_of_a_descriptor_says_what_to_do(
    file: Path, text: str, line: int, words: tuple[str, ...]
) -> None:
    said = refused(file, text)
    assert said.startswith(f"{file}:{line}: ")
    for word in words:
        assert word in said


def test_all_problems_of_a_descriptor_are_listed(file: Path) -> None:
    said = refused(file, "workers: 0\nimprot: {}\nautoload: 1\ndevice:\n  setup: 1\n").splitlines()
    assert [line.removeprefix(f"{file}:")[:2] for line in said] == ["1:", "2:", "3:", "5:", "1:"]
    assert "device_type" in said[-1]


HOSTILE: dict[str, tuple[str | bytes, int, str]] = {
    "an alias": ("env: &a {A: b}\nadversarial_env: *a\n", 1, "anchors and aliases"),
    "an anchored text": ("device_type: x\nmodule: &a m\n", 2, "anchors and aliases"),
    "aliases that multiply": (
        "a: &a [x]\n" + "".join(f"{k}: &{k} [*{chr(ord(k) - 1)}, *a]\n" for k in "bcdef"),
        1,
        "anchors and aliases",
    ),
    "a merge key": ("device_type: x\n<<: {workers: 1}\n", 2, "unknown key '<<'"),
    "a tag": ("device_type: !!python/name:os.system\n", 1, "tags are not allowed"),
    "a tag that does not fit": ("device_type: x\nchunk: !!int z\n", 2, "tags are not allowed"),
    "deep lists": ("[" * 100_000, 1, "nested deeper"),
    "deep maps": ("device_type: x\nenv: " + "{a: " * 5000, 2, "nested deeper"),
    "deep blocks": ("".join(f"{' ' * n}a:\n" for n in range(200)), 24, "nested deeper"),
    "not UTF-8": (b"device_type: x\nmodule: \xff\n", 2, "not UTF-8"),
    "half a character": ('device_type: x\nmodule: "\\uD800"\n', 2, "half a character"),
    "half a character in a key": ('device_type: x\n"\\uD800": 1\n', 2, "half a character"),
    "no character": ('device_type: "\\UFFFFFFFF"\n', 1, ""),
    "a control character": ("device_type: \x07\n", 1, "special characters"),
    "a date that is none": ("device_type: x\nworkers: 2027-13-01\n", 2, "not '2027-13-01'"),
    "a number that is none": ("device_type: x\nworkers: 0x_\n", 2, "'0x_' is not a number"),
    "a long number": (f"device_type: x\nworkers: {'9' * 30}\n", 2, "64 bits"),
    "a very long number": (f"device_type: x\nworkers: {'9' * 9000}\n", 2, "is not a number"),
    "infinity": ("device_type: x\ntolerances: {float32: [.inf, 0]}\n", 2, "inf is not"),
    "no number": ("device_type: x\ntolerances: {float32: [.nan, 0]}\n", 2, "nan is not"),
    "a key twice": ("device_type: x\ndevice_type: y\n", 2, "'device_type' stands twice"),
    "a key twice inside": ("device_type: x\nenv:\n  A: b\n  A: c\n", 4, "'A' stands twice"),
    "a number as key": ("device_type: x\nenv: {1: a}\n", 2, "a key is not text"),
    "null as key": ("device_type: x\n~: a\n", 2, "a key is not text"),
    "a list as key": ("device_type: x\n? [a]\n: b\n", 2, "a key is not text"),
    "a key like a message": ("device_type: x\n'x` - at `$': 1\n", 1, "unknown key"),
    "a key like a path": ("device_type: x\nenv: {'`$.a`': 1}\n", 2, "'env.`$.a`' must be"),
    "two documents": ("device_type: x\n---\ndevice_type: y\n", 2, "document"),
    "no end": ("device_type: [\n", 2, ""),
    "too much": ("#" * (MAX_BYTES + 1), 0, "larger than 4 MiB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_yaml_is_one_clear_error(file: Path, case: str) -> None:
    text, line, words = HOSTILE[case]
    said = refused(file, text)
    assert said.startswith(f"{file}:{line}: " if line else f"{file}: ")
    assert words in said
    assert said.isprintable()


def test_a_file_that_is_no_file_is_one_clear_error(tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "gone.yaml", tmp_path / "a\0b.yaml"):
        with pytest.raises(DescriptorError) as error:
            descriptor.load(file)
        assert str(error.value).startswith(f"{file}: ")


def test_a_date_is_text_where_text_is_expected(file: Path) -> None:
    file.write_text("device_type: x\ndescription: 2027-01-31\n")
    assert descriptor.load(file).description == "2027-01-31"


def test_a_slow_device_has_more_time_for_checks_with_deadlines_of_their_own() -> None:
    slow, usual, quick = (Deadlines(check=seconds) for seconds in (600, 60, 6))
    assert [each.of(None) for each in (slow, usual, quick)] == [600, 60, 6]
    assert [each.of(180) for each in (slow, usual, quick)] == [1800, 180, 180]


def test_the_schema_of_descriptors_lists_the_capabilities_for_editors() -> None:
    document = json.loads(schemas.DESCRIPTOR.read_text())["$defs"]["Document"]
    described = document["properties"]["capabilities"]["properties"]
    assert {name: entry["description"] for name, entry in described.items()} == MEANING
    assert all("description" in entry for entry in document["properties"].values())


@pytest.mark.parametrize("name", ["cpu", "puone", "puone_driver"])
def test_the_suites_own_descriptors_are_as_the_schema_says(name: str) -> None:
    text = (descriptor.BUILT_IN / f"{name}.yaml").read_text()
    assert accepts(schemas.DESCRIPTOR, yaml.safe_load(text))


def test_good_expectations_are_as_the_schema_says(file: Path) -> None:
    content = {kind: [entry] for kind, entry in ENTRY.items()}
    file.write_text(written(content))
    assert len(Expectations.load(file).entries) == 3
    file.write_text(written(content).replace("'2027-01-31'", "2027-01-31"))
    assert len(Expectations.load(file).entries) == 3
    assert accepts(schemas.EXPECTATIONS, content)


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize(
    ("key", "value"), [*each(WRONG_ENTRY), *(("expires", date) for date in WRONG_DATES)]
)
def test_a_wrong_value_of_an_entry_is_named_with_file_line_and_key(
    file: Path, kind: str, key: str, value: Any
) -> None:
    content = {kind: [ENTRY[kind], {**ENTRY[kind], key: value}]}
    text = written(content)
    file.write_text(text)
    (said,) = read(file).problems
    found = [n for n, line in enumerate(text.splitlines(), 1) if line[2:].startswith(f"{key}:")]
    assert said.startswith(f"{file}:{found[-1]}: ")
    assert f"key '{key}'" in said
    assert said.isprintable()
    if value not in WRONG_DATES:  # `format` is a hint to editors only.
        assert not accepts(schemas.EXPECTATIONS, content)


def test_all_problems_of_expectations_are_listed(file: Path) -> None:
    file.write_text(
        "skip: []\n"
        "flaky:\n"
        "- {id: a/b, reason: r, link: l}\n"
        "- id: 3\n"
        "  reson: r\n"
        "  link: ''\n"
        "xfail: {}\n"
    )
    content = read(file)
    assert [entry.id for entry in content.entries] == ["a/b"]
    assert [line.removeprefix(f"{file}:") for line in content.problems] == [
        "1: 'skip' is not one of the lists; known are: unsupported, xfail, flaky",
        "4: key 'id' must be a string or a list of strings, not 3",
        "5: unknown key 'reson'; did you mean 'reason'?",
        "6: key 'link' must not be empty; it must be a string",
        "4: key 'reason' is missing",
        "7: 'xfail' must be a list of entries, each beginning with '- '",
    ]
    with pytest.raises(ExpectationsError) as error:
        Expectations.load(file)
    assert str(error.value).splitlines() == content.problems


def test_a_wrong_id_of_several_is_named_with_its_place(file: Path) -> None:
    rest = "  reason: r\n  link: l\n"
    file.write_text(
        f"unsupported:\n- id:\n  - a/b\n  - c*d\n{rest}- id: [a/b, 3]\n{rest}- id: []\n{rest}"
    )
    assert [line.removeprefix(f"{file}:") for line in read(file).problems] == [
        "4: key 'id[1]' is 'c*d': '*' is only allowed at the end of a check id pattern",
        "7: key 'id[1]' must be a string, not 3",
        "10: key 'id' must be a string or a list of strings, not []",
    ]


def test_of_very_many_problems_the_first_are_listed(file: Path) -> None:
    file.write_text("flaky:\n" + "- {id: a/b, link: l}\n" * 100)
    with pytest.raises(ExpectationsError) as error:
        Expectations.load(file)
    lines = str(error.value).splitlines()
    assert (len(lines), lines[-1]) == (MAX_PROBLEMS + 1, "... and more")
    assert len(read(file).problems) == 100


@pytest.mark.parametrize("text", ["".join(f"k{n}: 1\n" for n in range(2000)), "capabilities: {%s}"])
def test_very_many_wrong_keys_are_one_short_message(file: Path, text: str) -> None:
    names = ", ".join(f"k{n}: true" for n in range(2000))
    said = refused(file, text.replace("%s", names) + "\ndevice_type: x\n")
    assert len(said.splitlines()) == MAX_PROBLEMS + 1
