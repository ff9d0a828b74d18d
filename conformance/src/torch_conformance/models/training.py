# SPDX-License-Identifier: BSD-3-Clause
"""Training runs: the same steps on any device, and what is kept of them for the comparison.

Nothing here waits for the device or runs operators for the comparison's sake: losses and gradients
are kept where they are, and copied to the CPU when the run is over.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from torch_conformance.models.zoo import Batch, Model

#: Small enough that no gradient overflows float16, so that only planted overflows are seen.
INITIAL_SCALE = 2.0**7
GROWTH_INTERVAL = 2

#: Larger than by default: a gradient that is zero but for rounding, such as that of a bias before a
#: norm, would otherwise be scaled up to a full step of noise.
_EPS = 1e-4

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adamw": partial(torch.optim.AdamW, lr=2e-3, eps=_EPS, weight_decay=0.1),
}


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    optimizer: str = "sgd"
    autocast: torch.dtype | None = None
    scaled: bool = False
    overflow_at: int | None = None
    """The step whose loss is made infinite, for the scaler to skip it."""
    micro_batches: int = 1
    clip: float | None = None


@dataclass
class Course:
    """What a run leaves: a loss for each step, the first gradients, the last weights."""

    losses: list[Tensor] = field(default_factory=list)
    gradients: dict[str, Tensor] = field(default_factory=dict)
    norms: list[Tensor] = field(default_factory=list)
    """Total norms of the gradients before they were clipped."""
    scales: list[float] = field(default_factory=list)
    state: dict[str, Tensor] = field(default_factory=dict)


class Trainer:
    """A module on its device, its optimizer, and the steps they have made."""

    def __init__(
        self, model: Model, module: nn.Module, device: torch.device, recipe: Recipe
    ) -> None:
        self.model, self.module, self.device, self.recipe = model, module, device, recipe
        self.optimizer = OPTIMIZERS[recipe.optimizer](module.parameters())
        self.scaler = torch.amp.GradScaler(
            device.type,
            init_scale=INITIAL_SCALE,
            growth_interval=GROWTH_INTERVAL,
            enabled=recipe.scaled,
        )
        self.steps = 0

    def train(self, batches: Sequence[Batch]) -> Course:
        """Make one step with every `micro_batches` batches (of the CPU)."""
        course, count = Course(), self.recipe.micro_batches
        self.module.train()
        for first in range(0, len(batches), count):
            self._step(batches[first : first + count], course)
        course.state = dict(self.module.state_dict())
        return course

    def _step(self, batches: Sequence[Batch], course: Course) -> None:
        recipe = self.recipe
        self.optimizer.zero_grad(set_to_none=True)
        losses = [self._backward(batch) / len(batches) for batch in batches]
        course.losses.append(sum(losses[1:], start=losses[0]))
        self.scaler.unscale_(self.optimizer)
        if recipe.clip is not None:
            norm = nn.utils.clip_grad_norm_(self.module.parameters(), recipe.clip)
            course.norms.append(norm)
        if not course.gradients:
            # Kept, not copied: the next step makes new ones.
            course.gradients = {n: p.grad for n, p in _with_gradients(self.module)}
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if recipe.scaled:
            course.scales.append(self.scaler.get_scale())
        self.steps += 1

    def _backward(self, batch: Batch) -> Tensor:
        recipe = self.recipe
        moved = tuple(tensor.to(self.device) for tensor in batch)
        with autocast(self.device, recipe.autocast):
            loss = self.model.loss(self.module, moved)
        weighted = loss / recipe.micro_batches if recipe.micro_batches > 1 else loss
        if self.steps == recipe.overflow_at:
            weighted = weighted * math.inf
        self.scaler.scale(weighted).backward()
        return loss.detach()

    def save(self) -> bytes:
        """A checkpoint: weights, buffers and the optimizer's state."""
        file = io.BytesIO()
        parts = {"module": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(parts, file)
        return file.getvalue()

    def load(self, data: bytes) -> None:
        """Load a checkpoint that was written on any device."""
        parts = torch.load(io.BytesIO(data), map_location=self.device, weights_only=True)
        self.module.load_state_dict(parts["module"])
        self.optimizer.load_state_dict(parts["optimizer"])


def build(model: Model, seed: int) -> nn.Module:
    """The model on the CPU, with the same weights for the same seed."""
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        return model.make()


def place(module: nn.Module, device: torch.device) -> nn.Module:
    """A copy of the module, moved to the device."""
    return copy.deepcopy(module).to(device)


def autocast(
    device: torch.device, dtype: torch.dtype | None
) -> contextlib.AbstractContextManager[Any]:
    """Autocast to `dtype`, or nothing."""
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def recompute(module: nn.Module, block: str, *, reentrant: bool) -> None:
    """Let the blocks of the module (parts of a class of this name) recompute in backward."""
    for part in module.modules():
        if type(part).__name__ == block:
            part.forward = partial(checkpoint, part.forward, use_reentrant=reentrant)


def linear_dtypes(module: nn.Module, outputs: set[torch.dtype]) -> None:
    """From now on, note the dtype of everything a linear layer returns."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.register_forward_hook(lambda _m, _a, result: outputs.add(result.dtype))


def _with_gradients(module: nn.Module) -> Iterator[tuple[str, Any]]:
    return ((name, p) for name, p in module.named_parameters() if p.grad is not None)
