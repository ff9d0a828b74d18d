# SPDX-License-Identifier: BSD-3-Clause
"""Compiling functions so that what is generated now is what is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch


@contextmanager
def without_caches(**options: Any) -> Iterator[None]:
    """Take no graph from inductor's caches, neither forward nor backward; `options` are inductor's.

    Otherwise the backward graph would be lowered in the first backward pass, behind this context,
    and in a thread that does not see it.
    """
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    with ExitStack() as stack:
        stack.enter_context(inductor.patch(force_disable_caches=True, **options))
        if hasattr(functorch, "force_non_lazy_backward_lowering"):
            stack.enter_context(functorch.patch(force_non_lazy_backward_lowering=True))
        yield


def freshly_compiled(
    function: Callable[..., Any], *, fallback_random: bool = False, **options: Any
) -> Callable[..., Any]:
    """The function, compiled at its first call; nothing that earlier compilations left is used.

    `fallback_random`: random numbers are those of eager code. `options` are torch.compile's.
    """
    torch._dynamo.reset()
    compiled = torch.compile(function, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        with without_caches(fallback_random=fallback_random):
            return compiled(*args, **kwargs)

    return call
