# SPDX-License-Identifier: BSD-3-Clause
"""Linear algebra, Fourier transforms, and arithmetic on complex numbers and their views."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_conformance.authoring.api import Device, Program, agree, check, noise, ramp
from torch_conformance.checks.operator._programs import invertible, x2


def _symmetric(device: torch.device) -> Tensor:
    a = invertible(device)
    return a @ a.mT + torch.eye(4, device=device)


def _rebuilt_svd(a: Tensor) -> list[Tensor]:
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return [s, u @ torch.diag_embed(s).to(a.dtype) @ vh]


def _rebuilt_qr(a: Tensor) -> list[Tensor]:
    q, r = torch.linalg.qr(a)
    return [q @ r, q.mT @ q, r.tril(-1)]


def _rebuilt_eigh(a: Tensor) -> list[Tensor]:
    values, vectors = torch.linalg.eigh(a)
    return [values, vectors @ torch.diag_embed(values) @ vectors.mT]


_LINALG: dict[str, Program] = {
    "solve": lambda d: torch.linalg.solve(invertible(d), invertible(d)[..., :2]),
    "solve_complex": lambda d: torch.linalg.solve(
        invertible(d, complex_=True), invertible(d, complex_=True)[..., :1]
    ),
    "inv": lambda d: torch.linalg.inv(invertible(d)),
    "det": lambda d: torch.linalg.det(invertible(d)),
    "slogdet": lambda d: list(torch.linalg.slogdet(invertible(d))),
    "cholesky": lambda d: torch.linalg.cholesky(_symmetric(d)),
    "qr": lambda d: _rebuilt_qr(invertible(d)),
    "svd": lambda d: _rebuilt_svd(invertible(d)),
    "svd_wide": lambda d: _rebuilt_svd(invertible(d)[:, :2]),
    "eigh": lambda d: _rebuilt_eigh(_symmetric(d)),
    "lstsq": lambda d: torch.linalg.lstsq(invertible(d), invertible(d)[..., :2]).solution,
    "pinv": lambda d: torch.linalg.pinv(invertible(d)[:, :, :3]),
    "matrix_exp": lambda d: torch.linalg.matrix_exp(invertible(d) / 8),
    "matrix_power": lambda d: torch.linalg.matrix_power(invertible(d), 3),
    "triangular": lambda d: torch.linalg.solve_triangular(
        invertible(d).tril(), invertible(d)[..., :2], upper=False
    ),
    "lu_solve": lambda d: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(invertible(d)), invertible(d)
    ),
    "transposed_inputs": lambda d: torch.linalg.solve(invertible(d).mT, invertible(d).mT),
}


@check("operator/linalg", "OP-015", cases=tuple(_LINALG))
def linear_algebra_agrees(dev: Device, case: str) -> None:
    """Factorisations (rebuilt from their factors) and solvers agree with the CPU."""
    agree(dev, _LINALG[case], rtol=1e-4, atol=1e-4)


def _complex(device: torch.device) -> Tensor:
    return ramp((4, 6), torch.complex64).to(device, copy=True)


_COMPLEX: dict[str, Program] = {
    "fft": lambda d: torch.fft.fft(x2(d)),
    "ifft": lambda d: torch.fft.ifft(_complex(d)),
    "rfft": lambda d: torch.fft.rfft(x2(d)),
    "irfft": lambda d: torch.fft.irfft(_complex(d)),
    "hfft": lambda d: torch.fft.hfft(_complex(d)),
    "fft2": lambda d: torch.fft.fft2(_complex(d)),
    "fft_conj": lambda d: torch.fft.fft(_complex(d).conj()),
    "fft_neg": lambda d: torch.fft.rfft(_complex(d).conj().imag),
    "fft_transposed": lambda d: torch.fft.fft(_complex(d).t()),
    "fft_n": lambda d: torch.fft.fft(_complex(d), n=5, norm="ortho"),
    "fftshift": lambda d: torch.fft.fftshift(x2(d)),
    "stft": lambda d: torch.stft(
        noise((64,)).to(d), 16, window=torch.hann_window(16, device=d), return_complex=True
    ),
    "conj_add": lambda d: _complex(d).conj() + _complex(d),
    "conj_mul_in_place": lambda d: _complex(d).mul_(_complex(d).conj()),
    "conj_matmul": lambda d: _complex(d) @ _complex(d).mH,
    "conj_in_place": lambda d: _conjugated(d),
    "vdot": lambda d: torch.vdot(_complex(d).flatten(), _complex(d).flatten()),
    "conj_dot": lambda d: [
        torch.vdot(_complex(d)[0].conj(), _complex(d)[1]),
        torch.dot(_complex(d)[0], _complex(d)[1].conj()),
    ],
    "conj_addmm": lambda d: torch.addmm(_complex(d)[:, :4].conj(), _complex(d), _complex(d).mH),
    "abs_angle": lambda d: [_complex(d).abs(), _complex(d).angle()],
    "real_imag": lambda d: [_complex(d).real, _complex(d).imag, _complex(d).conj().imag + 1],
    "neg_view_add": lambda d: torch._neg_view(x2(d)) + 1,
    "exp": lambda d: torch.exp(_complex(d) / 40),
    "sum": lambda d: _complex(d).conj().sum(0),
}


def _conjugated(device: torch.device) -> list[Tensor]:
    x = _complex(device)
    view = x.conj()
    view.add_(1 + 2j)
    return [x, view.resolve_conj()]


@check("operator/complex", "OP-016", needs=("complex64",), cases=tuple(_COMPLEX))
def complex_operators_agree(dev: Device, case: str) -> None:
    """Fourier transforms and arithmetic on complex, conjugate and negative views agree."""
    agree(dev, _COMPLEX[case], rtol=1e-4, atol=1e-3)
