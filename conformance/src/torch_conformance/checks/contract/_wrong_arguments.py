# SPDX-License-Identifier: BSD-3-Clause
"""What several files of the chapter share: the calls with wrong arguments."""

from __future__ import annotations

from torch_conformance.checks.contract._calls import Write
from torch_conformance.checks.contract._wrong_elements import ELEMENTS
from torch_conformance.checks.contract._wrong_indices import INDICES
from torch_conformance.checks.contract._wrong_layers import LAYERS
from torch_conformance.checks.contract._wrong_products import PRODUCTS
from torch_conformance.checks.contract._wrong_random import RANDOM
from torch_conformance.checks.contract._wrong_reductions import REDUCTIONS
from torch_conformance.checks.contract._wrong_tensors import TENSORS

#: Calls with wrong arguments, on a matrix of 3 x 4.
WRONG: dict[str, Write] = {
    **ELEMENTS,
    **INDICES,
    **LAYERS,
    **PRODUCTS,
    **RANDOM,
    **REDUCTIONS,
    **TENSORS,
}
