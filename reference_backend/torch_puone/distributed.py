# SPDX-License-Identifier: BSD-3-Clause
"""The process group `pccl`: collectives on device tensors.

Tensors go from device to device where the driver has a collective library (the native transport),
else through host memory and Gloo (the staged one). The environment variable PUONE_PCCL, or
`Options(timeout, transport=...)` of one group, chooses "native" or "staged".

`torch.distributed.init_process_group(device_id=torch.device("puone", i))` needs nothing of this
module: `pccl` is the default for the device. It is asynchronous as the device is: a collective is
queued after the work of the current stream, and `work.wait()` makes the current stream wait for it.
What fails (a rank that died, a timeout) is raised by the next synchronisation, or by the next call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import _distributed
from ._registration import NAME

if TYPE_CHECKING:
    from torch._C._distributed_c10d import _DistributedBackendOptions

#: What new_group(pg_options=...) takes.
Options = _distributed.Options


def create(
    options: _DistributedBackendOptions, backend_options: Options | None
) -> _distributed.ProcessGroup:
    """What torch.distributed calls to make the backend of a new group; waits for all its ranks."""
    if not dist.is_gloo_available():
        raise RuntimeError("pccl uses Gloo, which this PyTorch was built without")
    if backend_options is None:
        backend_options = Options(options.timeout)
    elif not isinstance(backend_options, Options):
        # Before any rank connects: the others would find a closed connection.
        raise TypeError(f"pccl takes {Options.__name__}, not {type(backend_options).__name__}")
    # Gloo's own options are not set: it takes the interface from the environment, as ever.
    host = dist.ProcessGroupGloo(
        dist.PrefixStore("host", options.store),
        options.group_rank,
        options.group_size,
        timeout=options.timeout,
    )
    backend_options._timeout = options.timeout
    backend_options.global_ranks_in_group = options.global_ranks_in_group
    backend_options.group_name = options.group_id  # type: ignore[assignment]  # a NewType of str
    return _distributed.ProcessGroup(host, options.group_rank, options.group_size, backend_options)


def pending_work(group: dist.ProcessGroup | None = None) -> list[str]:
    """The calls of a group that have not ended, oldest first: number, name, state and age of each.

    An error of the group contains the same lines. Raises TypeError if its backend is not `pccl`.
    """
    return _backend(group).pending()


def transport(group: dist.ProcessGroup | None = None) -> tuple[str, str]:
    """How the tensors of a group travel, "native" or "staged", and why it is not native.

    Raises TypeError if its backend is not `pccl`.
    """
    backend = _backend(group)
    return backend.transport, backend.why_staged


def _backend(group: dist.ProcessGroup | None) -> _distributed.ProcessGroup:
    group = group or dist.distributed_c10d._get_default_group()
    backend = group._get_backend(torch.device(NAME))
    if not isinstance(backend, _distributed.ProcessGroup):
        raise TypeError(f"expected a group whose backend is pccl, not {backend.name()}")
    return backend
