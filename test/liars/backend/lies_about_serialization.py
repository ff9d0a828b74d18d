# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes in saving and loading. Backends make them by replacing parts of torch.serialization."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

import torch
from lies import BACKEND, Call, lie, plant
from torch.utils._pytree import tree_map


def _on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == BACKEND


def _saves(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Make torch.save change the device tensors of whatever it saves."""
    save: Callable[..., None] = torch.save

    def changed(obj: Any, f: Any, *args: Any, **options: Any) -> None:
        save(tree_map(lambda v: change(v) if _on_device(v) else v, obj), f, *args, **options)

    plant(torch, "save", changed)


def _loads(change: Callable[[Any], Any]) -> None:
    """Make torch.load change its map_location."""
    load: Callable[..., Any] = torch.load

    def changed(f: Any, map_location: Any = None, **options: Any) -> Any:
        return load(f, map_location=change(map_location), **options)

    plant(torch, "load", changed)


def _loaded(change: Callable[[Any], Any]) -> None:
    """Make torch.load change the tensors that it returns."""
    load: Callable[..., Any] = torch.load

    def changed(*args: Any, **options: Any) -> Any:
        made = load(*args, **options)
        return tree_map(lambda v: change(v) if isinstance(v, torch.Tensor) else v, made)

    plant(torch, "load", changed)


def _deserializes(place: Callable[[int], torch.device]) -> None:
    """Make torch.load ask `place` where to put what was saved on, or is mapped to, an index."""

    def load(storage: Any, location: str) -> Any:
        if not location.startswith(BACKEND):
            return None
        return storage.to(device=place(torch.device(location).index or 0))

    torch.serialization.register_package(1, lambda storage: None, load)


def _rebuild(data: torch.Tensor, device: str) -> torch.Tensor:
    return data.to(device)


def _reduce(
    handles: type[torch.Tensor], reduce: Callable[[torch.Tensor, Any], tuple[Any, ...]]
) -> None:
    """Make pickle reduce the device tensors of a class in another way."""
    original = handles.__reduce_ex__

    def changed(self: torch.Tensor, protocol: Any) -> Any:
        return reduce(self, protocol) if _on_device(self) else original(self, protocol)

    plant(handles, "__reduce_ex__", changed)


def _copies_storages(wait: Callable[[], None]) -> None:
    """Make torch.save copy storages to the host without waiting for more than `wait` does."""
    original = torch.UntypedStorage.cpu

    def cpu(self: torch.UntypedStorage) -> torch.UntypedStorage:
        if self.device.type != BACKEND:
            return original(self)
        data = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
        pinned = torch.empty(data.shape, dtype=torch.uint8, pin_memory=True)
        pinned.copy_(data, non_blocking=True)
        wait()
        return pinned.untyped_storage()

    plant(torch.UntypedStorage, "cpu", cpu)


# ---- tensors -----------------------------------------------------------------------------------


@lie("SER-001", "serialization/dtype:float32 serialization/container", planted=True)
def saving_moves_to_the_cpu() -> None:
    """torch.save writes device tensors as host tensors, so that anybody can load them."""
    _saves(lambda x: x.cpu())


@lie("SER-001", "serialization/dtype:*", planted=True)
def half_precision_is_saved_as_float32() -> None:
    """bfloat16, which numpy does not know, is saved as float32."""
    _saves(lambda x: x.float() if x.dtype == torch.bfloat16 else x)


@lie("SER-001", "serialization/large")
def large_storages_are_cut(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """A copy of bytes to the host moves the first four megabytes."""
    limit = 4 << 20
    if name == "copy_" and args[0].device.type == "cpu" and args[0].element_size() == 1:
        call(args[0][:limit], args[1][:limit], *args[2:], **kwargs)
        return args[0]
    return call(*args, **kwargs)


@lie("SER-002", "serialization/view:transposed serialization/view:sliced", planted=True)
def views_are_saved_compact() -> None:
    """torch.save writes a view as a contiguous tensor of its own."""
    _saves(lambda x: x.contiguous())


@lie("SER-002", "serialization/view:offset serialization/view:sliced")
def loading_forgets_the_offset(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """set_ to a part of a storage begins at the start of the storage."""
    if name == "set_.source_Storage_storage_offset":
        args = (*args[:2], 0, *args[3:])
    return call(*args, **kwargs)


@lie("SER-003", "serialization/lazy:*", planted=True)
def math_bits_are_not_loaded() -> None:
    """The conjugate and negative bits of a file are ignored."""
    plant(torch._utils, "set_tensor_metadata", lambda tensor, metadata: None)


@lie("SER-005", "serialization/attributes:*", planted=True)
def saving_detaches() -> None:
    """torch.save writes detached tensors: nothing requires gradients, a Parameter is a tensor."""
    _saves(lambda x: x.detach())


@lie("SER-005", "serialization/attributes:buffer", planted=True)
def buffers_are_saved_as_tensors() -> None:
    """What makes a tensor a Buffer is lost."""
    _saves(lambda x: x.detach() if isinstance(x, torch.nn.Buffer) else x)


@lie("SER-006", "serialization/pending:here", planted=True)
def storages_are_not_waited_for() -> None:
    """A storage goes to pinned host memory without waiting for the copy."""
    _copies_storages(lambda: None)


@lie("SER-006", "serialization/pending:elsewhere", planted=True)
def storages_wait_for_the_current_device() -> None:
    """A storage goes to pinned host memory, and the current device is waited for, not its own."""
    _copies_storages(torch.accelerator.synchronize)


# ---- locations ---------------------------------------------------------------------------------


@lie("SER-007", "serialization/to_cpu:map serialization/to_device:map", planted=True)
def maps_of_locations_are_read_by_type() -> None:
    """A map of locations is looked up by the type of a device, without its index."""
    _loads(lambda m: {k.partition(":")[0]: v for k, v in m.items()} if isinstance(m, dict) else m)


@lie("SER-007", "serialization/to_cpu:callable serialization/to_device:callable", planted=True)
def callables_are_no_map_location() -> None:
    """A function as map_location is not called."""
    _loads(lambda m: None if callable(m) else m)


@lie("SER-021 SER-009", "serialization/location serialization/other_index", planted=True)
def the_location_has_no_index() -> None:
    """The file names the device type only, not which device."""
    torch.serialization.register_package(
        1,
        lambda storage: BACKEND if storage.device.type == BACKEND else None,
        lambda s, where: None,
    )


@lie("SER-008 SER-023", "serialization/file_content serialization/without_backend", planted=True)
def tensors_are_saved_in_parts() -> None:
    """torch.save stores a device tensor as a host copy behind an element that means the device."""
    _saves(lambda x: torch.cat([torch.ones(1, dtype=x.dtype), x.cpu().flatten()]))


@lie("SER-009", "serialization/other_index serialization/map_index:*", planted=True)
def everything_is_loaded_on_the_current_device() -> None:
    """Whatever index the file or map_location names, loading uses the current device."""
    _deserializes(lambda index: torch.device(BACKEND))


@lie("SER-022", "serialization/current_device", planted=True)
def loading_changes_the_current_device() -> None:
    """Loading makes the device of the storage current and leaves it so."""

    def select(index: int) -> torch.device:
        torch.accelerator.set_device_index(index)
        return torch.device(BACKEND, index)

    _deserializes(select)


@lie("SER-010", "serialization/bad_index:*", planted=True)
def the_index_is_taken_modulo_the_count() -> None:
    """A checkpoint of a larger machine is folded onto the devices there are."""
    _deserializes(lambda index: torch.device(BACKEND, index % torch.accelerator.device_count()))


@lie("SER-010", "serialization/bad_index:*", planted=True)
def a_missing_device_is_found_by_the_allocator() -> None:
    """The device of a checkpoint is not checked: the allocator's error does not say what to do."""
    _deserializes(lambda index: torch.device(BACKEND, index))


@lie("SER-011", "serialization/fake_load", planted=True)
def only_the_cpu_is_a_map_location() -> None:
    """map_location is the CPU or the device; "meta" is taken for the device."""
    _loads(lambda m: BACKEND if m == "meta" else m)


@lie("SER-011", "serialization/file:mmap serialization/file:mmap_cpu", planted=True)
def mapped_files_are_refused() -> None:
    """torch.load does not know mmap=."""
    load: Callable[..., Any] = torch.load

    def without_mmap(f: Any, map_location: Any = None, *, weights_only: bool | None = None) -> Any:
        return load(f, map_location=map_location, weights_only=weights_only)

    plant(torch, "load", without_mmap)


# ---- pickle ------------------------------------------------------------------------------------


@lie(
    "SER-012 SER-017 SER-023",
    "serialization/weights_only:* serialization/without_backend serialization/fresh_process",
    planted=True,
)
def tensors_are_rebuilt_by_the_backend() -> None:
    """Device tensors are pickled with a rebuild function of the backend, unknown elsewhere."""
    _reduce(torch.Tensor, lambda x, _: (_rebuild, (x.detach().cpu(), str(x.device))))


@lie("SER-013", "serialization/pickle:tensor", planted=True)
def pickled_tensors_are_host_tensors() -> None:
    """pickle writes a device tensor as a host tensor."""
    _reduce(torch.Tensor, lambda x, protocol: x.detach().cpu().__reduce_ex__(protocol))


@lie("SER-013", "serialization/pickle:parameter", planted=True)
def pickled_parameters_are_frozen() -> None:
    """A pickled Parameter does not require gradients any more."""
    _reduce(
        torch.nn.Parameter,
        lambda x, _: (torch.nn.Parameter, (x.detach(), False)),
    )


@lie("SER-013", "serialization/pickle:view", planted=True)
def pickled_views_are_compact() -> None:
    """pickle writes a view as a contiguous tensor."""
    original = torch.Tensor.__reduce_ex__

    def reduce(x: torch.Tensor, protocol: Any) -> Any:
        return original(x if x.is_contiguous() else x.detach().contiguous(), protocol)

    _reduce(torch.Tensor, reduce)


@lie("SER-013", "serialization/pickle:device", planted=True)
def pickled_devices_lose_their_index() -> None:
    """A device is pickled by its type."""
    copyreg.pickle(torch.device, lambda device: (torch.device, (device.type,)))


# ---- modules, optimizers, generators -----------------------------------------------------------


@lie("SER-014", "serialization/module:*")
def integer_scalars_are_not_copied(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """copy_ of an integer without dimensions does nothing: it is thought to be a host scalar."""
    if name == "copy_" and not args[0].dim() and not args[0].is_floating_point():
        return args[0]
    return call(*args, **kwargs)


@lie("SER-014", "serialization/module:state_dict serialization/module:from_cpu", planted=True)
def buffers_are_not_restored() -> None:
    """load_state_dict restores the parameters of a module and leaves its buffers."""
    original = torch.nn.Module.load_state_dict

    def load(self: torch.nn.Module, state_dict: Any, *args: Any, **options: Any) -> Any:
        return original(self, {**state_dict, **dict(self.named_buffers())}, *args, **options)

    plant(torch.nn.Module, "load_state_dict", load)


@lie("SER-015", "serialization/optimizer:adam", planted=True)
def the_step_is_not_restored() -> None:
    """An optimizer's load_state_dict loads its moments; the step count starts again."""
    original = torch.optim.Optimizer.load_state_dict

    def load(self: torch.optim.Optimizer, state_dict: Any) -> None:
        original(self, state_dict)
        for state in self.state.values():
            state["step"] = torch.zeros_like(state["step"])

    plant(torch.optim.Optimizer, "load_state_dict", load)


@lie("SER-015", "serialization/optimizer:sgd", planted=True)
def the_momentum_is_rounded() -> None:
    """torch.load keeps floating point numbers in bfloat16 on the way to the device."""
    _loaded(lambda x: x.bfloat16().float() if x.dtype == torch.float32 else x)


@lie("SER-016", "serialization/generator", planted=True)
def loading_moves_to_the_device() -> None:
    """torch.load puts every tensor on the device, generator states too."""
    _loaded(lambda x: x.to(BACKEND))


@lie("SER-016", "serialization/default_generator", planted=True)
def the_state_of_the_device_is_its_seed() -> None:
    """torch.<type>.get_rng_state() is the state of a generator with the same seed, at its start."""
    module = torch.get_device_module(BACKEND)

    def state(device: Any = BACKEND) -> torch.Tensor:
        seed = module._get_generator(device).initial_seed()
        return torch.Generator(device=BACKEND).manual_seed(seed).get_state()

    plant(module, "get_rng_state", state)


# ---- metadata of the backend -------------------------------------------------------------------


@lie("SER-019", "serialization/backend_meta_elsewhere:*", planted=True)
def backend_metadata_is_not_a_flag() -> None:
    """Metadata is saved as text, by a replaced function of torch, which torch alone cannot read."""
    original: Callable[[torch.Tensor], dict[str, Any]] = torch._utils.get_tensor_metadata

    def textual(tensor: torch.Tensor) -> dict[str, Any]:
        extra = {"puone.format": "blocked"} if _on_device(tensor) else {}
        return original(tensor) | extra

    plant(torch._utils, "get_tensor_metadata", textual)


@lie("SER-020", "serialization/backend_meta_kept:detach")
def detaching_makes_a_view(name: str, call: Call, args: Any, kwargs: Any) -> Any:
    """detach() makes a new tensor on the same memory, without what the backend attached."""
    if name == "detach":
        return torch.ops.aten.alias.default(args[0])
    return call(*args, **kwargs)
