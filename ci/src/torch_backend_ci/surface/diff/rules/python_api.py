# SPDX-License-Identifier: BSD-3-Clause
"""Rules for the Python API.

Python has no compiler to refuse code. What stands for it here: a compile break is what raises
where the code is imported, defined or called, on every path (a name that is gone, a parameter that
is missing); a silent break is what goes on and does something else.
"""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import CALLERS, OVERRIDERS, USERS, Rule, table
from torch_backend_ci.surface.model import Severity

_BOTH = (CALLERS, OVERRIDERS)
_OTHER_NAME = "Ask with hasattr or by the version of torch, where both are supported."

RULES = table(
    Rule(
        "module_removed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "The module {name} is gone: importing it fails.",
        _OTHER_NAME,
    ),
    Rule(
        "exports_removed",
        Severity.SEMANTIC,
        (USERS,),
        "{names}: no longer in `{name}.__all__`, so `from {name} import *` does not bring it.",
        "Import the name itself.",
    ),
    Rule(
        "exports_added",
        Severity.COSMETIC,
        (USERS,),
        "{names}: in `{name}.__all__` now.",
    ),
    Rule("module_added", Severity.COSMETIC, (USERS,), "The module {name} is new."),
    Rule(
        "class_removed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "The class {name} is gone: importing it, or deriving from it, fails.",
        _OTHER_NAME,
    ),
    Rule(
        "function_removed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is gone: calling it fails, and nobody calls an override of it.",
        _OTHER_NAME,
    ),
    Rule(
        "function_renamed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is gone; {now_name} came with the same parameters.",
        "Use the new name. " + _OTHER_NAME,
    ),
    Rule(
        "attribute_removed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is gone: using it raises AttributeError.",
        _OTHER_NAME,
    ),
    Rule("class_added", Severity.NEW_CAPABILITY, _BOTH, "The class {name} is new and can be used."),
    Rule("function_added", Severity.NEW_CAPABILITY, (CALLERS,), "{name} is new and can be called."),
    Rule("attribute_added", Severity.COSMETIC, (USERS,), "{name} is new."),
    Rule("member_added", Severity.COSMETIC, _BOTH, "{name} is a new member of its class."),
    Rule(
        "internal_name_added",
        Severity.COSMETIC,
        _BOTH,
        "{name} is new, in a module that is not public.",
    ),
    Rule(
        "override_added",
        Severity.NEW_CAPABILITY,
        (OVERRIDERS,),
        "{name} is new and raises NotImplementedError until it is overridden.",
        "Override it where the device can do it.",
    ),
    Rule(
        "abstract_method_added",
        Severity.COMPILE_BREAK,
        (OVERRIDERS,),
        "{name} is new and abstract: a class derived from {scope} cannot be instantiated without "
        "it.",
        "Override it.",
    ),
    Rule(
        "made_abstract",
        Severity.COMPILE_BREAK,
        (OVERRIDERS,),
        "{name} is abstract now: a class that relied on the implementation cannot be instantiated.",
        "Override it.",
    ),
    Rule(
        "implementation_removed",
        Severity.SILENT_BREAK,
        (OVERRIDERS,),
        "{name} raises NotImplementedError now unless it is overridden; there was an "
        "implementation.",
        "Override it.",
    ),
    Rule(
        "parameter_removed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} does not take {parameters} any more.",
        "Leave it out, by the version of torch where both are supported.",
    ),
    Rule(
        "parameter_absorbed",
        Severity.SEMANTIC,
        (CALLERS,),
        "{name} takes {parameters} only as one of any: it may be ignored now.",
    ),
    Rule(
        "parameter_renamed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name}: the parameter {parameter} is called {now_parameter} now: calls by keyword fail, "
        "and so do overrides that are called by keyword.",
        "Pass it by position.",
    ),
    Rule(
        "required_parameter_added",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} asks for {parameters} now: older calls fail, and overrides are called with more "
        "than they take.",
        "Pass what it asks for, and accept it in overrides.",
    ),
    Rule(
        "parameter_made_required",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name}: {parameter} has no default any more, it was {was_default}.",
        "Pass it.",
    ),
    Rule(
        "parameter_made_optional",
        Severity.COSMETIC,
        (CALLERS,),
        "{name}: {parameter} can be left out now.",
    ),
    Rule(
        "parameter_made_keyword_only",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name}: {parameter} must be given by keyword now.",
        "Pass it by keyword.",
    ),
    Rule(
        "parameter_made_positional_only",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name}: {parameter} cannot be given by keyword any more.",
        "Pass it by position.",
    ),
    Rule(
        "parameter_inserted",
        Severity.SILENT_BREAK,
        _BOTH,
        "{name}: {parameters} came in before others: arguments given by position mean something "
        "else.",
        "Pass what follows by keyword.",
    ),
    Rule(
        "parameters_reordered",
        Severity.SILENT_BREAK,
        _BOTH,
        "{name} takes its parameters in another order: {now_order}; it was {was_order}.",
        "Pass them by keyword.",
    ),
    Rule(
        "optional_parameter_added",
        Severity.COSMETIC,
        (CALLERS,),
        "{name} can be given {parameters} now.",
    ),
    Rule(
        "optional_parameter_added_to_method",
        Severity.SEMANTIC,
        _BOTH,
        "{name} can be given {parameters} now: an override that does not take as much fails where "
        "PyTorch passes it.",
        "Accept it in overrides.",
    ),
    Rule(
        "parameter_default_changed",
        Severity.SEMANTIC,
        (CALLERS,),
        "{name}: {parameter} is {now_default} by default now, it was {was_default}.",
        "Pass it where it matters.",
    ),
    Rule(
        "base_removed",
        Severity.SILENT_BREAK,
        _BOTH,
        "{name} is not derived from {base} any more: isinstance says no, and what it inherited is "
        "gone.",
    ),
    Rule(
        "bases_changed",
        Severity.SEMANTIC,
        _BOTH,
        "{name} is derived from {now_bases} now, it was from {was_bases}: isinstance and what it "
        "inherits may differ.",
    ),
    Rule("base_added", Severity.COSMETIC, _BOTH, "{name} is derived from {base} now."),
    Rule(
        "became_property",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is a property now: calling it calls what it returns.",
        "Use it without parentheses, and override it as a property.",
    ),
    Rule(
        "became_method",
        Severity.SILENT_BREAK,
        _BOTH,
        "{name} is a method now: without parentheses it is always true.",
        "Call it, and override it as a method.",
    ),
    Rule(
        "became_read_only",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} cannot be assigned to any more.",
    ),
    Rule(
        "binding_changed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is {now_binding} now, it was {was_binding}: overrides and calls through the class "
        "get other arguments.",
        "Override it the same way.",
    ),
    Rule(
        "made_async",
        Severity.SILENT_BREAK,
        _BOTH,
        "{name} is a coroutine now: without await nothing happens.",
    ),
    Rule(
        "no_longer_async",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is an ordinary function now: await fails.",
    ),
    Rule(
        "context_manager_changed",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is called {now_use} a `with` now; it was {was_use}.",
    ),
    Rule(
        "kind_changed",
        Severity.SEMANTIC,
        _BOTH,
        "{name} is now written as {now_kind}; it was {was_kind}.",
    ),
    Rule(
        "class_replaced",
        Severity.COMPILE_BREAK,
        _BOTH,
        "{name} is not a class any more but {now_kind}: deriving from it fails.",
    ),
    Rule(
        "value_changed",
        Severity.SEMANTIC,
        (USERS,),
        "{name} is {now_value} now, it was {was_value}.",
    ),
    Rule(
        "deprecated",
        Severity.DEPRECATED,
        _BOTH,
        "{name} is deprecated now: it warns, and will go.",
    ),
)
