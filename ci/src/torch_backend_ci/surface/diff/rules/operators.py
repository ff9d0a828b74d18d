# SPDX-License-Identifier: BSD-3-Clause
"""Rules for operators.

PyTorch compares the C++ type of every kernel with the schema of its operator when the backend's
library is loaded, and refuses to load it if number or types of arguments or returns differ. A
schema that changes so is therefore a compile break for backends that register the operator: the
source has to change before anything works, and the failure is loud.
"""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import CALLERS, REGISTRARS, USERS, Rule, table
from torch_backend_ci.surface.model import Severity

_KERNEL = (
    "Change the kernel's signature, by the version of torch where both are supported; a backend "
    "that does not register the operator need do nothing."
)
_BOTH = (REGISTRARS, CALLERS)

RULES = table(
    Rule(
        "operator_removed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is gone: calls of it fail to compile, and a kernel registered for it is never "
        "called.",
        "Take the registration out, by the version of torch where both are supported.",
    ),
    Rule(
        "operator_added",
        Severity.NEW_CAPABILITY,
        (REGISTRARS,),
        "{name} is new and has no kernel for a backend that registers none.",
        "Register a kernel, or let it fall back to the CPU.",
    ),
    Rule(
        "operator_added_composite",
        Severity.COSMETIC,
        (REGISTRARS,),
        "{name} is new and made of other operators.",
    ),
    Rule(
        "device_check_changed",
        Severity.SEMANTIC,
        (REGISTRARS,),
        "{name}: that all its tensors are on one device is {now_check} now before the kernel of a "
        "backend is called; it was {was_check}.",
        "A kernel that relied on the check has to check itself.",
    ),
    Rule(
        "generated_operator_removed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{generated}, derived from {name}, is gone.",
    ),
    Rule(
        "generated_operator_added",
        Severity.COSMETIC,
        _BOTH,
        "{generated} is derived from {name} now.",
    ),
    Rule(
        "argument_added",
        Severity.COMPILE_BREAK,
        (REGISTRARS,),
        "{name} takes {argument} now: a kernel without it is refused when the backend is loaded.",
        _KERNEL,
    ),
    Rule(
        "argument_removed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} does not take {argument} any more: a kernel with it is refused when the backend "
        "is loaded.",
        _KERNEL,
    ),
    Rule(
        "argument_type_changed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name}: {argument} is of type {now_type} now, was {was_type}: a kernel for the old type "
        "is refused when the backend is loaded.",
        _KERNEL,
    ),
    Rule(
        "arguments_reordered",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} takes its arguments in another order: {now_order}; it was {was_order}.",
        _KERNEL,
    ),
    Rule(
        "argument_made_symbolic",
        Severity.NEW_CAPABILITY,
        (REGISTRARS,),
        "{name}: {argument} can be symbolic now ({now_type}); kernels for {was_type} are still "
        "accepted and get a number.",
        "Take c10::SymInt to keep shapes dynamic under compilation.",
    ),
    Rule(
        "argument_size_changed",
        Severity.SEMANTIC,
        _BOTH,
        "{name}: {argument} is of type {now_type} now, was {was_type}; the C++ type is the same, "
        "how a single number is spread is not.",
    ),
    Rule(
        "argument_renamed",
        Severity.SEMANTIC,
        (CALLERS,),
        "{name}: the argument {argument} is called {now_name} now; calls by keyword fail, kernels "
        "do not notice.",
    ),
    Rule(
        "argument_default_changed",
        Severity.SEMANTIC,
        _BOTH,
        "{name}: {argument} is {now_default} by default now, was {was_default}.",
    ),
    Rule(
        "argument_made_required",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name}: {argument} has no default any more, was {was_default}; kernels do not notice.",
    ),
    Rule(
        "argument_made_optional",
        Severity.COSMETIC,
        (CALLERS,),
        "{name}: {argument} can be left out now.",
    ),
    Rule(
        "argument_made_keyword_only",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name}: Python must give {argument} by keyword now; kernels do not notice.",
    ),
    Rule(
        "mutability_changed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name}: {argument} is {now_alias} now, was {was_alias}: the kernel takes another kind of "
        "reference, and autograd and functionalization treat it otherwise.",
        _KERNEL,
    ),
    Rule(
        "alias_changed",
        Severity.SEMANTIC,
        _BOTH,
        "{name}: {argument} is {now_alias} now, was {was_alias}: what shares storage with what.",
    ),
    Rule(
        "return_changed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} returns {now_type} now, was {was_type}: a kernel that returns something else is "
        "refused when the backend is loaded.",
        _KERNEL,
    ),
    Rule(
        "return_renamed",
        Severity.SEMANTIC,
        (CALLERS,),
        "{name}: what it returns is named {now_names} now, was {was_names}.",
    ),
    Rule(
        "composite_lost",
        Severity.SILENT_BREAK,
        (REGISTRARS,),
        "{name} is {now_dispatch} now, was {was_dispatch}: what worked without a kernel of the "
        "backend's own needs one, or falls back to the CPU.",
        "Register a kernel for it; where the operator was made of others, that composition can be "
        "the kernel.",
    ),
    Rule(
        "composite_gained",
        Severity.NEW_CAPABILITY,
        (REGISTRARS,),
        "{name} is {now_dispatch} now, was {was_dispatch}: it needs no kernel of the "
        "backend's own any more (of a structured group, only the operator with `out` does).",
    ),
    Rule(
        "dispatch_changed",
        Severity.SEMANTIC,
        (REGISTRARS,),
        "{name} is {now_dispatch} now, was {was_dispatch}: which kernel serves as default, and "
        "where autograd is applied, is not the same.",
    ),
    Rule(
        "dispatch_keys_changed",
        Severity.COSMETIC,
        (REGISTRARS,),
        "{name}: devices with a kernel in PyTorch changed: {change}.",
    ),
    Rule(
        "behaviour_tags_changed",
        Severity.SEMANTIC,
        _BOTH,
        "{name}: what compilers may assume of it changed: {change}.",
    ),
    Rule("tags_changed", Severity.COSMETIC, _BOTH, "{name}: tags changed: {change}."),
    Rule(
        "variant_removed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} cannot be called as a {variant} any more.",
    ),
    Rule(
        "variant_added", Severity.COSMETIC, (CALLERS,), "{name} can be called as a {variant} now."
    ),
    Rule(
        "python_namespace_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is bound to Python in {now_namespace} now, was {was_namespace}.",
    ),
    Rule(
        "tag_removed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is gone: operators defined with it fail to compile.",
    ),
    Rule("tag_added", Severity.COSMETIC, (USERS,), "{name} is new."),
)
