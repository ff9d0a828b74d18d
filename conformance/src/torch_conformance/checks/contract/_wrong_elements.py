# SPDX-License-Identifier: BSD-3-Clause
"""Element-wise operators, also those on lists of tensors, are called with wrong arguments."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import zeros_index
from torch_conformance.checks.contract._calls import Write, ones

ELEMENTS: dict[str, Write] = {
    "add_sizes": lambda x: x + ones(x, 3, 5),
    "add_in_place_larger": lambda x: x.add_(ones(x, 2, 3, 4)),
    "addcmul_sizes": lambda x: torch.addcmul(x, ones(x, 5), x),
    "lerp_sizes": lambda x: x.lerp(ones(x, 3, 5), 0.5),
    "where_sizes": lambda x: torch.where(x > 0, x, ones(x, 5)),
    "where_condition": lambda x: torch.where(x, x, x),
    "bitwise_of_floats": lambda x: x & x,
    "shift_of_floats": lambda x: torch.bitwise_left_shift(x, x),
    "integer_power": lambda x: x.long().pow(-1),
    "clamp_nothing": lambda x: x.clamp(),
    "foreach_lengths": lambda x: torch._foreach_add([x, x], [x]),
    "foreach_nothing": lambda x: torch._foreach_mul([], 2),
    "foreach_fewer_scalars": lambda x: torch._foreach_mul([x, x], [2.0]),
    "foreach_more_scalars": lambda x: torch._foreach_add([x, x], [1.0, 2.0, 3.0]),
    "foreach_no_scalars": lambda x: torch._foreach_div([x, x], []),
    "foreach_in_place_scalars": lambda x: torch._foreach_sub_([x, x], [1.0]),
    "foreach_power_scalars": lambda x: torch._foreach_pow([x, x], [2.0]),
    "foreach_clamp_scalars": lambda x: torch._foreach_clamp_min([x, x], [0.0]),
    "foreach_addcmul_scalars": lambda x: torch._foreach_addcmul([x, x], [x, x], [x, x], [1.0]),
    "foreach_addcmul_lengths": lambda x: torch._foreach_addcmul([x, x], [x, x], [x], 1.0),
    "foreach_addcdiv_lengths": lambda x: torch._foreach_addcdiv([x, x], [x], [x, x], 1.0),
    "foreach_lerp_scalars": lambda x: torch._foreach_lerp([x, x], [x, x], [0.5]),
    "foreach_lerp_lengths": lambda x: torch._foreach_lerp([x, x], [x, x], [x]),
    "foreach_copy_lengths": lambda x: torch._foreach_copy_([x, x], [x]),
    "foreach_maximum_lengths": lambda x: torch._foreach_maximum([x], [x, x]),
    "fill_value": lambda x: x.to(torch.int8).fill_(300),
    "fill_matrix": lambda x: x.fill_(ones(x, 1)),
    "out_that_requires_grad": lambda x: torch.add(x, 1, out=x.clone().requires_grad_()),
    "lerp_weights": lambda x: torch.lerp(x, x, ones(x, 5)),
    "addcdiv_of_integers": lambda x: torch.addcdiv(x.long(), x.long(), x.long()),
    "complex_sizes": lambda x: torch.complex(x, ones(x, 5)),
    "complex_dtypes": lambda x: torch.complex(x, x.double()),
    "polar_dtypes": lambda x: torch.polar(x, x.double()),
    "add_out_dtype": lambda x: torch.add(x, x, out=zeros_index(x, 3, 4)),
    "sqrt_out_dtype": lambda x: torch.sqrt(x, out=zeros_index(x, 3, 4)),
    "pow_out_complex": lambda x: torch.pow(x.to(torch.complex64), 2, out=x.clone()),
    "compare_complex": lambda x: x.to(torch.complex64) < 1,
    "clamp_complex": lambda x: x.to(torch.complex64).clamp(0, 1),
    "floor_complex": lambda x: x.to(torch.complex64).floor(),
    "remainder_complex": lambda x: x.to(torch.complex64).remainder(2),
    "polygamma_order": lambda x: torch.polygamma(-1, x),
    "unscale_integers": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.long()], ones(x, 1), ones(x, 1)
    ),
    "unscale_found_dtype": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], zeros_index(x, 1), ones(x, 1)
    ),
    "unscale_scale_dtype": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], ones(x, 1), zeros_index(x, 1)
    ),
    "unscale_found_count": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], ones(x, 2), ones(x, 1)
    ),
    "unscale_scale_count": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x.clone()], ones(x, 1), ones(x, 2)
    ),
    "update_scale_dtype": lambda x: torch._amp_update_scale_(
        zeros_index(x, 1), zeros_index(x, 1).int(), ones(x, 1), 2.0, 0.5, 2
    ),
    "update_scale_tracker": lambda x: torch._amp_update_scale_(
        ones(x, 1), zeros_index(x, 1), ones(x, 1), 2.0, 0.5, 2
    ),
    "update_scale_found": lambda x: torch._amp_update_scale_(
        ones(x, 1), zeros_index(x, 1).int(), zeros_index(x, 1), 2.0, 0.5, 2
    ),
    "foreach_dtypes": lambda x: torch._foreach_addcmul_([x.long()], [x], [x], 1.0),
    "foreach_number_count": lambda x: torch._foreach_mul([x], ones(x, 2)),
    "lerp_dtypes": lambda x: torch.lerp(x, x.double(), 0.5),
    "heaviside_dtypes": lambda x: torch.heaviside(x, x.double()),
    "nextafter_of_integers": lambda x: torch.nextafter(x.long(), x.long()),
    "gcd_of_floats": lambda x: torch.gcd(x, x),
    "frexp_of_integers": lambda x: torch.frexp(x.long()),
}
