# SPDX-License-Identifier: BSD-3-Clause
"""The models: tiny, of the architectures that people train, each with its data and its loss.

A model runs on a device with the operators its full-size relative needs and no others: masks,
targets and positions are made on the CPU and moved with the batch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

Batch = tuple[Tensor, ...]

#: The package that has the language models, and where users of the suite get it.
TRANSFORMERS = "transformers"
INSTALL = "pip install 'torch-conformance[models]'"

_CLASSES = 10
_VOCABULARY = 61
_WIDTH = 32
_LENGTH = 12


@dataclass(frozen=True)
class Model:
    """An architecture: how to build it, a batch for it, and the loss of a batch.

    `make` draws its weights from the CPU's default generator. `logits` are the outputs compared in
    evaluation; the last tensor of a batch is the target.
    """

    make: Callable[[], nn.Module]
    batch: Callable[[Generator], Batch]
    logits: Callable[[nn.Module, Batch], Tensor]
    loss: Callable[[nn.Module, Batch], Tensor]
    block: str
    """The class of the parts that recompute their activations where that is asked for."""
    generate: Callable[[nn.Module, Tensor, int], Tensor] | None = None
    """Continues rows of tokens by so many likeliest ones, with a state kept between them."""
    needs: str | None = None
    """A package the model comes from."""


def _outputs(module: nn.Module, batch: Batch) -> Tensor:
    result: Tensor = module(*batch[:-1])
    return result


def _class_loss(module: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(_outputs(module, batch), batch[-1])


def _click_loss(module: nn.Module, batch: Batch) -> Tensor:
    return functional.binary_cross_entropy_with_logits(_outputs(module, batch), batch[-1])


def _integers(high: int, *shape: int, generator: Generator) -> Tensor:
    return torch.randint(high, shape, generator=generator)


def _images(size: int, generator: Generator) -> Batch:
    return (
        torch.randn(4, 3, size, size, generator=generator),
        _integers(_CLASSES, 4, generator=generator),
    )


def _vectors(generator: Generator) -> Batch:
    return torch.randn(16, 20, generator=generator), _integers(_CLASSES, 16, generator=generator)


def _tokens(generator: Generator) -> Batch:
    tokens = 1 + _integers(_VOCABULARY - 1, 4, _LENGTH + 1, generator=generator)  # 0 is padding
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 32), nn.GELU(), nn.Linear(32, _CLASSES)
    )


# ---- convolutional ---------------------------------------------------------------------------


class _Residual(nn.Module):
    """Two convolutions beside a shortcut, which a convolution of size one fits to a new shape."""

    def __init__(self, channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        conv = partial(nn.Conv2d, bias=False)
        self.conv1 = conv(channels, out_channels, 3, stride=stride, padding=1)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = conv(out_channels, out_channels, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != out_channels:
            self.shortcut = nn.Sequential(
                conv(channels, out_channels, 1, stride=stride), nn.BatchNorm2d(out_channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.shortcut(x)
        result: Tensor = self.relu(y)
        return result


def _resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
        _Residual(8, 8, 1),
        _Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, _CLASSES),
    )


# ---- recurrent -------------------------------------------------------------------------------


class _Tagger(nn.Module):
    """Embedding, two recurrent layers, and one prediction for each position."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_VOCABULARY, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, _VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.embedding(tokens))
        result: Tensor = self.head(hidden)
        return result


def _tag_on(module: nn.Module, tokens: Tensor, count: int) -> Tensor:
    assert isinstance(module, _Tagger)
    given, state = tokens, None
    for _ in range(count):
        hidden, state = module.lstm(module.embedding(given), state)
        given = module.head(hidden[:, -1:]).argmax(-1)
        tokens = torch.cat([tokens, given], dim=1)
    return tokens


def _token_loss(module: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(_outputs(module, batch).flatten(0, 1), batch[-1].flatten())


# ---- attention -------------------------------------------------------------------------------


class _Block(nn.Module):
    """Attention and a feed-forward network, each after a norm and beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        attended = functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        )
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        result: Tensor = x + self.mlp(self.norm2(x))
        return result


class _Vit(nn.Module):
    """Patches of an image with a class token and learned positions, through attention blocks."""

    def __init__(self, size: int = 16, patch: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, _WIDTH, patch, stride=patch)
        self.token = nn.Parameter(torch.randn(1, 1, _WIDTH) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, _WIDTH) * 0.02)
        self.blocks = nn.Sequential(_Block(_WIDTH, 4), _Block(_WIDTH, 4))
        self.norm = nn.LayerNorm(_WIDTH)
        self.head = nn.Linear(_WIDTH, _CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        result: Tensor = self.head(self.norm(self.blocks(x))[:, 0])
        return result


# ---- recommendation --------------------------------------------------------------------------


class _Dlrm(nn.Module):
    """Dense features and bags of categories, their pairwise products, and a click probability."""

    def __init__(self, tables: int = 3, width: int = 8) -> None:
        super().__init__()
        self.bags = nn.ModuleList(
            nn.EmbeddingBag(_VOCABULARY, width, mode="sum") for _ in range(tables)
        )
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 16), nn.ReLU(), nn.Linear(16, 1))
        self.pairs: Tensor
        rows, columns = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", rows * (tables + 1) + columns)

    def forward(self, dense: Tensor, sparse: Tensor, offsets: Tensor) -> Tensor:
        dense = self.bottom(dense)
        bags = [bag(sparse[i], offsets[i]) for i, bag in enumerate(self.bags)]
        features = torch.stack([dense, *bags], dim=1)
        products = torch.bmm(features, features.transpose(1, 2)).flatten(1)
        interactions = products.index_select(1, self.pairs)
        result: Tensor = self.top(torch.cat([dense, interactions], dim=1)).squeeze(1)
        return result


def _clicks(generator: Generator, size: int = 8, per_bag: int = 3) -> Batch:
    return (
        torch.randn(size, 13, generator=generator),
        _integers(_VOCABULARY, 3, size * per_bag, generator=generator),
        (torch.arange(size) * per_bag).expand(3, size).contiguous(),
        torch.randint(2, (size,), generator=generator).float(),
    )


# ---- language models from `transformers` ---------------------------------------------------------


def _language_model(name: str, settings: dict[str, Any], attention: str) -> nn.Module:
    """A model of `transformers` with random weights; no dropout, so that devices agree."""
    family = getattr(importlib.import_module(TRANSFORMERS), name)
    configuration = family.config_class(vocab_size=_VOCABULARY, **settings)
    configuration._attn_implementation = attention
    module: nn.Module = family(configuration)
    return module


def _language_logits(module: nn.Module, batch: Batch) -> Tensor:
    result: Tensor = module(input_ids=batch[0], attention_mask=batch[1]).logits
    return result


def _language_loss(module: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(
        _language_logits(module, batch).flatten(0, 1), batch[-1].flatten()
    )


def _generate(module: nn.Module, tokens: Tensor, count: int) -> Tensor:
    result: Tensor = module.generate(  # type: ignore[operator]  # of transformers, untyped
        input_ids=tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=count,
        min_new_tokens=count,
        do_sample=False,
        use_cache=True,
        pad_token_id=0,
    )
    return result


def _padded(generator: Generator) -> Batch:
    """Tokens of which the last ones of some sequences are padding, without a target."""
    tokens, targets = _tokens(generator)
    mask = torch.ones_like(tokens)
    mask[1, -3:] = 0
    mask[3, -5:] = 0
    return tokens, mask, targets.masked_fill(mask == 0, -100)


_SMALL = {"hidden_size": _WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4}
_BERT = {
    **_SMALL,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "use_cache": False,
}
_GPT2 = {
    "n_embd": _WIDTH,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 32,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "use_cache": False,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
#: Two heads of keys and values for four of queries.
_LLAMA = {
    **_SMALL,
    "intermediate_size": 64,
    "num_key_value_heads": 2,
    "use_cache": False,
    "max_position_embeddings": 32,
    "bos_token_id": 0,
    "eos_token_id": 0,
}

#: Own models, which need nothing but torch.
_OWN: dict[str, Model] = {
    "mlp": Model(_mlp, _vectors, _outputs, _class_loss, "Linear"),
    "resnet": Model(_resnet, partial(_images, 32), _outputs, _class_loss, "_Residual"),
    "lstm": Model(_Tagger, _tokens, _outputs, _token_loss, "LSTM", _tag_on),
    "vit": Model(_Vit, partial(_images, 16), _outputs, _class_loss, "_Block"),
    "dlrm": Model(_Dlrm, _clicks, _outputs, _click_loss, "Sequential"),
}


def _from_transformers(attention: str) -> dict[str, Model]:
    families: dict[str, tuple[str, str, dict[str, Any]]] = {
        "bert": ("BertForMaskedLM", "BertLayer", _BERT),
        "gpt2": ("GPT2LMHeadModel", "GPT2Block", _GPT2),
        "llama": ("LlamaForCausalLM", "LlamaDecoderLayer", _LLAMA),
    }
    return {
        f"{family}_{attention}": Model(
            partial(_language_model, name, settings, attention),
            _padded,
            _language_logits,
            _language_loss,
            block,
            None if family == "bert" else _generate,
            TRANSFORMERS,
        )
        for family, (name, block, settings) in families.items()
    }


MODELS: dict[str, Model] = _OWN | _from_transformers("eager") | _from_transformers("sdpa")
