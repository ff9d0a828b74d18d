# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products, decompositions, attention and transforms are called with wrong arguments."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from torch_conformance.authoring.api import zeros_index
from torch_conformance.checks.contract._calls import Write, ones


def _attention(x: Tensor, *dtypes: torch.dtype) -> Tensor:
    query, key, value = (x[None, None].to(dtype) for dtype in dtypes)
    return functional.scaled_dot_product_attention(query, key, value)


PRODUCTS: dict[str, Write] = {
    "mm_sizes": lambda x: torch.mm(x, x),
    "mm_vector": lambda x: torch.mm(x, x[0]),
    "mm_dtypes": lambda x: torch.mm(x, x.t().long()),
    "mv_sizes": lambda x: x.mv(ones(x, 3)),
    "dot_sizes": lambda x: x[0].dot(x[:, 0]),
    "dot_matrix": lambda x: x.dot(x),
    "bmm_batches": lambda x: torch.bmm(ones(x, 2, 3, 4), ones(x, 3, 4, 5)),
    "bmm_matrix": lambda x: torch.bmm(x, x),
    "addmm_input": lambda x: torch.addmm(ones(x, 7, 7), x, x.t()),
    "baddbmm_input": lambda x: torch.baddbmm(ones(x, 7, 7), x[None], x.t()[None]),
    "addr_matrix": lambda x: torch.addr(x, x, x[0]),
    "linear_sizes": lambda x: functional.linear(x, ones(x, 2, 5)),
    "inverse_shape": lambda x: torch.linalg.inv(x),
    "cholesky_shape": lambda x: torch.linalg.cholesky(x),
    "out_of_another_type": lambda x: torch.mm(x, x.t(), out=zeros_index(x, 3, 3)),
    "cross_dimension": lambda x: torch.linalg.cross(x, x, dim=1),
    "cdist_columns": lambda x: torch.cdist(x, ones(x, 3, 5)),
    "outer_matrix": lambda x: torch.outer(x, x[0]),
    "dot_dtypes": lambda x: x[0].dot(x[0].double()),
    "attention_sizes": lambda x: functional.scaled_dot_product_attention(
        x[None], ones(x, 1, 3, 5), ones(x, 1, 3, 5)
    ),
    "attention_mask": lambda x: functional.scaled_dot_product_attention(
        x[None], x[None], x[None], ones(x, 2, 5)
    ),
    "attention_of_integers": lambda x: _attention(x, torch.int64, torch.int64, torch.int64),
    "attention_of_truth": lambda x: _attention(x, torch.bool, torch.bool, torch.bool),
    "attention_query_dtype": lambda x: _attention(x, torch.float64, x.dtype, x.dtype),
    "attention_key_dtype": lambda x: _attention(x, x.dtype, torch.int64, x.dtype),
    "attention_value_dtype": lambda x: _attention(x, x.dtype, x.dtype, torch.float16),
    "attention_mask_dtype": lambda x: functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], zeros_index(x, 3, 3)
    ),
    "fft_size": lambda x: torch.fft.fft(x, 0),
    "triangular_solve_shape": lambda x: torch.linalg.solve_triangular(x, x, upper=True),
    "addmm_out_dtype": lambda x: torch.addmm(x, x, ones(x, 4, 4), out=zeros_index(x, 3, 4)),
    "dot_out_dtype": lambda x: torch.dot(x[0], x[1], out=zeros_index(x)),
    "linear_dtype": lambda x: functional.linear(x, ones(x, 2, 4).double()),
    "linear_bias": lambda x: functional.linear(x, ones(x, 2, 4), ones(x, 3)),
    "bmm_dtypes": lambda x: torch.bmm(x[None], x.t()[None].double()),
    "bmm_sizes": lambda x: torch.bmm(x[None], x[None]),
    "baddbmm_dtypes": lambda x: torch.baddbmm(ones(x, 1), x[None], x.t()[None].double()),
    "baddbmm_batches": lambda x: torch.baddbmm(ones(x, 1), x[None], ones(x, 2, 4, 3)),
    "addbmm_batches": lambda x: torch.addbmm(ones(x, 1), x[None], ones(x, 2, 4, 3)),
    "addmm_dtypes": lambda x: torch.addmm(ones(x, 3).double(), x, x.t()),
    "addmm_vector": lambda x: torch.addmm(x, x, x[0]),
    "addmv_sizes": lambda x: torch.addmv(ones(x, 3), x, ones(x, 3)),
    "addmv_input": lambda x: torch.addmv(ones(x, 5), x, ones(x, 4)),
    "mv_dtypes": lambda x: x.mv(ones(x, 4).double()),
    "mv_matrix": lambda x: x.mv(x),
    "addr_sizes": lambda x: torch.addr(x, x[0], x[0]),
    "cross_sizes": lambda x: torch.linalg.cross(x.t(), ones(x, 5, 3)),
}
