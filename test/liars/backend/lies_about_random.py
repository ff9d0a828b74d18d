# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in random operators and in generators."""

from __future__ import annotations

from typing import Any

import torch
from lies import BACKEND, Call, lie, plant

#: Operators through which plain uniform and normal numbers are drawn.
UNIFORM = ("uniform_", "rand", "rand_like")
_NORMAL = ("normal_", "randn", "randn_like")


def _shift(result: torch.Tensor, by: int) -> torch.Tensor:
    return result.copy_(result.roll(by)) if result.dim() else result


@lie("RAND-001", "random/threads:rand random/process:1_thread")
def threads_decide_the_numbers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers are divided among the threads there are."""
    result = call(*args, **kwargs)
    return _shift(result, torch.get_num_threads() - 2) if name in UNIFORM else result


@lie("RAND-002", "random/stream:rand random/late_stream")
def streams_decide_the_numbers(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers depend on the stream that draws them."""
    result = call(*args, **kwargs)
    side = torch.accelerator.current_stream() != torch.get_device_module(BACKEND).default_stream()
    return _shift(result, 1) if name in UNIFORM and side else result


@lie("RAND-003", "random/private:uniform")
def private_generators_follow_the_default(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A draw with the default generator's numbers goes into every generator's sequence."""
    if name == "uniform_" and kwargs.get("generator") is not None:
        seed = torch.get_device_module(BACKEND).initial_seed()
        kwargs["generator"].manual_seed(seed)
    return call(*args, **kwargs)


@lie("RAND-004", "random/advance:uniform random/offset:rand")
def the_position_depends_on_the_time(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every second draw does not advance the state."""
    generator = torch.get_device_module(BACKEND).default_generators[0]
    before = generator.get_offset()
    result = call(*args, **kwargs)
    if name in UNIFORM and before % 8 == 4:
        generator.set_offset(before)
    return result


@lie("RAND-005", "random/empty:*")
def empty_draws_advance(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A draw of no elements counts as one."""
    result = call(*args, **kwargs)
    if isinstance(result, torch.Tensor) and not result.numel() and name != "empty.memory_format":
        generator = torch.get_device_module(BACKEND).default_generators[0]
        generator.set_offset(generator.get_offset() + 4)
    return result


@lie("RAND-006", "random/large:* random/overlap")
def numbers_repeat_after_65536(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A counter of 16 bits numbers the elements of a draw."""
    result = call(*args, **kwargs)
    if name in (*UNIFORM, *_NORMAL, "random_") and result.numel() > 1 << 16:
        flat = result.view(-1)
        flat[1 << 16 :] = flat[: flat.numel() - (1 << 16)].clone()
        return result
    return result


@lie("RAND-006", "random/unique:* random/unique_pairs:uniform")
def the_remainder_of_a_draw_repeats(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The last numbers of a draw whose size is not a multiple of four are the first ones."""
    result = call(*args, **kwargs)
    left = result.numel() % 4 if name in (*UNIFORM, *_NORMAL, "random_") else 0
    if left and result.numel() > 8:
        result[-left:] = result[:left].clone()
    return result


@lie("RAND-007", "random/uniform:one_two:float16 random/uniform:mixed:bfloat16")
def rounding_reaches_the_bound(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers of low precision are drawn in float32 and rounded."""
    if name == "uniform_" and args[0].dtype in (torch.float16, torch.bfloat16):
        return args[0].copy_(call(args[0].float(), *args[1:], **kwargs))
    return call(*args, **kwargs)


@lie("RAND-007", "random/exponential:*")
def exponential_takes_the_logarithm_of_one(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The smallest exponential numbers come out as zero."""
    result = call(*args, **kwargs)
    if name == "exponential_":
        result[result < result.mean() * 1e-4] = 0
    return result


@lie("RAND-008", "random/integers:* random/integer_bias")
def integers_are_a_remainder(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """randint takes the remainder of 32 random bits."""
    if name != "randint.low":
        return call(*args, **kwargs)
    low, high, size = args
    drawn = torch.empty(size, dtype=torch.int64, device=kwargs["device"]).random_(0, 2**32)
    return drawn % (high - low) + low


@lie("RAND-009", "random/resolution:float64 random/resolution:float32")
def uniform_numbers_have_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Uniform numbers are multiples of 2**-16."""
    result = call(*args, **kwargs)
    return result.mul_(2**16).floor_().div_(2**16) if name == "uniform_" else result


@lie("RAND-009", "random/digits:normal random/bits:uniform:float64")
def wide_numbers_have_the_digits_of_float32(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Numbers of float64 are drawn in float32."""
    result = call(*args, **kwargs)
    if name in ("uniform_", "normal_") and result.dtype == torch.float64:
        result.copy_(result.float())
    return result


@lie("RAND-010", "random/refused:bernoulli_above")
def parameters_are_clamped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Chances outside of [0, 1] are clamped."""
    if name == "bernoulli_.float":
        args = (args[0], min(max(args[1], 0.0), 1.0))
    return call(*args, **kwargs)


@lie("RAND-011", "random/distribution:normal:*")
def normal_numbers_are_sums_of_uniform_ones(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A normal number is the sum of two uniform ones, with the right mean and variance."""
    if name != "normal_":
        return call(*args, **kwargs)
    mean, deviation = args[1:]
    total = torch.rand_like(args[0]) - torch.rand_like(args[0])
    return args[0].copy_(total * (deviation * 6**0.5) + mean)


@lie("RAND-011", "random/counts:geometric")
def geometric_starts_late(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """One geometric number in ten is one too large."""
    result = call(*args, **kwargs)
    if name == "geometric_":
        result[::10] += 1
    return result


@lie("RAND-011", "random/by_column:normal random/by_column:bernoulli_in_place")
def parameters_are_read_from_the_first_column(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A draw with parameters in tensors uses those of the first column for all."""
    if name in ("normal.Tensor_Tensor", "bernoulli_.Tensor"):
        args = [x[:, :1].expand(x.shape) if x.dim() == 2 and x.stride(0) == 0 else x for x in args]
    return call(*args, **kwargs)


@lie("RAND-011", "random/rare:*")
def chances_have_16_bits(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A chance is compared with 16 random bits."""
    if name == "bernoulli_.float":
        args = (args[0], round(args[1] * 2**16) / 2**16)
    elif name == "bernoulli":
        args = ((args[0] * 2**16).round() / 2**16,)
    return call(*args, **kwargs)


@lie("RAND-012", "random/pairs:*")
def neighbours_depend_on_each_other(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """Every fourth uniform number is one minus the number before it."""
    result = call(*args, **kwargs)
    if name in UNIFORM and result.dim() == 1 and result.numel() > 8:
        result[3::4] = 1 - result[2::4][: result[3::4].numel()]
    return result


@lie("RAND-012", "random/rejection:gamma random/rejection:poisson")
def rejected_numbers_are_drawn_again(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A sampler that rejects numbers advances the state by one number for each element."""
    generator = torch.get_device_module(BACKEND).default_generators[0]
    before = generator.get_offset()
    result = call(*args, **kwargs)
    if name in ("_standard_gamma", "poisson"):
        generator.set_offset(before + 4)
    return result


@lie("RAND-013", "random/channels:*")
def channels_are_dropped_in_part(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The mask of channel dropout has the size of its input."""
    if name == "bernoulli_.float" and args[0].dim() > 2:
        args[0].resize_([*args[0].shape[:2], *[3] * (args[0].dim() - 2)])
    return call(*args, **kwargs)


@lie("RAND-014", "random/reparametrised:gamma")
def samples_of_gamma_have_no_gradient(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The derivative of a sample of the gamma distribution is zero."""
    result = call(*args, **kwargs)
    return torch.zeros_like(result) if name == "_standard_gamma_grad" else result


@lie("RAND-015", "random/certain:bernoulli_never random/certain:bernoulli_tensor_never")
def the_impossible_happens_sometimes(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A number is one if its random number is at most the chance, which zero is, too."""
    result = call(*args, **kwargs)
    if name in ("bernoulli_.float", "bernoulli") and result.numel() > 1000:
        result.view(-1)[777] = 1
    return result


@lie("RAND-015", "random/zero_weight:*")
def empty_categories_are_drawn(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A category is drawn if the sum of the weights before it is reached exactly."""
    result = call(*args, **kwargs)
    if name == "multinomial":
        result.view(-1)[99] = 0
    return result


@lie("RAND-016", "random/gradient:rrelu:float32 random/gradient:dropout:float32")
def masks_are_drawn_again_in_backward(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """The gradient of a random activation uses numbers of its own."""
    if name == "rrelu_with_noise_backward":
        args = (*args[:2], args[2].flip(0), *args[3:])
    elif name == "native_dropout_backward":
        args = (args[0], args[1].flip(0), *args[2:])
    return call(*args, **kwargs)


@lie("GEN-012", "generator/explicit:uniform generator/explicit_equals_default:uniform")
def the_generator_argument_is_dropped(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """generator= is accepted and not used."""
    return call(*args, **{k: v for k, v in kwargs.items() if k != "generator"})


@lie("GEN-004 GEN-005", "generator/state:uniform generator/cpu_untouched:uniform")
def random_numbers_come_from_the_cpu(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """uniform_ draws with the CPU's default generator."""
    if name == "uniform_":
        return args[0].copy_(torch.rand(args[0].shape))
    return call(*args, **kwargs)


@lie("GEN-018", "generator/bernoulli")
def bernoulli_is_a_fair_coin(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """bernoulli_ ignores its probability."""
    if name == "bernoulli_.float":
        args = (args[0], 0.5)
    return call(*args, **kwargs)


@lie("GEN-019", "generator/strided:*")
def random_fills_are_linear(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """uniform_ fills as many elements as asked for, from the start of the memory."""
    if name == "uniform_":
        memory = args[0].as_strided((args[0].numel(),), (1,), 0)
        call(memory, *args[1:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("GEN-013", "generator/wrong_device:randperm")
def permutations_take_any_generator(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """randperm takes a generator of another device type and does not use it."""
    given = kwargs.get("generator")
    if name.startswith("randperm") and given is not None and given.device.type != BACKEND:
        kwargs = {**kwargs, "generator": None}
    return call(*args, **kwargs)


@lie("GEN-023", "generator/torch_seed:random", planted=True)
def all_devices_are_the_first() -> None:
    """manual_seed_all seeds the first device only."""
    module = torch.get_device_module(BACKEND)
    plant(module, "manual_seed_all", module.default_generators[0].manual_seed)


@lie("GEN-014", "generator/device_object")
def draws_elsewhere_move_the_default_generator(
    name: str, call: Call, args: Any, kwargs: Any
) -> Any:
    """A draw on another device than the first also advances the default generator there."""
    result = call(*args, **kwargs)
    if name in (*UNIFORM, "rand.generator") and result.get_device() > 0:
        generator = torch.get_device_module(BACKEND).default_generators[result.get_device()]
        generator.set_offset(generator.get_offset() + 4)
    return result
