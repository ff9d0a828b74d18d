# SPDX-License-Identifier: BSD-3-Clause
"""Whole models: their outputs, and several steps of training, against the same steps on the CPU."""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import cache

import torch

# The first step of an optimizer imports it: better once here than in every worker.
import torch._dynamo
from torch import nn

from torch_conformance.authoring.api import Device, check, deterministic
from torch_conformance.models import tolerance
from torch_conformance.models.training import (
    GROWTH_INTERVAL,
    INITIAL_SCALE,
    Course,
    Recipe,
    Trainer,
    build,
    linear_dtypes,
    place,
    recompute,
)
from torch_conformance.models.zoo import INSTALL, MODELS, Batch

STEPS = 4
CPU = torch.device("cpu")
SGD, ADAMW = Recipe("sgd"), Recipe("adamw")

#: One of each kind, for what does not depend on the architecture alone.
MIXED = ("mlp", "resnet", "lstm", "vit", "dlrm", "bert_sdpa", "gpt2_sdpa", "llama_eager")
SOME = ("mlp", "resnet", "lstm", "gpt2_sdpa")
GENERATIVE = tuple(name for name, model in MODELS.items() if model.generate)
NEW_TOKENS = 6
LOW_PRECISION = ("float16", "bfloat16")


# ---- inference -------------------------------------------------------------------------------


@check("model/eval", "MODEL-001", cases=MODELS)
def inference_equals_the_cpus(dev: Device, case: str) -> None:
    """In evaluation mode the outputs are the CPU's, without gradients and in inference mode."""
    module, batches = prepared(dev, case, 1)
    _give_statistics(module)
    on_device = place(module, dev.device()).eval()
    moved = tuple(tensor.to(dev.device()) for tensor in batches[0])
    logits = MODELS[case].logits
    with torch.no_grad():
        expected = {"logits": logits(module.eval(), batches[0])}
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            actual = {"logits": logits(on_device, moved)}
        tolerance.assert_near(dev, actual, expected, tolerance.relative(dev, case))


@check("model/low_precision", "MODEL-002", cases=MIXED, dtypes=LOW_PRECISION)
def inference_in_low_precision_is_near(dev: Device, case: str, dtype: torch.dtype) -> None:
    """A model converted to a type of 16 bits gives outputs near those of float32."""
    _require(dev, case, dtype)
    module, batches = prepared(dev, case, 1)
    _give_statistics(module)
    on_device = place(module, dev.device()).to(dtype).eval()
    moved = tuple(
        tensor.to(dev.device(), dtype) if tensor.is_floating_point() else tensor.to(dev.device())
        for tensor in batches[0]
    )
    logits = MODELS[case].logits
    with torch.no_grad():
        expected = {"logits": logits(module.eval(), batches[0])}
        actual = logits(on_device, moved)
    assert actual.dtype == dtype, f"the outputs are {actual.dtype}"
    granted = tolerance.relative(dev, case, dtype)
    tolerance.assert_near(dev, {"logits": dev.cpu(actual).float()}, expected, granted)


@check("model/generate", "MODEL-012", cases=GENERATIVE)
def generation_chooses_the_cpus_tokens(dev: Device, case: str) -> None:
    """A language model continues a text as on the CPU, with a cache between the tokens."""
    module, batches = prepared(dev, case, 1)
    generate, tokens = MODELS[case].generate, batches[0][0]
    assert generate is not None
    on_device = place(module, dev.device()).eval()
    with torch.no_grad():
        expected = generate(module.eval(), tokens, NEW_TOKENS)
        actual = generate(on_device, tokens.to(dev.device()), NEW_TOKENS)
    assert expected.shape == (len(tokens), tokens.shape[1] + NEW_TOKENS)
    dev.assert_equal(actual, expected)


# ---- training --------------------------------------------------------------------------------


@check("model/sgd", "MODEL-003", cases=MODELS)
def training_with_sgd_equals_the_cpus(dev: Device, case: str) -> None:
    """Losses, gradients, and weights after several steps of SGD are the CPU's."""
    _trained_alike(dev, case, SGD)


@check("model/adamw", "MODEL-004", cases=MODELS)
def training_with_adamw_equals_the_cpus(dev: Device, case: str) -> None:
    """Losses, gradients, and weights after several steps of AdamW are the CPU's."""
    _trained_alike(dev, case, ADAMW)


@check("model/accumulate", "MODEL-005", cases=SOME)
def gradients_add_up_over_micro_batches(dev: Device, case: str) -> None:
    """Gradients accumulated over two backward passes give the CPU's steps."""
    _trained_alike(dev, case, replace(ADAMW, micro_batches=2))


@check("model/clip", "MODEL-006", cases=SOME)
def gradients_are_clipped_to_a_norm(dev: Device, case: str) -> None:
    """Clipping scales gradients by their total norm, which is the CPU's."""
    module, batches = prepared(dev, case, 1)
    (whole,) = _trainer(case, module, CPU, replace(SGD, clip=1e6)).train(batches).norms
    recipe = replace(SGD, clip=float(whole) / 2)
    actual, expected = _trained_alike(dev, case, recipe)
    granted = tolerance.relative(dev, case)
    for found, wanted in zip(actual.norms, expected.norms, strict=True):
        dev.assert_close(found, wanted, rtol=granted)
    clipped = torch.stack([dev.cpu(g).norm() for g in actual.gradients.values()]).norm()
    dev.assert_close(clipped, whole / 2, rtol=granted)


@check("model/recompute", "MODEL-007", cases=MIXED)
def recomputed_activations_change_nothing(dev: Device, case: str) -> None:
    """With checkpointed activations, losses and gradients are those of plain training."""
    _recomputed_alike(dev, case, reentrant=False)


@check("model/recompute_reentrant", "MODEL-007", cases=("vit", "resnet"))
def reentrant_recomputation_changes_nothing(dev: Device, case: str) -> None:
    """Checkpointing that runs a backward inside of backward changes nothing, either."""
    _recomputed_alike(dev, case, reentrant=True)


# ---- mixed precision -------------------------------------------------------------------------


@check("model/autocast", "MODEL-008", needs=("autocast",), cases=MIXED, dtypes=LOW_PRECISION)
def autocast_trains_in_lower_precision(dev: Device, case: str, dtype: torch.dtype) -> None:
    """Under autocast linear layers compute in 16 bits, and training stays near float32's."""
    _require(dev, case, dtype)
    module, batches = prepared(dev, case, STEPS)
    expected = _trainer(case, module, CPU, ADAMW).train(batches)
    trainer = _trainer(case, module, dev.device(), replace(ADAMW, autocast=dtype))
    outputs: set[torch.dtype] = set()
    linear_dtypes(trainer.module, outputs)
    actual = trainer.train(batches)
    assert outputs == {dtype}, f"linear layers returned {outputs}"
    assert {g.dtype for g in actual.gradients.values()} == {torch.float32}
    near(dev, actual, expected, tolerance.relative(dev, case, dtype))


@check("model/grad_scaler", "MODEL-009", needs=("autocast", "float16"), cases=SOME)
def the_scaler_skips_an_overflow(dev: Device, case: str) -> None:
    """GradScaler grows its scale, skips the step of an overflow, and halves the scale there."""
    _require(dev, case, torch.float16)
    module, batches = prepared(dev, case, STEPS)
    recipe = replace(ADAMW, autocast=torch.float16, scaled=True, overflow_at=GROWTH_INTERVAL)
    actual = _trainer(case, module, dev.device(), recipe).train(batches)
    expected = _trainer(case, module, CPU, replace(recipe, autocast=None)).train(batches)
    grown = 2 * INITIAL_SCALE
    assert actual.scales == [INITIAL_SCALE, grown, grown / 2, grown / 2], actual.scales
    near(dev, actual, expected, tolerance.relative(dev, case, torch.float16))


# ---- checkpoints on disk -----------------------------------------------------------------------


@check("model/resume", "MODEL-010", needs=("serialization",), cases=MIXED)
def a_loaded_checkpoint_continues_identically(dev: Device, case: str) -> None:
    """Training goes on from a saved checkpoint as if it had not been interrupted, bit by bit."""
    module, batches = prepared(dev, case, STEPS)
    half = STEPS // 2
    with deterministic(warn_only=True):
        first = _trainer(case, module, dev.device(), ADAMW)
        first.train(batches[:half])
        data = first.save()
        expected = first.train(batches[half:])
        other = build(MODELS[case], _seed(dev) + 1)
        second = _trainer(case, other, dev.device(), ADAMW)
        second.load(data)
        actual = second.train(batches[half:])
    for found, wanted in zip(actual.losses, expected.losses, strict=True):
        dev.assert_equal(found, dev.cpu(wanted))
    for name, tensor in expected.state.items():
        dev.assert_equal(actual.state[name], dev.cpu(tensor))


@check("model/migrate", "MODEL-011", needs=("serialization",), cases=SOME)
def checkpoints_move_between_devices(dev: Device, case: str) -> None:
    """A checkpoint of the device continues on the CPU, and one of the CPU on the device."""
    module, batches = prepared(dev, case, STEPS)
    half = STEPS // 2
    whole = _trainer(case, module, CPU, ADAMW).train(batches)
    for origin, target in ((dev.device(), CPU), (CPU, dev.device())):
        before = _trainer(case, module, origin, ADAMW)
        losses = before.train(batches[:half]).losses
        after = _trainer(case, build(MODELS[case], _seed(dev) + 1), target, ADAMW)
        after.load(before.save())
        course = after.train(batches[half:])
        course.losses = [*losses, *course.losses]
        course.gradients = whole.gradients
        near(dev, course, whole, tolerance.relative(dev, case))


# ---- what the checks share ---------------------------------------------------------------------


def prepared(dev: Device, case: str, count: int) -> tuple[nn.Module, list[Batch]]:
    """The model on the CPU and batches for it; unsupported where its package is missing."""
    model = MODELS[case]
    try:
        module = build(model, _seed(dev))
    except ImportError as error:
        dev.unsupported(f"needs the package {model.needs}: {INSTALL} ({error})")
    generator = dev.rng()
    return module, [model.batch(generator) for _ in range(count)]


def _trainer(case: str, module: nn.Module, device: torch.device, recipe: Recipe) -> Trainer:
    return Trainer(MODELS[case], place(module, device), device, recipe)


def _trained_alike(dev: Device, case: str, recipe: Recipe) -> tuple[Course, Course]:
    module, batches = prepared(dev, case, STEPS * recipe.micro_batches)
    actual = _trainer(case, module, dev.device(), recipe).train(batches)
    expected = _trainer(case, module, CPU, recipe).train(batches)
    near(dev, actual, expected, tolerance.relative(dev, case))
    return actual, expected


def _recomputed_alike(dev: Device, case: str, *, reentrant: bool) -> None:
    module, batches = prepared(dev, case, STEPS)
    trainer = _trainer(case, module, dev.device(), SGD)
    recompute(trainer.module, MODELS[case].block, reentrant=reentrant)
    actual = trainer.train(batches)
    expected = _trainer(case, module, CPU, SGD).train(batches)
    # Batch norm sees every batch twice: only its running statistics tell.
    actual.state = {n: actual.state[n] for n in expected.state if "running" not in n}
    expected.state = {n: expected.state[n] for n in actual.state}
    near(dev, actual, expected, tolerance.relative(dev, case))


def near(dev: Device, actual: Course, expected: Course, granted: float) -> None:
    __tracebackhide__ = True
    for part in ("losses", "gradients", "state"):
        found, wanted = getattr(actual, part), getattr(expected, part)
        if part == "losses":
            found, wanted = dict(enumerate(found)), dict(enumerate(wanted))
        elif part == "state":
            wanted = {name: tensor for name, tensor in wanted.items() if tensor.is_floating_point()}
            found = {name: found[name] for name in wanted}
        tolerance.assert_near(
            dev,
            {f"{part} {key}": tensor for key, tensor in found.items()},
            {f"{part} {key}": tensor.detach().cpu() for key, tensor in wanted.items()},
            granted,
        )


def _give_statistics(module: nn.Module) -> None:
    """Running statistics as after a long training, so that evaluation depends on them."""
    generator = torch.Generator().manual_seed(1)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_(0, 0.2, generator=generator)
            part.running_var.uniform_(0.5, 2, generator=generator)


def _require(dev: Device, case: str, dtype: torch.dtype) -> None:
    if dtype not in dev.dtypes("floating"):
        dev.unsupported(f"needs {dtype}")
    if not dev.is_accelerator and case == "lstm" and not _cpu_trains_lstm(dtype):
        dev.unsupported(f"oneDNN has no LSTM of {dtype} for this CPU")


@cache
def _cpu_trains_lstm(dtype: torch.dtype) -> bool:
    """Whether the CPU has an LSTM in autocast's dtype: oneDNN offers what the processor has."""
    with torch.autocast("cpu", dtype):
        try:
            output, _ = nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
            output.float().sum().backward()
        except RuntimeError:
            return False
    return True


def _seed(dev: Device) -> int:
    return zlib.crc32(f"{dev.seed}:{dev.check_id}".encode())
