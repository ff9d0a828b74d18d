# SPDX-License-Identifier: BSD-3-Clause
"""The models of the suite, how their trainings are compared, and what happens without a package."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch

from torch_conformance.authoring.check import REGISTRY
from torch_conformance.authoring.device import Device
from torch_conformance.models import tolerance, training
from torch_conformance.models.zoo import MODELS, TRANSFORMERS
from torch_conformance.running.execute import execute
from torch_conformance.spec import descriptor

ROOT = Path(__file__).resolve().parents[2]
PINNED_IN = ("requirements/run.txt", "conformance/pyproject.toml")
OWN = [name for name, model in MODELS.items() if model.needs is None]


@pytest.fixture
def dev() -> Device:
    """The CPU as a device under test."""
    return Device(descriptor.find("cpu"))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("optimizer", training.OPTIMIZERS)
def test_a_model_learns(name: str, optimizer: str) -> None:
    """Otherwise its trajectory would say nothing about its gradients."""
    model, cpu = MODELS[name], torch.device("cpu")
    trainer = training.Trainer(model, training.build(model, 0), cpu, training.Recipe(optimizer))
    batch = model.batch(torch.Generator().manual_seed(0))
    losses = trainer.train([batch] * 8).losses
    assert losses[-1] < 0.995 * losses[0]


@pytest.mark.parametrize("name", OWN)
def test_building_a_model_twice_gives_the_same_and_leaves_the_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    first, second = (training.build(MODELS[name], 3).state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_missing_package_makes_its_models_unsupported(
    dev: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    importlib.import_module("torch_conformance.checks.model")
    monkeypatch.setitem(sys.modules, TRANSFORMERS, None)
    result = execute(REGISTRY["model/eval:bert_eager"], dev)
    assert result.outcome == "unsupported"
    assert "pip install 'torch-conformance[models]'" in str(result.reason)


def test_the_package_has_one_version_in_all_lists() -> None:
    """Whoever follows the advice of an unsupported check gets what this project tests with."""
    lists = [(ROOT / name).read_text() for name in PINNED_IN]
    pins = {pin for text in lists for pin in re.findall(rf"{TRANSFORMERS}==[0-9.]+", text)}
    assert len(pins) == 1
    assert all(TRANSFORMERS in text for text in lists)


def test_one_wrong_element_in_a_thousand_is_seen(dev: Device) -> None:
    expected = {"weight": torch.linspace(-1, 1, 1000)}
    wrong = expected["weight"].clone()
    wrong[500] += 0.1
    granted = tolerance.relative(dev, "mlp")
    tolerance.assert_near(dev, expected, expected, granted)
    with pytest.raises(AssertionError, match=r"first at \(500,\)"):
        tolerance.assert_near(dev, {"weight": wrong}, expected, granted)


def test_what_is_not_a_number_is_not_near(dev: Device) -> None:
    with pytest.raises(AssertionError, match="weight"):
        tolerance.assert_near(
            dev, {"weight": torch.tensor([torch.nan])}, {"weight": torch.ones(1)}, 1e9
        )


def test_a_missing_gradient_is_no_gradient_at_all(dev: Device) -> None:
    with pytest.raises(AssertionError, match="bias"):
        tolerance.assert_near(dev, {}, {"bias": torch.zeros(1)}, 1.0)


def test_every_grant_has_a_reason_and_is_of_a_model() -> None:
    grants = [*tolerance.BY_DTYPE.values(), *tolerance.BY_MODEL.values()]
    assert all(grant.factor > 1 and grant.reason for grant in grants)
    assert {model for model, _ in tolerance.BY_MODEL} <= set(MODELS)
