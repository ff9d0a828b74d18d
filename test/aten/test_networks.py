# SPDX-License-Identifier: BSD-3-Clause
"""Layers that torch decomposes in its own way for a PrivateUse1 device, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

Case = tuple[Callable[[], nn.Module], tuple[int, ...]]


class Attention(nn.Module):
    def __init__(self, causal: bool = False, masked: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.mask = torch.ones(7, 7, dtype=torch.bool).tril() if masked else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = self.mask.to(x.device) if self.mask is not None else None
        return nn.functional.scaled_dot_product_attention(
            x, x * 0.5, x + 1, attn_mask=mask, is_causal=self.causal
        )


CASES: dict[str, Case] = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, groups=2, padding=1), (2, 4, 9)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), (2, 3, 8, 8)),
    "conv2d_channels_last": (
        lambda: nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last),  # type: ignore[call-overload]  # not in the stubs
        (2, 3, 8, 8),
    ),
    "conv3d_without_bias": (lambda: nn.Conv3d(2, 4, 3, bias=False), (2, 2, 5, 5, 5)),
    "conv_transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), (2, 4, 5, 5)),
    "lstm": (lambda: nn.LSTM(5, 6, 2, bidirectional=True), (4, 2, 5)),
    "lstm_without_bias": (lambda: nn.LSTM(5, 6, bias=False), (4, 2, 5)),
    "lstm_with_projection": (lambda: nn.LSTM(5, 6, proj_size=3), (4, 2, 5)),
    "gru": (lambda: nn.GRU(5, 6, 2, bidirectional=True), (4, 2, 5)),
    "gru_without_bias": (lambda: nn.GRU(5, 6, bias=False), (4, 2, 5)),
    "rnn": (lambda: nn.RNN(5, 6), (4, 2, 5)),
    "attention": (Attention, (2, 3, 7, 8)),
    "causal_attention": (lambda: Attention(causal=True), (2, 3, 7, 8)),
    "masked_attention": (lambda: Attention(masked=True), (2, 3, 7, 8)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (4, 2, 8)),
    "layer_norm": (lambda: nn.LayerNorm(6), (4, 6)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
    "batch_norm": (lambda: nn.BatchNorm2d(3), (4, 3, 5, 5)),
}


def flatten(result: object) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    assert isinstance(result, tuple)
    return [tensor for part in result for tensor in flatten(part)]


def train(make: Callable[[], nn.Module], x: torch.Tensor, device: str) -> list[torch.Tensor]:
    """Outputs, gradients and buffers after one forward and backward."""
    torch.manual_seed(1)
    module = make().to(device)
    leaf = x.to(device).requires_grad_()
    outputs = flatten(module(leaf))
    torch.stack([output.square().sum() for output in outputs]).sum().backward()
    gradients = [leaf.grad, *(parameter.grad for parameter in module.parameters())]
    return [t.detach().cpu() for t in (*outputs, *gradients, *module.buffers()) if t is not None]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_forward_and_backward_equal_the_cpus(name: str) -> None:
    make, shape = CASES[name]
    x = torch.randn(shape)
    actual, expected = train(make, x, "puone"), train(make, x, "cpu")
    assert len(actual) == len(expected)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_packed_sequences_run(cell: type[nn.LSTM] | type[nn.GRU]) -> None:
    module = cell(5, 6)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 2, 5), [4, 2])
    expected = module(packed)[0].data
    actual = module.to("puone")(packed.to("puone"))[0].data  # type: ignore[arg-type]  # a packed sequence
    torch.testing.assert_close(actual.cpu(), expected)


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell])
def test_second_derivatives_exist(cell: type[nn.LSTMCell] | type[nn.GRUCell]) -> None:
    torch.manual_seed(0)
    module = cell(3, 4).double()
    x = torch.randn(2, 3, dtype=torch.float64)

    def norm(device: str) -> torch.Tensor:
        leaf = x.to(device).requires_grad_()
        out = module.to(device)(leaf)
        hidden = out[0] if isinstance(out, tuple) else out
        (gradient,) = torch.autograd.grad(hidden.square().sum(), leaf, create_graph=True)
        (second,) = torch.autograd.grad(gradient.square().sum(), leaf)
        return second.cpu()

    torch.testing.assert_close(norm("puone"), norm("cpu"))


def test_batch_norm_updates_its_statistics_in_training_and_not_in_evaluation() -> None:
    module = nn.BatchNorm1d(3).to("puone")
    module(torch.randn(8, 3, device="puone"))
    mean = module.running_mean
    assert mean is not None
    trained = mean.cpu()
    assert trained.abs().sum() > 0
    module.eval()
    module(torch.randn(8, 3, device="puone"))
    assert torch.equal(mean.cpu(), trained)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_optimizers_step_as_on_the_cpu(optimizer: type, fused: bool) -> None:
    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        x = torch.randn(16, 4)
        model, x = model.to(device), x.to(device)
        step = optimizer(model.parameters(), lr=0.05, fused=fused)
        for _ in range(5):
            step.zero_grad()
            model(x).square().mean().backward()
            step.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    torch.testing.assert_close(run("puone"), run("cpu"), rtol=1e-4, atol=1e-6)


def test_autocast_lets_every_operator_through() -> None:
    x = torch.randn(4, 4, device="puone")
    with torch.autocast("puone", dtype=torch.float16):
        assert torch.erfinv(x.clamp(-0.5, 0.5)).shape == (4, 4)
        assert (x @ x).device.type == "puone"


def test_forward_mode_derivatives_use_zero_tensors() -> None:
    x = torch.randn(3, device="puone")
    result = torch.func.jvp(lambda t: t.sin() * 2, (x,), (torch.ones_like(x),))
    value, tangent = result[0], result[1]
    torch.testing.assert_close(value.cpu(), x.cpu().sin() * 2)
    torch.testing.assert_close(tangent.cpu(), x.cpu().cos() * 2)
