# SPDX-License-Identifier: BSD-3-Clause
"""Calls operators of the backend with random arguments, and writes a digest of every result.

    python random_calls.py CHECKS FILE

The calls are those of checks of the OpInfo tier, whose ids are the lines of the file CHECKS. Their
arguments are samples of PyTorch's operator database that are changed at random: special values take
the place of numbers, tensors become longer, and get gaps, other strides or offsets. A line of FILE
names a call and the digest of its result, or the type of its exception. Two backends that wrote the
same line gave the same bits. A check makes the same calls whatever other checks there are.
"""

from __future__ import annotations

import hashlib
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_conformance.authoring.check import Check
from torch_conformance.authoring.discovery import OPINFO, import_checks
from torch_conformance.opinfo import layouts, policy
from torch_conformance.opinfo.sample import Sample, tensors
from torch_conformance.opinfo.topic import Topic
from torch_conformance.opinfo.transfer import moved

#: The topics of the OpInfo tier that give results: `error` expects none.
TOPICS = (
    *("forward", "out", "inplace", "noncontiguous", "math_bits"),
    *("foreach", "gradient", "gradgrad"),
)
#: Samples of a check that are used.
SAMPLES = 6
#: The longest tensor that is made, in elements.
LONGEST = 1 << 17
#: Of the random numbers: a call is the same in each process.
SEED = 1
#: How often values are replaced, tensors laid out anew, and samples made long.
SPECIAL, LAID_OUT, LONG = 0.4, 0.4, 0.2
_LENGTHS = (3, 17, 257, 4099)
_LAYOUTS = (layouts.gaps, layouts.transposed, layouts.offset)
_FLOATS = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.0, -1.0, 0.5, 2.5, 1e4, -1e4)

#: Where MKL has one thread, the CPU's writes past the end of its memory for transposed input of
#: 1,285 rows, and the process dies later: https://github.com/pytorch/pytorch/issues/125664.
_UNSAFE = frozenset({"fft.ihfftn"})


def main(checks: Path, file: Path) -> None:
    """Make the calls; the file is complete when the process ends with 0."""
    warnings.simplefilter("ignore")
    device = torch.accelerator.current_accelerator(check_available=True)
    assert device is not None, "there is no device"
    ids = checks.read_text().splitlines()
    files = {OPINFO / f"{_topic_of(id)}.py" for id in ids}
    by_id = {check.id: check for each in files for check in import_checks(each)}
    with file.open("w") as lines:
        for id in ids:
            for number, result in enumerate(_results(by_id[id], device)):
                # At once: the process may not survive the next call.
                print(f"{id}#{number}", result, file=lines, flush=True)


def makes_calls(id: str) -> bool:
    """Whether the calls of this check can be made here."""
    return id.startswith("opinfo/") and _topic_of(id) in TOPICS


def _topic_of(id: str) -> str:
    return id.partition("/")[2].partition(":")[0]


def _results(check: Check, device: torch.device) -> Iterator[str]:
    """What each call of a check gives; nothing where the operator promises no values."""
    topic = check.body
    assert isinstance(topic, Topic)
    if topic.op.name in policy.UNINITIALISED or topic.op.name in _UNSAFE:
        return
    dtype = getattr(torch, dict(check.arguments)["dtype"])
    draw = random.Random(f"{SEED} {check.id}")
    samples = topic.samples(dtype, check.id, SEED)
    for sample in draw.sample(samples, min(SAMPLES, len(samples))):
        there = moved(varied(sample, draw), device)
        torch.manual_seed(draw.randrange(1 << 30))
        yield _outcome(topic, there)


def _outcome(topic: Topic, sample: Sample) -> str:
    try:
        found = digest(topic.act(sample).values)
        torch.accelerator.synchronize()
    except Exception as error:  # What is refused, and how, is a result, too.
        return type(error).__name__
    return found


def digest(values: Any) -> str:
    """A hash of the bits of all tensors in nested values, of their shapes and types."""
    found = hashlib.blake2b(digest_size=8)
    for tensor in tensors(values):
        plain = tensor.detach().cpu().resolve_conj().resolve_neg()
        plain = plain if plain.layout == torch.strided else plain.to_dense()
        found.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
        found.update(plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def varied(sample: Sample, draw: random.Random) -> Sample:
    """The sample with other values, lengths and strides, where its arguments have room for them."""
    length = draw.choice(_LENGTHS) if draw.random() < LONG else 1
    if not _can_be_long(sample, length):
        length = 1

    def change(tensor: Tensor) -> Tensor:
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
            return tensor
        plain = tensor.detach()
        if length > 1:
            plain = plain.repeat(length, *[1] * (plain.dim() - 1))
        if draw.random() < SPECIAL and (plain.is_floating_point() or plain.is_complex()):
            plain = _with_special_values(plain, draw)
        if draw.random() < LAID_OUT:
            plain = layouts.dense_only(draw.choice(_LAYOUTS))(plain)
        return plain.requires_grad_(tensor.requires_grad)

    return sample.map(change)


def _can_be_long(sample: Sample, length: int) -> bool:
    """Whether every tensor has the same first dimension, so that all can be repeated along it."""
    made = sample.tensors()
    first = {tensor.shape[:1] for tensor in made}
    return (
        len(first) == 1
        and first != {()}
        and max(tensor.numel() for tensor in made) * length <= LONGEST
    )


def _with_special_values(tensor: Tensor, draw: random.Random) -> Tensor:
    info = torch.finfo(tensor.dtype)
    values = (*_FLOATS, info.max, info.min, info.tiny, info.eps, info.smallest_normal / 4)
    changed = tensor.clone(memory_format=torch.contiguous_format)
    flat = changed.reshape(-1)
    for _ in range(min(3, flat.numel())):
        flat[draw.randrange(flat.numel())] = draw.choice(values)
    return changed


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
