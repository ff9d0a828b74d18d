# SPDX-License-Identifier: BSD-3-Clause
"""C++ extensions with kernels of their own for the device.

The host code is compiled by the C++ compiler, by torch.utils.cpp_extension. Device sources (`.pu`)
are written in the dialect of the backend's own kernels (csrc/kernels/module.h); they become a part
of the extension, and the active driver compiles them at the first launch, so that one extension
runs on every driver. Host code includes `torch_puone/extension.h`; docs/integration/extensions.md
explains an example.

RFC-0039 asks for such a builder as NewDeviceCppExtension.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.utils import cpp_extension as _torch
from torch.utils.cpp_extension import BuildExtension

from . import _C

__all__ = [
    "BuildExtension",
    "PuoneExtension",
    "compile_device_sources",
    "include_paths",
    "library_paths",
    "load",
    "load_inline",
]

#: The suffix of device sources.
DEVICE_SUFFIX = ".pu"
_HERE = Path(__file__).parent
_DELIMITER = "device_source"  # at most 16 characters


def include_paths() -> list[str]:
    """The directories with the headers of extensions: beside the package, or in a checkout."""
    installed = _HERE / "include"
    checkout = _HERE.parents[1] / "csrc" / "extension" / "include"
    return [str(installed if installed.is_dir() else checkout)]


def library_paths() -> list[str]:
    """The directory of libtorch_puone.so, which extensions are linked with."""
    return [str(Path(_C.library_path()).parent)]


def compile_device_sources(sources: Sequence[str | os.PathLike[str]], target: str = "") -> bytes:
    """Compile device sources as the first launch does: the image for `target`.

    Needs no device, and finds mistakes before a program runs. `target` is a name of the active
    driver, such as "sm_90" for cuda; its usual one if empty. Raises RuntimeError with the
    compiler's text, NotImplementedError if the driver cannot compile.
    """
    return _C.compile_module(_joined(sources), target or _C.module_target(-1)[0], contracts=True)


def load(
    name: str,
    sources: str | Sequence[str],
    extra_ldflags: Sequence[str] = (),
    extra_include_paths: Sequence[str] = (),
    build_directory: str | None = None,
    **kwargs: Any,
) -> Any:
    """As torch.utils.cpp_extension.load, for `sources` that may have device sources among them.

    Without build_directory, it is built where extensions for other devices are not, below
    TORCH_EXTENSIONS_DIR if that is set.
    """
    host, device = _split([sources] if isinstance(sources, str) else sources)
    directory = _build_directory(name, build_directory)
    generated = directory / "device_source.cpp"
    _write_if_changed(generated, _embedded(_joined(device)))
    return _torch.load(
        name,
        [*host, str(generated)],
        extra_ldflags=[*_linking(), *extra_ldflags],
        extra_include_paths=[*include_paths(), *extra_include_paths],
        build_directory=str(directory),
        **kwargs,
    )


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    device_sources: str | Sequence[str] = "",
    extra_ldflags: Sequence[str] = (),
    extra_include_paths: Sequence[str] = (),
    build_directory: str | None = None,
    **kwargs: Any,
) -> Any:
    """As torch.utils.cpp_extension.load_inline, with `device_sources` as texts beside those of C++.

    The sources of C++ find `torch_puone/extension.h` included.
    """
    host = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    device = [device_sources] if isinstance(device_sources, str) else list(device_sources)
    return _torch.load_inline(
        name,
        ["#include <torch_puone/extension.h>", *host, _embedded("\n".join(device))],
        extra_ldflags=[*_linking(), *extra_ldflags],
        extra_include_paths=[*include_paths(), *extra_include_paths],
        build_directory=str(_build_directory(name, build_directory)),
        **kwargs,
    )


def PuoneExtension(name: str, sources: Sequence[str], **kwargs: Any) -> Any:  # noqa: N802 - as CUDAExtension
    """A setuptools.Extension, as torch.utils.cpp_extension.CppExtension, with device sources.

    Use it in setup.py with `cmdclass={"build_ext": BuildExtension}`. Device sources are read when
    it is called, and written as C++ below `build/`.
    """
    host, device = _split(sources)
    generated = Path("build") / "puone" / f"{name}_device_source.cpp"
    generated.parent.mkdir(parents=True, exist_ok=True)
    _write_if_changed(generated, _embedded(_joined(device)))
    kwargs["include_dirs"] = [*include_paths(), *(kwargs.get("include_dirs") or [])]
    kwargs["library_dirs"] = [*library_paths(), *(kwargs.get("library_dirs") or [])]
    kwargs["libraries"] = ["torch_puone", *(kwargs.get("libraries") or [])]
    kwargs["depends"] = [*device, *(kwargs.get("depends") or [])]
    return _torch.CppExtension(name, [*host, str(generated)], **kwargs)


def _split(sources: Sequence[str | os.PathLike[str]]) -> tuple[list[str], list[str]]:
    """The host's sources, and those of the device."""
    paths = [os.fspath(source) for source in sources]
    device = [path for path in paths if path.endswith(DEVICE_SUFFIX)]
    return [path for path in paths if path not in device], device


def _joined(sources: Sequence[str | os.PathLike[str]]) -> str:
    """One text, in which the compiler's messages name files and lines."""
    parts = (f'#line 1 "{os.fspath(path)}"\n{Path(path).read_text()}' for path in sources)
    return "\n".join(parts)


def _embedded(source: str) -> str:
    """C++ that defines what torch_puone/extension.h declares."""
    if f"){_DELIMITER}" in source:
        raise ValueError(f"device sources may not contain {_DELIMITER!r}")
    return (
        "#include <torch_puone/extension.h>\n"
        "const char* const puone::extension::kDeviceSource =\n"
        f'R"{_DELIMITER}({source}){_DELIMITER}";\n'
    )


def _linking() -> list[str]:
    return [flag for path in library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")] + [
        "-ltorch_puone"
    ]


def _build_directory(name: str, given: str | None) -> Path:
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or _torch.get_default_build_root()
    directory = Path(given or Path(root) / "puone" / name)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _write_if_changed(file: Path, text: str) -> None:
    """A file that keeps its time is not compiled again."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
