# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C and C++ sources that follow from the kernel contract, kernels.yaml.

    python csrc/hal/generate_kernels.py OUTPUT_FOLDER

CMake runs it when the project is configured, and again when this file or the contract changes. A
file that would not change is left alone, so that nothing is compiled again for it. Needs PyYAML.

    runtime/kernels.h   a typed handle for each kernel: puone::kernel::gemm
    kernels/contract.h  what the contract says of each kernel, for the drivers
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import yaml
except ImportError:
    sys.exit(
        f"generate_kernels.py needs PyYAML, which {sys.executable} does not have: "
        f"{sys.executable} -m pip install pyyaml"
    )

CONTRACT = Path(__file__).with_name("kernels.yaml")

# The values of puone_dtype (kernels/args.h).
ELEMENT_TYPES = {
    name: value
    for value, name in enumerate(
        "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex32 complex64 complex128".split()
    )
}
ALL_TYPES = (1 << 64) - 1

# The header of each argument struct.
HEADERS = {
    "kernels/args.h": "copy copy_bits fill delay",
    "kernels/args/convolution.h": "convolution convolution_weight",
    "kernels/args/elementwise.h": "elementwise",
    "kernels/args/embedding.h": "embedding_bag",
    "kernels/args/indexing.h": "indexing masked_fill nonzero_offsets nonzero packing assert_nonzero",
    "kernels/args/matmul.h": "gemm dot",
    "kernels/args/multi_tensor.h": "foreach fused amp_unscale amp_update_scale",
    "kernels/args/normalization.h": "softmax group_norm batch_norm nll_loss",
    "kernels/args/order.h": "order",
    "kernels/args/pool.h": "pool",
    "kernels/args/random.h": "random",
    "kernels/args/reduction.h": "reduce scan",
    "kernels/args/resample.h": "resample",
    "kernels/args/sampling.h": "multinomial randperm",
    "kernels/args/search.h": "search_sorted",
    "kernels/args/shape.h": "cat triangle triangle_indices sequence repeat",
}
STRUCTS = {f"puone_{name}_args" for names in HEADERS.values() for name in names.split()}


class ContractError(ValueError):
    """kernels.yaml contradicts itself."""


@dataclass(frozen=True)
class Kernel:
    name: str
    family: str
    args: str
    version: int
    element_types: int  # bits, as puone_kernel_info.element_types
    computes: str


@dataclass(frozen=True)
class Contract:
    version: int
    kernels: tuple[Kernel, ...]  # sorted by name


def load(path: Path = CONTRACT) -> Contract:
    """The contract at `path`. Raises ContractError if it contradicts itself."""
    data = yaml.load(path.read_text(), Loader=_UniqueKeys)
    sets = data["type_sets"]
    kernels = [
        _kernel(name, family, {"args": rows.get("args"), **row}, sets)
        for family, rows in data["families"].items()
        for name, row in rows["kernels"].items()
    ]
    names = [kernel.name for kernel in kernels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ContractError(f"declared twice: {', '.join(twice)}")
    return Contract(data["version"], tuple(sorted(kernels, key=lambda kernel: kernel.name)))


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that a mapping already has, of which YAML would keep the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise ContractError(f"{node.start_mark}: {key} is declared twice")
        return dict(super().construct_mapping(node, deep=deep))


def _kernel(name: str, family: str, row: dict[str, Any], sets: dict[str, list[str]]) -> Kernel:
    if row["args"] not in STRUCTS:
        raise ContractError(f"{name}: no argument struct is named {row['args']}")
    return Kernel(
        name=name,
        family=family,
        args=row["args"],
        version=row.get("version", 1),
        element_types=_types(row["types"], sets),
        computes=row["computes"],
    )


def _types(named: str | list[str], sets: dict[str, list[str]]) -> int:
    """The bits of element types that are named one by one or by sets of them."""
    if named == "any":
        return ALL_TYPES
    bits = 0
    for name in [named] if isinstance(named, str) else named:
        if name in ELEMENT_TYPES:
            bits |= 1 << ELEMENT_TYPES[name]
        elif name in sets:
            bits |= _types(sets[name], sets)
        else:
            raise ContractError(f"no element type and no set of them is named {name}")
    return bits


HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
// Generated from csrc/hal/kernels.yaml by generate_kernels.py: edit that.
"""


def handles(contract: Contract) -> str:
    """runtime/kernels.h"""
    includes = "\n".join(f'#include "{header}"' for header in HEADERS)
    lines = "\n".join(
        f"// {k.computes}\n"
        f'inline constinit const Kernel<{k.args}> {k.name}{{"{k.name}", {k.version}}};'
        for k in contract.kernels
    )
    return f"""{HEAD}\
// The kernels that operators launch. A driver may lack any of them: ask available() or supports().
#pragma once

#include "hal/hal.h"
{includes}
#include "runtime/kernel.h"

static_assert(
    PUONE_KERNEL_SET_VERSION == {contract.version}, "hal.h and kernels.yaml are of one version");

namespace puone::kernel {{

{lines}

}} // namespace puone::kernel
"""


def table(contract: Contract) -> str:
    """kernels/contract.h"""
    rows = "\n".join(
        f'    {{"{k.name}", {k.version}, {k.element_types:#x}}},' for k in contract.kernels
    )
    return f"""{HEAD}\
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace puone::kernels {{

/// What the contract says of a kernel.
struct KernelContract {{
  std::string_view name;
  uint32_t version;
  uint64_t element_types; // bits of puone_dtype
}};

/// Of every kernel, sorted by name.
inline constexpr KernelContract kContract[] = {{
{rows}
}};

/// Of a kernel that this project's sources have; throws std::out_of_range for others.
inline const KernelContract& contractOf(std::string_view name) {{
  const auto* const found = std::ranges::lower_bound(kContract, name, {{}}, &KernelContract::name);
  if (found == std::end(kContract) || found->name != name) {{
    throw std::out_of_range("kernels.yaml does not declare the kernel " + std::string(name));
  }}
  return *found;
}}

}} // namespace puone::kernels
"""


def write(path: Path, text: str) -> None:
    """Write the file unless it already says that."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="folder that the files are written to")
    output: Path = parser.parse_args().output
    contract = load()
    write(output / "runtime" / "kernels.h", handles(contract))
    write(output / "kernels" / "contract.h", table(contract))


if __name__ == "__main__":
    main()
