# SPDX-License-Identifier: BSD-3-Clause
"""Compile cases for puone and compare with eager: `python compiled.py OUTPUT CASE...`.

Writes a JSON object to OUTPUT: of each case "" or what is wrong with it, and under "kernels" the
sources of all kernels.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config
from cases import CASES, STATIC
from torch.utils._pytree import tree_leaves, tree_map

import torch_puone  # noqa: F401 - registers the device
from torch_puone._inductor import runtime

_SOURCES: list[str] = []
_kernel = runtime.kernel


def _recording(name: str, source: str, *args: Any, **kwargs: Any) -> Any:
    _SOURCES.append(source)
    return _kernel(name, source, *args, **kwargs)


def _on_device(value: Any) -> Any:
    """Views stay views; numbers stay on the CPU."""
    if not isinstance(value, torch.Tensor) or (value.dim() == 0 and value._base is None):
        return value
    base = value if value._base is None else value._base
    there = base.to("puone")
    return there.as_strided(value.shape, value.stride(), value.storage_offset())


def verdict(name: str) -> str:
    function, arguments = CASES[name]

    def results(call: Callable[..., Any]) -> list[Any]:
        """And the arguments, which may be changed."""
        torch.manual_seed(0)
        given = tree_map(_on_device, arguments())
        return tree_leaves((call(*given), given))

    try:
        expected = results(function)
        # sizes that the code knows, and sizes that it is given
        for dynamic in (False,) if name in STATIC else (False, True):
            torch._dynamo.reset()
            compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
            for _ in range(2):  # a kernel may not depend on what its output had before
                actual = results(compiled)
                for one, other in zip(actual, expected, strict=True):
                    assert one.device == other.device and one.stride() == other.stride()
                    torch.testing.assert_close(one.cpu(), other.cpu(), equal_nan=True)
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    runtime.kernel = _recording
    # As eager does, and not only where a value is stored.
    torch._inductor.config.emulate_precision_casts = True
    output, *names = sys.argv[1:]
    result = {"cases": {name: verdict(name) for name in names or CASES}, "kernels": _SOURCES}
    Path(output).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
