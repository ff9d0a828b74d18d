# SPDX-License-Identifier: BSD-3-Clause
"""The chapters on random numbers draw with every random operator of the installed torch."""

from __future__ import annotations

import torch

from torch_conformance.checks._random_operators import DRAWS, IMPLICIT

#: Random operators that a backend does not have to offer, by what their names begin with.
NOT_FOR_ALL = {
    "_cudnn": "of cuDNN",
    "miopen": "of MIOpen",
    "_lstm_mps": "of MPS",
    "_scaled_dot_product": "one kernel of attention, chosen by scaled_dot_product_attention",
    "_efficient_attention": "one kernel of attention on CUDA",
    "_flash_attention": "one kernel of attention on CUDA",
    "_fill_mem_eff_dropout_mask": "one kernel of attention on CUDA",
    "_triton": "of Triton",
    "_fused_sdp_choice": "draws nothing: it chooses a kernel of attention",
    "_fused_dropout": "of CUDA, replaced by native_dropout",
    "_nested_tensor": "of nested tensors, draws nothing",
}


def seeded_operators() -> set[str]:
    """The operators that torch itself tags as depending on a seed."""
    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::").partition(".")
        packet = getattr(torch.ops.aten, base, None) if name.startswith("aten::") else None
        operator = getattr(packet, overload or "default", None)
        if operator is not None and torch.Tag.nondeterministic_seeded in operator.tags:
            found.add(base)
    return found


def test_every_random_operator_is_drawn_with() -> None:
    with torch.profiler.profile() as profile:
        for draw in (*DRAWS.values(), *IMPLICIT.values()):
            draw(torch.device("cpu"), None)
    called = {event.key.removeprefix("aten::") for event in profile.key_averages()}
    seeded = seeded_operators()
    assert len(seeded) > 50
    missed = {name for name in seeded - called if not name.startswith(tuple(NOT_FOR_ALL))}
    assert missed == set()
