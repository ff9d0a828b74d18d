# SPDX-License-Identifier: BSD-3-Clause
"""Reductions, scans, sorts, norms and histograms are called with wrong arguments."""

from __future__ import annotations

import torch

from torch_conformance.authoring.api import index, zeros_index
from torch_conformance.checks.contract._calls import Write, ones

REDUCTIONS: dict[str, Write] = {
    "mean_of_integers": lambda x: x.long().mean(),
    "softmax_of_integers": lambda x: x.long().softmax(1),
    "softmax_dimension": lambda x: x.softmax(2),
    "cumsum_dimension": lambda x: x.cumsum(-3),
    "sort_dimension": lambda x: x.sort(2),
    "sum_twice": lambda x: x.sum((0, 0)),
    "topk_many": lambda x: x.topk(5),
    "kthvalue_none": lambda x: x.kthvalue(0),
    "norm_of_integers": lambda x: torch.linalg.vector_norm(x.long()),
    "bincount_matrix": lambda x: x.long().bincount(),
    "trace_of_batch": lambda x: x[None].trace(),
    "log_softmax_dimension": lambda x: x.log_softmax(2),
    "cumprod_dimension": lambda x: x.cumprod(2),
    "cummax_dimension": lambda x: x.cummax(2),
    "logcumsumexp_dimension": lambda x: x.logcumsumexp(2),
    "prod_dimension": lambda x: x.prod(2),
    "median_dimension": lambda x: x.median(2),
    "mode_dimension": lambda x: x.mode(2),
    "argmax_of_nothing": lambda x: x[:0].argmax(),
    "amax_of_nothing": lambda x: x[:0].amax(0),
    "max_of_nothing": lambda x: x[:0].max(),
    "max_of_no_rows": lambda x: x[:0].max(0),
    "topk_dimension": lambda x: x.topk(1, 2),
    "histc_bins": lambda x: x.histc(0),
    "histc_range": lambda x: x.histc(4, 2.0, 1.0),
    "searchsorted_sizes": lambda x: torch.searchsorted(ones(x, 2, 4), x),
    "searchsorted_side": lambda x: torch.searchsorted(x[0], x, side="middle"),
    "bucketize_matrix": lambda x: torch.bucketize(x, x),
    "bincount_negative_length": lambda x: index(x, 1).bincount(minlength=-1),
    "renorm_exponent": lambda x: x.renorm(-1, 0, 1.0),
    "renorm_limit": lambda x: x.renorm(2, 0, -1.0),
    "norm_of_nothing": lambda x: torch.linalg.vector_norm(x[:0], float("inf")),
    "quantile_range": lambda x: x.quantile(1.5),
    "bincount_weights": lambda x: index(x, 1, 2).bincount(x[0]),
    "bincount_weights_matrix": lambda x: index(x, 1, 2, 3).bincount(x),
    "bincount_of_floats": lambda x: x[0].bincount(),
    "bincount_negative": lambda x: index(x, 1, -2).bincount(),
    "max_all_out_dtype": lambda x: torch.max(x, out=zeros_index(x)),
    "var_of_integers": lambda x: x.long().var(),
    "renorm_dtype": lambda x: x.long().renorm(2, 0, 1.0),
    "softmax_out_dtype": lambda x: torch.softmax(x, 1, out=zeros_index(x, 3, 4)),
    "argmax_out_dtype": lambda x: torch.argmax(x, 1, out=ones(x, 3)),
    "max_out_dtype": lambda x: torch.max(x, 1, out=(ones(x, 3), ones(x, 3))),
    "sort_out_dtype": lambda x: torch.sort(x, 1, out=(x.clone(), x.clone())),
    "max_of_complex": lambda x: x.to(torch.complex64).max(),
    "kthvalue_many": lambda x: x.kthvalue(5),
    "topk_negative": lambda x: x.topk(-1),
    "quantile_dtype": lambda x: x.quantile(ones(x).double()),
}
