# SPDX-License-Identifier: BSD-3-Clause
"""Serialization: torch.save and torch.load, map_location, sharing, state dicts, pickle."""

from __future__ import annotations

import io
import json
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from torch_conformance.authoring.api import (
    DTYPES,
    Device,
    backend_meta,
    check,
    raised,
    ramp,
    why_ended,
)

_NEEDS = ("serialization",)


def _save(value: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


def _again(value: Any, **options: Any) -> Any:
    """What torch.load gives for what torch.save made of `value`."""
    return torch.load(_save(value), **options)


@contextmanager
def _file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "saved.pt"


def _home(dev: Device) -> torch.device:
    """The device, with its index where it has one, on which a new tensor lives."""
    return torch.empty(0, device=dev.device()).device


# ---- tensors ---------------------------------------------------------------------------------


@check("serialization/dtype", "SER-001", needs=_NEEDS, dtypes=DTYPES)
def tensors_of_every_dtype_come_back(dev: Device, dtype: torch.dtype) -> None:
    """A saved device tensor is loaded on its device with its values."""
    source = ramp((5, 7), dtype)
    made = _again(source.to(dev.device()))
    assert made.device == _home(dev)
    dev.assert_equal(made, source)


_SHAPES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda x: x.t(),
    "sliced": lambda x: x[1::2, ::3],
    "offset": lambda x: x.flatten()[5:],
    "expanded": lambda x: x[:1].expand(4, -1),
    "zero_dim": lambda x: x[2, 3],
    "empty": lambda x: x[:0],
    "empty_new": lambda x: x.new_empty(0, 3),
    "channels_last": lambda x: x.view(2, 3, 2, 2).contiguous(memory_format=torch.channels_last),
}


@check("serialization/view", "SER-002", needs=_NEEDS, cases=tuple(_SHAPES))
def views_keep_geometry_and_values(dev: Device, case: str) -> None:
    """Sizes, strides, offset and the whole storage of a view are kept."""
    source = ramp((4, 6))
    view = _SHAPES[case](source.to(dev.device()))
    made = _again(view)
    assert (made.shape, made.stride()) == (view.shape, view.stride())
    assert made.storage_offset() == view.storage_offset()
    assert made.untyped_storage().nbytes() == view.untyped_storage().nbytes()
    dev.assert_equal(made, _SHAPES[case](source))


@check("serialization/lazy", "SER-003", needs=(*_NEEDS, "complex64"), cases=("conj", "neg", "imag"))
def conjugate_and_negative_views_keep_their_meaning(dev: Device, case: str) -> None:
    """A conjugate or negative view is loaded with the same values, bit or no bit."""
    source = ramp((4, 6), torch.complex64)
    views: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "conj": lambda x: x.conj(),
        "neg": lambda x: torch._neg_view(x),
        "imag": lambda x: x.conj().imag,
    }
    made = _again(views[case](source.to(dev.device())))
    assert made.device == _home(dev)
    expected = views[case](source).resolve_conj().resolve_neg()
    dev.assert_equal(made.resolve_conj().resolve_neg(), expected)


@check("serialization/sharing:views", "SER-004", needs=_NEEDS)
def views_of_a_storage_share_one_after_loading(dev: Device) -> None:
    """A tensor and its view, saved together, share a storage again."""
    x = ramp((4, 6)).to(dev.device())
    first, second = _again((x, x.t()[1:]))
    first.fill_(2)
    dev.assert_equal(second, torch.full((5, 4), 2.0))


@check("serialization/sharing:same", "SER-004", needs=_NEEDS)
def a_tensor_saved_twice_is_loaded_once(dev: Device) -> None:
    """A tensor that is saved twice has one storage after loading."""
    x = ramp((4, 6)).to(dev.device())
    first, second = _again([x, x])
    assert first.data_ptr() == second.data_ptr()


@check("serialization/sharing:tied", "SER-004", needs=_NEEDS)
def tied_weights_are_tied_after_loading(dev: Device) -> None:
    """A parameter and a tensor of its storage share one again."""
    x = ramp((4, 6)).to(dev.device())
    loaded = _again({"embedding": torch.nn.Parameter(x), "head": x.view(24)})
    assert loaded["embedding"].data_ptr() == loaded["head"].data_ptr()


@check("serialization/sharing:separate", "SER-004", needs=_NEEDS)
def separate_tensors_are_separate_after_loading(dev: Device) -> None:
    """Tensors of equal values that share no storage share none after loading."""
    x = ramp((4, 6)).to(dev.device())
    first, second = _again((x, x.clone()))
    first.fill_(2)
    dev.assert_equal(second, ramp((4, 6)))


@check("serialization/attributes:requires_grad", "SER-005", needs=_NEEDS)
def requires_grad_is_kept(dev: Device) -> None:
    """A tensor that requires grad is loaded as a leaf that requires grad."""
    made = _again(ramp((3,)).to(dev.device(), copy=True).requires_grad_())
    assert made.requires_grad
    assert made.is_leaf
    assert made.device == _home(dev)
    dev.assert_equal(made, ramp((3,)))


@check("serialization/attributes:parameter", "SER-005", needs=_NEEDS)
def parameters_are_loaded_as_such(dev: Device) -> None:
    """A Parameter that does not require grad is loaded as one."""
    x = ramp((3,)).to(dev.device())
    made = _again(torch.nn.Parameter(x, requires_grad=False))
    assert isinstance(made, torch.nn.Parameter)
    assert not made.requires_grad
    assert made.device == _home(dev)
    dev.assert_equal(made, ramp((3,)))


@check("serialization/attributes:buffer", "SER-005", needs=_NEEDS)
def buffers_are_loaded_as_such(dev: Device) -> None:
    """A Buffer is loaded as one."""
    made = _again({"buffer": torch.nn.Buffer(ramp((3,)).to(dev.device()))})["buffer"]
    assert isinstance(made, torch.nn.Buffer)
    assert made.device == _home(dev)
    dev.assert_equal(made, ramp((3,)))


@check("serialization/container", "SER-001", needs=_NEEDS)
def nested_containers_with_mixed_devices_come_back(dev: Device) -> None:
    """Dicts, lists, tuples and numbers around device and host tensors keep their structure."""
    saved = {
        "a": [ramp((3,)).to(dev.device()), (ramp((2,)), 5)],
        "b": {"c": 1.5, "d": None, "e": torch.float16, "f": torch.Size([2, 3])},
        "g": _home(dev),
    }
    made = _again(saved)
    assert made["a"][0].device == _home(dev)
    assert made["a"][1][0].device.type == "cpu"
    dev.assert_equal(made["a"][0], ramp((3,)))
    assert made["a"][1][1] == 5
    assert made["b"] == saved["b"]
    assert made["g"] == saved["g"]


@check("serialization/pending:here", "SER-006", needs=(*_NEEDS, "delay"))
def saving_waits_for_pending_work(dev: Device) -> None:
    """torch.save writes what work queued before it will have written."""
    _save_pending(dev, dev.device())


@check("serialization/pending:elsewhere", "SER-006", needs=(*_NEEDS, "delay"))
def saving_waits_for_pending_work_of_another_device(dev: Device) -> None:
    """torch.save of a tensor of another device than the current one waits for that device."""
    dev.require("multi_device")
    _save_pending(dev, dev.device(1))


def _save_pending(dev: Device, device: torch.device) -> None:
    x = torch.zeros(1000, device=device)
    dev.synchronize()
    with torch.accelerator.device_index(x.device.index) if dev.is_accelerator else nullcontext():
        dev.delay(40)
    x.fill_(6)
    dev.assert_equal(_again(x), torch.full((1000,), 6.0))


@check("serialization/large", "SER-001", needs=_NEEDS)
def a_storage_of_several_megabytes_is_complete(dev: Device) -> None:
    """Every byte of an 8 MB tensor is written and read."""
    source = torch.arange(1 << 20, dtype=torch.int64)
    assert torch.equal(_again(source.to(dev.device())).cpu(), source)


# ---- map_location ----------------------------------------------------------------------------

#: map_location for tensors of a device.
_TO_CPU: dict[str, Callable[[torch.device], Any]] = {
    "string": lambda home: "cpu",
    "device": lambda home: torch.device("cpu"),
    "callable": lambda home: lambda storage, location: storage,
    "map": lambda home: {str(home): "cpu"},
}


@check("serialization/to_cpu", "SER-007", needs=_NEEDS, cases=_TO_CPU)
def device_tensors_are_loaded_on_the_cpu(dev: Device, case: str) -> None:
    """map_location as string, device, callable or map brings a device tensor to the CPU."""
    source = ramp((4, 6))
    made = _again(source.to(dev.device()), map_location=_TO_CPU[case](_home(dev)))
    assert made.device.type == "cpu"
    assert torch.equal(made, source)


@check(
    "serialization/to_device",
    "SER-007",
    needs=_NEEDS,
    cases=("string", "device", "map", "callable"),
)
def host_tensors_are_loaded_on_the_device(dev: Device, case: str) -> None:
    """map_location as string, device, map or callable brings a host tensor to the device."""
    source = ramp((4, 6))
    targets: dict[str, Any] = {
        "string": dev.type,
        "device": dev.device(),
        "map": {"cpu": str(_home(dev))},
        "callable": lambda storage, location: storage.to(device=dev.device()),
    }
    made = _again((source, source.t()), map_location=targets[case])
    assert made[0].device == _home(dev)
    assert made[0].data_ptr() == made[1].data_ptr()
    dev.assert_equal(made[0], source)


@check("serialization/location", "SER-021", needs=_NEEDS)
def the_location_is_the_device_string(dev: Device) -> None:
    """The location stored with a storage is the device as str() shows it."""
    seen: list[str] = []

    def remember(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage

    _again(ramp((3,)).to(dev.device()), map_location=remember)
    assert seen == [str(_home(dev))]


@check("serialization/other_index", "SER-009", needs=(*_NEEDS, "multi_device"))
def tensors_return_to_their_own_devices(dev: Device) -> None:
    """Tensors saved from several devices are loaded on the same devices again."""
    saved = [ramp((3,)).to(dev.device(i)) for i in (0, 1)]
    made = _again(saved)
    assert [x.device for x in made] == [dev.device(0), dev.device(1)]
    for x in made:
        dev.assert_equal(x, ramp((3,)))


#: Where a tensor is saved, and map_location that brings it from there to the second device.
_TO_SECOND: dict[str, Callable[[torch.device, torch.device], tuple[Any, Any]]] = {
    "string": lambda first, second: (first, str(second)),
    "map": lambda first, second: (first, {str(first): str(second)}),
    "cpu": lambda first, second: ("cpu", str(second)),
}


@check("serialization/map_index", "SER-009", needs=(*_NEEDS, "multi_device"), cases=_TO_SECOND)
def tensors_are_loaded_on_another_device(dev: Device, case: str) -> None:
    """map_location moves tensors between device indices."""
    second = dev.device(1)
    home, location = _TO_SECOND[case](dev.device(0), second)
    made = _again(ramp((3,)).to(home), map_location=location)
    assert made.device == second
    dev.assert_equal(made, ramp((3,)))


@check("serialization/bad_index:map", "SER-010", needs=(*_NEEDS, "accelerator"))
def a_device_that_does_not_exist_is_named(dev: Device) -> None:
    """map_location with an index past the last device raises an error that names it."""
    buffer = _save(ramp((3,)))
    _missing_device_is_named(dev, lambda: torch.load(buffer, map_location=_missing(dev)))


@check("serialization/bad_index:stored", "SER-010", needs=(*_NEEDS, "accelerator"))
def a_stored_device_that_does_not_exist_is_named(dev: Device) -> None:
    """A file that names an index past the last device raises an error that names it."""
    missing, tag = _missing(dev), torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: missing
    try:
        buffer = _save(ramp((3,)))
    finally:
        torch.serialization.location_tag = tag
    _missing_device_is_named(dev, lambda: torch.load(buffer))


def _missing(dev: Device) -> str:
    if dev.count > 97:
        dev.unsupported("the backend claims more than 97 devices")
    return f"{dev.type}:97"


def _missing_device_is_named(dev: Device, load: Callable[[], Any]) -> None:
    error = raised(load)
    assert isinstance(error, RuntimeError)
    assert "97" in str(error)
    assert "map_location" in str(error)
    assert torch.load(_save(ramp((3,)).to(dev.device()))).device == _home(dev)


@check("serialization/current_device", "SER-022", needs=(*_NEEDS, "multi_device", "device_guard"))
def loading_leaves_the_current_device(dev: Device) -> None:
    """Loading a tensor on device 1 does not change the current device."""
    before = torch.accelerator.current_device_index()
    _again(ramp((3,)).to(dev.device(1)))
    assert torch.accelerator.current_device_index() == before


# ---- ways to save ----------------------------------------------------------------------------


#: Options of torch.save and of torch.load.
_FILES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "path": ({}, {}),
    "mmap": ({}, {"mmap": True}),
    "mmap_cpu": ({}, {"mmap": True, "map_location": "cpu"}),
    "legacy": ({"_use_new_zipfile_serialization": False}, {}),
}


@check("serialization/file", "SER-011", needs=_NEEDS, cases=_FILES)
def files_are_written_and_read(dev: Device, case: str) -> None:
    """Saving to a path, memory-mapped loading and the legacy format work."""
    to_save, to_load = _FILES[case]
    source = ramp((4, 6))
    x = source.to(dev.device())
    with _file() as path:
        torch.save([x, x.t()], path, **to_save)
        made = torch.load(path, **to_load)
        assert made[0].device == torch.device(to_load.get("map_location", _home(dev)))
        assert made[0].data_ptr() == made[1].data_ptr()
        dev.assert_equal(made[0], source)
        dev.assert_equal(made[1], source.t())


@check("serialization/file_content", "SER-008", needs=_NEEDS)
def the_file_holds_the_plain_bytes(dev: Device) -> None:
    """The data record of a saved device tensor is the tensor's bytes in host byte order."""
    source = ramp((11,), torch.int32)
    with zipfile.ZipFile(_save(source.to(dev.device()))) as archive:
        records = [name for name in archive.namelist() if "/data/" in name]
        assert len(records) == 1
        assert archive.read(records[0]) == source.numpy().tobytes()


@check("serialization/weights_only", "SER-012", needs=_NEEDS, cases=("default", "explicit", "off"))
def safe_and_full_loading_agree(dev: Device, case: str) -> None:
    """Device tensors and parameters load with weights_only on (the default) and off."""
    options: dict[str, Any] = {"default": {}, "explicit": {"weights_only": True}}.get(
        case, {"weights_only": False}
    )
    saved = {
        "w": torch.nn.Parameter(ramp((3, 2)).to(dev.device())),
        "x": ramp((2,)).to(dev.device()),
    }
    made = torch.load(_save(saved), **options)
    assert made["w"].device == _home(dev)
    dev.assert_equal(made["w"], ramp((3, 2)))
    dev.assert_equal(made["x"], ramp((2,)))


@check("serialization/storage", "SER-013", needs=_NEEDS)
def storages_are_saved_as_such(dev: Device) -> None:
    """An UntypedStorage on the device is saved and loaded on it."""
    source = ramp((6,), torch.int16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it comes back as the deprecated TypedStorage of bytes
        made = _again(source.to(dev.device()).untyped_storage(), weights_only=False)
        assert made.device == _home(dev)
        assert made.cpu().tolist() == source.untyped_storage().tolist()


_PICKLED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tensor": lambda x: x,
    "view": lambda x: x.t()[1:],
    "parameter": torch.nn.Parameter,
}


@check("serialization/pickle", "SER-013", needs=_NEEDS, cases=_PICKLED)
def tensors_can_be_pickled(dev: Device, case: str) -> None:
    """pickle of tensors and parameters works without torch.save."""
    saved = _PICKLED[case](ramp((4, 6)).to(dev.device()))
    made = pickle.loads(pickle.dumps(saved))
    assert made.device == saved.device
    assert type(made) is type(saved)
    assert made.requires_grad == saved.requires_grad
    assert (made.stride(), made.storage_offset()) == (saved.stride(), saved.storage_offset())
    dev.assert_equal(made, saved.detach().cpu())


@check("serialization/pickle:device", "SER-013", needs=_NEEDS)
def devices_can_be_pickled(dev: Device) -> None:
    """pickle of a device works without torch.save."""
    device = _home(dev)
    assert pickle.loads(pickle.dumps(device)) == device


@check("serialization/skip_data", "SER-011", needs=_NEEDS)
def data_can_be_left_out(dev: Device) -> None:
    """Under torch.serialization.skip_data a checkpoint keeps names, shapes and data types."""
    with torch.serialization.skip_data():
        buffer = _save({"w": ramp((3, 5), torch.int16).to(dev.device())})
    made = torch.load(buffer)["w"]
    assert (made.shape, made.dtype, made.device) == ((3, 5), torch.int16, _home(dev))


@check("serialization/fake_load", "SER-011", needs=_NEEDS)
def checkpoints_load_on_meta(dev: Device) -> None:
    """map_location="meta" gives shapes of a device checkpoint without its data."""
    made = _again(ramp((3, 5)).to(dev.device()), map_location="meta")
    assert made.device.type == "meta"
    assert made.shape == (3, 5)


# ---- modules, optimizers ---------------------------------------------------------------------


def _model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU(), torch.nn.Linear(5, 2)
    )


#: Is the state dict saved on the device? Is it loaded there? Is it loaded with assign=True?
_TRAVELS = {
    "state_dict": (True, True, False),
    "to_cpu": (True, False, False),
    "from_cpu": (False, True, False),
    "assign": (True, True, True),
}


@check("serialization/module", "SER-014", needs=_NEEDS, cases=_TRAVELS)
def state_dicts_travel(dev: Device, case: str) -> None:
    """A state dict is saved on one side and loaded into a module on the same or the other."""
    from_device, to_device, assign = _TRAVELS[case]
    home = dev.device() if to_device else torch.device("cpu")
    source = _model()
    with torch.no_grad():
        for value in source.state_dict().values():  # none as a new module has it
            value.copy_(ramp(value.shape, value.dtype) + 2)
    expected = {name: value.clone() for name, value in source.state_dict().items()}
    saved = source.to(dev.device()).state_dict() if from_device else source.state_dict()
    target = _model().to(home)
    target.load_state_dict(_again(saved, map_location=None if to_device else "cpu"), assign=assign)
    for name, value in target.state_dict().items():
        assert value.device.type == home.type
        dev.assert_equal(value, expected[name])


@check("serialization/whole_module", "SER-014", needs=_NEEDS)
def whole_modules_are_saved(dev: Device) -> None:
    """A module object saved whole computes the same after loading."""
    module = _model().eval().to(dev.device())
    x = ramp((4, 6)).to(dev.device())
    made = _again(module, weights_only=False)
    dev.assert_equal(made(x), module(x).detach().cpu())


#: What makes an optimizer, and whether training resumes on the device.
_RESUMED: dict[str, tuple[Callable[[Any], torch.optim.Optimizer], bool]] = {
    "adam": (lambda parameters: torch.optim.Adam(parameters, lr=0.1), True),
    "sgd": (lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), True),
    "to_cpu": (lambda parameters: torch.optim.Adam(parameters, lr=0.1), False),
}


@check("serialization/optimizer", "SER-015", needs=_NEEDS, cases=_RESUMED)
def training_resumes_from_a_checkpoint(dev: Device, case: str) -> None:
    """Module and optimizer state saved in mid-training continue exactly as without the save."""
    make_optimizer, on_device = _RESUMED[case]

    def make(device: torch.device) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(3)
        # Without a batch norm, before which a bias has no gradient but rounding errors.
        module = torch.nn.Sequential(
            torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)
        ).to(device)
        return module, make_optimizer(module.parameters())

    def steps(module: torch.nn.Module, optimizer: torch.optim.Optimizer, device: Any) -> None:
        for _ in range(2):
            optimizer.zero_grad()
            module((ramp((8, 6)) / 50).to(device)).square().sum().backward()
            optimizer.step()

    module, optimizer = make(dev.device())
    steps(module, optimizer, dev.device())
    home = dev.device() if on_device else torch.device("cpu")
    saved = _again([module.state_dict(), optimizer.state_dict()], map_location=home)
    again, resumed = make(home)
    again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    for state in resumed.state.values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and name != "step":
                assert value.device.type == home.type, name
    steps(module, optimizer, dev.device())
    steps(again, resumed, home)
    for one, other in zip(module.parameters(), again.parameters(), strict=True):
        dev.assert_close(other, one.detach().cpu(), rtol=1e-4, atol=1e-5)


@check("serialization/default_generator", "SER-016", needs=(*_NEEDS, "generator", "accelerator"))
def the_state_of_the_device_is_saved(dev: Device) -> None:
    """A saved torch.<type>.get_rng_state() continues the device's sequence after loading."""
    with torch.random.fork_rng(devices=[0], device_type=dev.type):
        torch.rand(5, device=dev.device(0))
        buffer = _save({"rng": dev.module.get_rng_state(0)})
        expected = torch.rand(5, device=dev.device(0)).cpu()
        dev.module.set_rng_state(torch.load(buffer)["rng"], 0)
        dev.assert_equal(torch.rand(5, device=dev.device(0)), expected)


@check("serialization/generator", "SER-016", needs=(*_NEEDS, "generator"))
def generator_states_are_saved(dev: Device) -> None:
    """A saved generator state continues the sequence after loading."""
    generator = torch.Generator(device=dev.device()).manual_seed(8)
    torch.rand(5, device=dev.device(), generator=generator)
    state = _again(generator.get_state())
    expected = torch.rand(5, device=dev.device(), generator=generator).cpu()
    other = torch.Generator(device=dev.device())
    other.set_state(state)
    dev.assert_equal(torch.rand(5, device=dev.device(), generator=other), expected)


# ---- other processes -------------------------------------------------------------------------

_WITHOUT_BACKEND = """
import json, sys, torch
loaded = torch.load(sys.argv[1], map_location="cpu")
try:
    torch.load(sys.argv[1])
    error = ""
except Exception as problem:
    error = str(problem)
print("RESULT", json.dumps([loaded.tolist(), loaded.device.type, error]))
"""

_WITH_BACKEND = """
import json, sys, torch
loaded = torch.load(sys.argv[1])
print("RESULT", json.dumps([loaded.cpu().tolist(), str(loaded.device)]))
"""


def _result(dev: Device, code: str, path: Path, **options: Any) -> Any:
    """What the RESULT line of a fresh interpreter holds; backends may print more around it."""
    done = dev.python(code, args=(str(path),), **options)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise AssertionError(f"no result; {why_ended(done)}")


@check("serialization/without_backend", "SER-023", needs=(*_NEEDS, "accelerator"))
def a_process_without_the_backend_can_load_on_the_cpu(dev: Device) -> None:
    """Where the backend is not loaded, map_location="cpu" works and its absence says so."""
    with _file() as path:
        torch.save(ramp((5,)).to(dev.device()), path)
        values, home, error = _result(
            dev,
            _WITHOUT_BACKEND,
            path,
            backend="none",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        )
    assert values == ramp((5,)).tolist()
    assert home == "cpu"
    assert dev.type in error.lower(), error


@check("serialization/fresh_process", "SER-017", needs=_NEEDS)
def a_fresh_process_loads_on_the_device(dev: Device) -> None:
    """A checkpoint written by one process is loaded on the device by another."""
    with _file() as path:
        torch.save(ramp((5,)).to(dev.device()), path)
        values, home = _result(dev, _WITH_BACKEND, path)
    assert values == ramp((5,)).tolist()
    assert home == str(_home(dev))


# ---- backend metadata ------------------------------------------------------------------------

_META_NEEDS = (*_NEEDS, "backend_meta")


def _with_meta(dev: Device) -> torch.Tensor:
    """A device tensor that has backend metadata."""
    x = ramp((5,)).to(dev.device(), copy=True)
    dev.attach_backend_meta(x)
    assert backend_meta(x), "the descriptor's callable attached nothing that a hook would save"
    return x


_Pair = tuple[torch.Tensor, torch.Tensor]


def _buffers_again(pair: _Pair) -> Any:
    module = torch.nn.Module()
    module.register_buffer("x", pair[0])
    module.register_buffer("plain", pair[1])
    return _again(module.state_dict()).values()


_META_AGAIN: dict[str, Callable[[_Pair], Any]] = {
    "zip": lambda pair: _again(pair, weights_only=True),
    "legacy": lambda pair: torch.load(_save(pair, _use_new_zipfile_serialization=False)),
    "unsafe": lambda pair: _again(pair, weights_only=False),
    "pickle": lambda pair: pickle.loads(pickle.dumps(pair)),
    "parameter": lambda pair: _again([torch.nn.Parameter(x) for x in pair]),
    "state_dict": _buffers_again,
}


def _verify_meta(dev: Device, loaded: Any, saved: _Pair, home: torch.device) -> None:
    for made, source in zip(loaded, saved, strict=True):
        assert made.device == home
        assert backend_meta(made) == backend_meta(source)
        assert made.is_conj() == source.is_conj()
        dev.assert_equal(made.resolve_conj(), dev.cpu(source).resolve_conj())


@check("serialization/backend_meta", "SER-018", needs=_META_NEEDS, cases=_META_AGAIN)
def backend_metadata_is_saved_and_loaded(dev: Device, case: str) -> None:
    """What the backend attached to a tensor is there again after loading, and only there."""
    pair = _with_meta(dev), ramp((5,)).to(dev.device(), copy=True)
    _verify_meta(dev, _META_AGAIN[case](pair), pair, _home(dev))


@check("serialization/backend_meta:conj", "SER-018", needs=(*_META_NEEDS, "complex64"))
def backend_metadata_of_conjugate_views_is_kept(dev: Device) -> None:
    """What the backend attached to a conjugate view is there again after loading."""
    x = ramp((5,), torch.complex64).to(dev.device()).conj()
    dev.attach_backend_meta(x)
    assert backend_meta(x)
    pair = x, ramp((5,)).to(dev.device(), copy=True)
    _verify_meta(dev, _again(pair), pair, _home(dev))


@check("serialization/backend_meta:second_device", "SER-018", needs=(*_META_NEEDS, "multi_device"))
def backend_metadata_moves_between_devices(dev: Device) -> None:
    """What the backend attached to a tensor is there again after loading on another device."""
    pair = _with_meta(dev), ramp((5,)).to(dev.device(), copy=True)
    _verify_meta(dev, _again(pair, map_location=dev.device(1)), pair, dev.device(1))


@check("serialization/backend_meta_elsewhere:cpu", "SER-019", needs=_META_NEEDS)
def backend_metadata_is_no_obstacle_on_the_cpu(dev: Device) -> None:
    """A tensor saved with backend metadata is loaded on the CPU."""
    made = _again(_with_meta(dev), map_location="cpu")
    assert made.device.type == "cpu"
    assert made.tolist() == ramp((5,)).tolist()


@check("serialization/backend_meta_elsewhere:meta", "SER-019", needs=_META_NEEDS)
def backend_metadata_is_no_obstacle_on_meta(dev: Device) -> None:
    """A tensor saved with backend metadata is loaded on meta."""
    made = _again(_with_meta(dev), map_location="meta")
    assert made.device.type == "meta"
    assert made.shape == (5,)


@check(
    "serialization/backend_meta_elsewhere:without_backend",
    "SER-019",
    needs=(*_META_NEEDS, "accelerator"),
)
def backend_metadata_is_no_obstacle_without_the_backend(dev: Device) -> None:
    """A file with backend metadata loads on the CPU in a process without the backend."""
    with _file() as path:
        torch.save(_with_meta(dev), path)
        values, home, _ = _result(
            dev,
            _WITHOUT_BACKEND,
            path,
            backend="none",
            env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        )
    assert (values, home) == (ramp((5,)).tolist(), "cpu")


def _assigned(x: torch.Tensor) -> torch.Tensor:
    other = torch.zeros_like(x)
    other.data = x
    return other


_SAME_TENSOR: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "parameter": torch.nn.Parameter,
    "assigned": _assigned,
}


@check(
    "serialization/backend_meta_kept",
    "SER-020",
    needs=("backend_meta",),
    cases=tuple(_SAME_TENSOR),
)
def backend_metadata_goes_with_its_tensor(dev: Device, case: str) -> None:
    """The same tensor in another object has the same backend metadata."""
    x = _with_meta(dev)
    assert backend_meta(_SAME_TENSOR[case](x)) == backend_meta(x)
    assert backend_meta(x)
