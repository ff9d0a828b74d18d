# SPDX-License-Identifier: BSD-3-Clause
"""Rules for what PyTorch reads off torch.<device>.

A read without a check is a silent break: everything still compiles and imports, and the feature
raises AttributeError on the first backend that does not have the attribute.
"""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import REGISTRARS, Rule, table
from torch_backend_ci.surface.model import Severity

_PROVIDE = "Provide it in the module that is given to torch._register_device_module."

RULES = table(
    Rule(
        "device_module_required",
        Severity.SILENT_BREAK,
        (REGISTRARS,),
        "{name} is imported on the first use of a device: without such a module even "
        '`tensor.to("<device>")` raises ModuleNotFoundError.',
        "Call torch._register_device_module before anything uses the device, also if the backend "
        "keeps the name privateuseone.",
    ),
    Rule(
        "device_module_not_required",
        Severity.COSMETIC,
        (REGISTRARS,),
        "{name} need not exist any more for a device to be used.",
    ),
    Rule(
        "attribute_required",
        Severity.SILENT_BREAK,
        (REGISTRARS,),
        "{name} is read without a check now, by {files}; it was not read before.",
        _PROVIDE,
    ),
    Rule(
        "attribute_made_required",
        Severity.SILENT_BREAK,
        (REGISTRARS,),
        "{name} is read without a check now, by {files}; every reader could do without it before.",
        _PROVIDE,
    ),
    Rule(
        "attribute_required_by_tests",
        Severity.SEMANTIC,
        (REGISTRARS,),
        "{name} is read without a check now, by PyTorch's own tests ({files}).",
        _PROVIDE,
    ),
    Rule(
        "attribute_used",
        Severity.NEW_CAPABILITY,
        (REGISTRARS,),
        "{name} is used now if it is there, by {files}.",
        _PROVIDE,
    ),
    Rule(
        "attribute_called",
        Severity.SEMANTIC,
        (REGISTRARS,),
        "{name} is called now: so far it was only read.",
        "Make it a function.",
    ),
    Rule(
        "attribute_made_optional",
        Severity.COSMETIC,
        (REGISTRARS,),
        "{name} may be missing now: every reader checks.",
    ),
    Rule(
        "attribute_required_elsewhere",
        Severity.COSMETIC,
        (REGISTRARS,),
        "{name}, required before, is now also read without a check by {files}.",
    ),
    Rule("attribute_not_read", Severity.COSMETIC, (REGISTRARS,), "{name} is not read any more."),
)
