# SPDX-License-Identifier: BSD-3-Clause
"""Tags of tensors, the example of c10::BackendMeta: who has them, and how they are serialized."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreter import Python
from torch import Tensor

import torch_puone as puone

TAGS = frozenset({"calibrated", "two words", "ключ"})


def tagged(*tags: str) -> Tensor:
    """A tensor with these tags, or with TAGS."""
    x = torch.arange(4.0).to("puone")
    puone.set_tensor_tags(x, tags or TAGS)
    return x


def tags_of(x: Tensor) -> frozenset[str]:
    """The tags of a tensor."""
    found: frozenset[str] = puone.get_tensor_tags(x)
    return found


def again(value: Any, location: Any = None, **options: Any) -> Any:
    """What torch.load gives for what torch.save made of `value`."""
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return torch.load(buffer, map_location=location)


def test_tags_are_set_replaced_and_removed() -> None:
    x = torch.ones(2, device="puone")
    assert tags_of(x) == frozenset()
    puone.set_tensor_tags(x, ["a", "b", "a"])
    assert tags_of(x) == {"a", "b"}
    puone.set_tensor_tags(x, {"c"})
    assert tags_of(x) == {"c"}
    puone.set_tensor_tags(x, ())
    assert tags_of(x) == frozenset()
    assert torch._utils.get_tensor_metadata(x) == {}


def test_one_string_is_refused() -> None:
    with pytest.raises(TypeError, match="not the one string 'ab'"):
        puone.set_tensor_tags(torch.ones(1, device="puone"), "ab")


@pytest.mark.parametrize("wrong", [b"\xff", 1, None])
def test_a_tag_that_is_no_string_is_refused(wrong: object) -> None:
    x = torch.ones(1, device="puone")
    with pytest.raises(TypeError, match="a tag must be a string"):
        puone.set_tensor_tags(x, ["a", wrong])  # type: ignore[list-item]  # on purpose
    assert tags_of(x) == frozenset()


def test_tensors_of_other_devices_have_no_tags() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"only tensors of the device have tags.*cpu"):
        puone.set_tensor_tags(x, {"a"})
    assert tags_of(x) == frozenset()


def _assigned(x: Tensor) -> Tensor:
    other = torch.zeros(4, device="puone")
    other.data = x
    return other


SAME: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "assigned_data": _assigned,
    "parameter": torch.nn.Parameter,
    "buffer": torch.nn.Buffer,
    "shallow_copy": copy.copy,
}


@pytest.mark.parametrize("how", SAME)
def test_the_same_tensor_in_another_object_has_the_tags(how: str) -> None:
    x = tagged()
    made = SAME[how](x)
    assert tags_of(made) == TAGS
    puone.set_tensor_tags(made, {"new"})
    assert tags_of(x) == (TAGS if made is not x else {"new"})


NEW: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda x: x.view(2, 2),
    "clone": lambda x: x.clone(),
    "deepcopy": copy.deepcopy,
    "device": lambda x: x.to("puone:1"),
    "result": lambda x: x + 1,
    "copy": lambda x: torch.empty_like(x).copy_(x),
}


@pytest.mark.parametrize("how", NEW)
def test_a_new_tensor_has_no_tags(how: str) -> None:
    assert tags_of(NEW[how](tagged())) == frozenset()


@pytest.mark.parametrize(
    "options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"]
)
@pytest.mark.parametrize("location", [None, "puone:1", {"puone:0": "puone:1"}])
def test_tags_are_saved_and_loaded(options: dict[str, Any], location: Any) -> None:
    saved = {"a": tagged("a"), "b": tagged(), "plain": torch.ones(2, device="puone")}
    made = again(saved, location, **options)
    assert [tags_of(made[key]) for key in ("a", "b", "plain")] == [{"a"}, TAGS, frozenset()]
    assert made["a"].device == torch.device("puone", 0 if location is None else 1)
    assert made["a"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_tags_are_pickled_and_stay_with_parameters() -> None:
    x = torch.nn.Parameter(tagged())
    for made in (pickle.loads(pickle.dumps(x)), again(x)):
        assert isinstance(made, torch.nn.Parameter)
        assert tags_of(made) == TAGS


def test_state_dicts_have_tags_and_loading_them_copies_values_only() -> None:
    source, target = (torch.nn.Linear(2, 2).to("puone") for _ in range(2))
    puone.set_tensor_tags(source.weight, TAGS)
    state = again(source.state_dict())
    assert tags_of(state["weight"]) == TAGS
    assert tags_of(state["bias"]) == frozenset()
    target.load_state_dict(state)
    assert tags_of(target.weight) == frozenset()
    target.load_state_dict(state, assign=True)
    assert tags_of(target.weight) == TAGS


def test_the_bits_of_torch_itself_stay() -> None:
    x = torch.ones(2, dtype=torch.complex64).to("puone").conj()
    puone.set_tensor_tags(x, {"conj", "neg"})
    made = again(x)
    assert made.is_conj()
    assert not made.is_neg()
    assert tags_of(made) == {"conj", "neg"}


def test_scripted_modules_keep_tags() -> None:
    # torch.jit, and torch::save in C++, call the same hooks through another pickler.
    class Tagged(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", tagged())

        def forward(self, x: Tensor) -> Tensor:
            return x

    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Tagged()), buffer)
    buffer.seek(0)
    assert tags_of(torch.jit.load(buffer).kept) == TAGS


@pytest.mark.parametrize("location", ["cpu", "meta"])
def test_other_devices_ignore_tags(location: str) -> None:
    made = again(tagged(), location)
    assert made.device.type == location
    assert torch._utils.get_tensor_metadata(made) == {}


def test_files_load_without_the_backend(tmp_path: Path, python: Python) -> None:
    file = tmp_path / "tagged.pt"
    torch.save(tagged(), file)
    code = f"import torch\nprint(torch.load({str(file)!r}, map_location='cpu').tolist())"
    done = python(code, autoload=False)
    assert done.stdout == "[0.0, 1.0, 2.0, 3.0]\n", done.stderr
