# SPDX-License-Identifier: BSD-3-Clause
"""Each device has one default generator, which draws where none is passed."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import Device, check
from torch_conformance.checks._random_state import default_generator, same


@check("generator/default", "GEN-015", needs=("generator",))
def the_default_generator_is_the_one_that_draws(dev: Device) -> None:
    """Passing the default generator explicitly is the same as passing none."""
    torch.manual_seed(71)
    expected = torch.rand(8, device=dev.device())
    torch.manual_seed(71)
    actual = torch.rand(8, device=dev.device(), generator=default_generator(dev))
    assert same(actual, expected)
    drawn = default_generator(dev).get_state()
    torch.manual_seed(71)
    assert not torch.equal(drawn, default_generator(dev).get_state())


@check("generator/default_generators", "GEN-015", needs=("generator", "accelerator"))
def there_is_one_default_generator_for_each_device(dev: Device) -> None:
    """<module>.default_generators has one entry for each device, on that device."""
    assert dev.module is not None
    generators = dev.module.default_generators
    assert len(generators) == dev.count
    for index in range(min(dev.count, 4)):
        assert generators[index].device == dev.device(index)
    assert generators[-1].device == dev.device(dev.count - 1), "[-1] is not of the last device"
    # The objects of Python may be others each time; what they stand for may not.
    generators[0].manual_seed(83)
    assert dev.module.default_generators[0].initial_seed() == 83
