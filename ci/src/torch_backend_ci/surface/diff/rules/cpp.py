# SPDX-License-Identifier: BSD-3-Clause
"""Rules for C++ declarations: classes and their members, functions, enums, constants, macros.

A changed virtual concerns overriders; any other change concerns code that calls or
names it. Compatible changes have rules of their own, so that the breaking ones never cry wolf.
"""

from __future__ import annotations

from torch_backend_ci.surface.diff.rules.rule import (
    CALLERS,
    OVERRIDERS,
    REGISTRARS,
    USERS,
    Rule,
    table,
)
from torch_backend_ci.surface.model import Severity

BY_VERSION = (
    "To support both: choose by TORCH_VERSION_MAJOR and TORCH_VERSION_MINOR of <torch/version.h>."
)

CLASSES = (
    Rule(
        "class_removed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} is gone, with its {members} members.",
    ),
    Rule(
        "specialization_removed",
        Severity.SEMANTIC,
        (CALLERS,),
        "{name}, a specialization, is gone: what named it gets the template itself.",
        "Compare the template with the specialization.",
    ),
    Rule(
        "class_renamed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} is called {new_name} now; its members are the same.",
        "Use the new name. " + BY_VERSION,
    ),
    Rule("class_added", Severity.COSMETIC, (OVERRIDERS, CALLERS), "{name} is a new class."),
    Rule(
        "class_became_alias",
        Severity.REBUILD,
        (OVERRIDERS, CALLERS),
        "{name} was a class of its own and is another name of {target} now: mangled names change, "
        "and a forward declaration of it no longer compiles.",
        "Include the header instead of declaring the class.",
    ),
    Rule(
        "alias_became_class",
        Severity.REBUILD,
        (USERS,),
        "{name} was another name of {target} and is a class of its own now: mangled names change, "
        "and the two no longer convert into each other by themselves.",
    ),
    Rule(
        "base_removed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} is no longer derived from {base}: it does not convert to it, nor inherit from it.",
    ),
    Rule(
        "base_added", Severity.COSMETIC, (OVERRIDERS, CALLERS), "{name} is derived from {base} too."
    ),
    Rule(
        "made_abstract",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} has become abstract: no object of it can be made, and a derived class must "
        "implement what it leaves open.",
    ),
    Rule(
        "class_layout_changed",
        Severity.REBUILD,
        (OVERRIDERS, CALLERS),
        "An object of {name} takes {now_size} bytes instead of {was_size}.",
        "Nothing to do in the source; the backend must be rebuilt.",
    ),
    Rule(
        "members_reordered",
        Severity.REBUILD,
        (OVERRIDERS, CALLERS),
        "The data members of {name} stand in another order: {was_order} became {now_order}.",
        "Nothing to do in the source, unless the object is initialized member by member; the "
        "backend must be rebuilt.",
    ),
    Rule(
        "template_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} has other template parameters: `{was_template}` became `{now_template}`.",
    ),
    Rule(
        "template_extended",
        Severity.REBUILD,
        (CALLERS,),
        "{name} has further template parameters, all with defaults: `{was_template}` became "
        "`{now_template}`.",
        "Nothing to do, unless the template itself is passed on or declared ahead; the backend "
        "must be rebuilt.",
    ),
    Rule(
        "made_final",
        Severity.COMPILE_BREAK,
        (OVERRIDERS,),
        "{name} has become final: {what} does not compile.",
    ),
)

VIRTUALS = (
    Rule(
        "virtual_added",
        Severity.NEW_CAPABILITY,
        (OVERRIDERS,),
        "{name} is a new virtual function that a class derived from {scope} may override; "
        "its table of virtual functions changes, so a backend must be rebuilt.",
    ),
    Rule(
        "pure_virtual_added",
        Severity.COMPILE_BREAK,
        (OVERRIDERS,),
        "{name} is a new pure virtual function: a class derived from {scope} is abstract until it "
        "implements it.",
        "Implement it, without `override` if older versions of torch are to compile too.",
    ),
    Rule(
        "made_pure",
        Severity.COMPILE_BREAK,
        (OVERRIDERS,),
        "{name} has become pure virtual: a class derived from {scope} that relied on the default "
        "is abstract now.",
        "Implement it.",
    ),
    Rule(
        "no_longer_pure",
        Severity.NEW_CAPABILITY,
        (OVERRIDERS,),
        "{name} has a default now; nothing forces a class derived from {scope} to implement it.",
    ),
    Rule(
        "virtual_removed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} is gone: an overrider marked `override` does not compile, one that is not is never "
        "called, and neither do callers compile.",
        "Drop the overrider, or compile it only for the versions of torch that have the function. "
        + BY_VERSION,
    ),
    Rule(
        "virtual_renamed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} is called {new_name} now: an overrider under the old name overrides nothing.",
        "Rename the overrider. " + BY_VERSION,
    ),
    Rule(
        "virtual_moved_to_base",
        Severity.COSMETIC,
        (OVERRIDERS, CALLERS),
        "{name} is inherited from {base} now.",
    ),
    Rule(
        "no_longer_virtual",
        Severity.COMPILE_BREAK,
        (OVERRIDERS,),
        "{name} is not virtual any more: an overrider marked `override` does not compile, one that "
        "is not is never called through the base class.",
    ),
    Rule(
        "made_virtual",
        Severity.NEW_CAPABILITY,
        (OVERRIDERS,),
        "{name} has become virtual: a class derived from {scope} may override it, and does if it "
        "has a function with the same name and parameters.",
    ),
    Rule(
        "virtual_signature_changed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} has another signature ({difference}): an overrider marked `override` does not "
        "compile, one that is not overrides nothing.",
        "Change the overrider likewise. " + BY_VERSION,
    ),
    Rule(
        "default_implementation_changed",
        Severity.SEMANTIC,
        (OVERRIDERS, CALLERS),
        "{name} does something else where a class derived from {scope} does not override it.",
        "Compare the two implementations.",
    ),
    Rule(
        "noexcept_dropped",
        Severity.SEMANTIC,
        (OVERRIDERS, CALLERS),
        "{name} may throw now; it was noexcept.",
    ),
)

FUNCTIONS = (
    Rule("function_removed", Severity.COMPILE_BREAK, (CALLERS,), "{name} is gone."),
    Rule(
        "function_renamed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is called {new_name} now; its signature is the same.",
        "Call it by the new name. " + BY_VERSION,
    ),
    Rule("function_added", Severity.COSMETIC, (CALLERS,), "{name} is a new function."),
    Rule(
        "function_signature_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} has another signature: {difference}.",
        "Change the calls. " + BY_VERSION,
    ),
    Rule("method_removed", Severity.COMPILE_BREAK, (CALLERS,), "{name} is gone or private."),
    Rule(
        "method_renamed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is called {new_name} now; its signature is the same.",
        "Call it by the new name. " + BY_VERSION,
    ),
    Rule("method_added", Severity.COSMETIC, (CALLERS,), "{name} is a new member function."),
    Rule(
        "method_moved_to_base",
        Severity.COSMETIC,
        (CALLERS,),
        "{name} is inherited from {base} now.",
    ),
    Rule(
        "method_signature_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} has another signature: {difference}.",
        "Change the calls. " + BY_VERSION,
    ),
    Rule(
        "constructor_removed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{scope} cannot be constructed by `{was}` any more.",
    ),
    Rule(
        "constructor_added",
        Severity.COSMETIC,
        (OVERRIDERS, CALLERS),
        "{scope} has a new constructor.",
    ),
    Rule(
        "constructor_signature_changed",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "A constructor of {scope} has another signature: {difference}.",
        "Change what constructs it, the constructors of derived classes included. " + BY_VERSION,
    ),
    Rule(
        "made_explicit",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} has become explicit: it no longer converts by itself.",
        "Write the conversion out.",
    ),
    Rule(
        "return_type_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} returns `{now_type}` instead of `{was_type}`.",
    ),
    Rule(
        "size_in_type_changed",
        Severity.REBUILD,
        (CALLERS,),
        "{name} is or returns `{now_type}` instead of `{was_type}`: only a number in the type "
        "differs.",
        "Nothing to do in the source, unless it names the number; the backend must be rebuilt.",
    ),
    Rule(
        "parameter_added_with_default",
        Severity.REBUILD,
        (CALLERS,),
        "{name} has a further parameter with a default ({difference}): calls compile as they are, "
        "but the function they were compiled for is gone.",
        "Nothing to do in the source; the backend must be rebuilt.",
    ),
    Rule(
        "signature_compatible",
        Severity.REBUILD,
        (CALLERS,),
        "{name} has another signature ({difference}) that takes the same calls; the function they "
        "were compiled for is gone.",
        "Nothing to do in the source, unless its address is taken; the backend must be rebuilt.",
    ),
    Rule(
        "template_compatible",
        Severity.COSMETIC,
        (CALLERS,),
        "{name}, a template, has another signature ({difference}) that takes the same calls.",
    ),
    Rule(
        "default_removed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} needs arguments that had a default: {difference}.",
        "Pass the argument; older versions take it too.",
    ),
    Rule(
        "default_changed",
        Severity.SEMANTIC,
        (CALLERS,),
        "{name}: the default of parameter {parameter} is `{now_value}` now, it was `{was_value}`.",
        "Pass the argument where the old value is meant.",
    ),
    Rule(
        "default_added", Severity.COSMETIC, (CALLERS,), "{name} has a default for more parameters."
    ),
    Rule(
        "made_static",
        Severity.REBUILD,
        (CALLERS,),
        "{name} has become static: calls compile as they are, but pass no object.",
    ),
    Rule(
        "no_longer_static",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is not static any more: it needs an object to be called on.",
    ),
    Rule(
        "made_deleted",
        Severity.COMPILE_BREAK,
        (OVERRIDERS, CALLERS),
        "{name} is deleted: no call of it compiles.",
    ),
)

MEMBERS = (
    Rule(
        "access_narrowed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is {now_access} now; it was {was_access}.",
    ),
    Rule(
        "access_widened",
        Severity.COSMETIC,
        (CALLERS,),
        "{name} is {now_access} now; it was {was_access}.",
    ),
    Rule(
        "field_removed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is gone or private.",
    ),
    Rule(
        "field_renamed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is called {new_name} now; its type is the same.",
        "Use the new name. " + BY_VERSION,
    ),
    Rule("field_added", Severity.COSMETIC, (CALLERS,), "{name} is a new data member."),
    Rule(
        "field_type_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is a `{now_type}` instead of a `{was_type}`.",
    ),
)

VALUES = (
    Rule("enum_removed", Severity.COMPILE_BREAK, (USERS,), "{name} is gone, with its values."),
    Rule(
        "enum_renamed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is called {new_name} now; its values are the same.",
        "Use the new name. " + BY_VERSION,
    ),
    Rule("enum_added", Severity.COSMETIC, (USERS,), "{name} is a new enum."),
    Rule("enumerator_removed", Severity.COMPILE_BREAK, (USERS,), "{name} is gone."),
    Rule(
        "enumerator_renamed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is called {new_name} now; its value is the same.",
        "Use the new name. " + BY_VERSION,
    ),
    Rule(
        "enumerator_added",
        Severity.NEW_CAPABILITY,
        (USERS,),
        "{name} is a new value of {scope}: a switch over the enum has a case more.",
    ),
    Rule(
        "enumerator_added_moves_count",
        Severity.SILENT_BREAK,
        (USERS,),
        "{name} is a new value of {scope} and moves the count {count}: a table that is sized or "
        "indexed by it, or a static_assert about it, is out of step.",
        "Add a row to every table over {scope}, and look for static_asserts about {count}.",
    ),
    Rule(
        "enumerator_value_changed",
        Severity.REBUILD,
        (USERS,),
        "{name} has values that changed: {moved}.",
        "Nothing to do in the source; binaries and files that hold the numbers are out of step.",
    ),
    Rule(
        "underlying_type_changed",
        Severity.REBUILD,
        (USERS,),
        "The values of {name} are stored as `{now_type}` instead of `{was_type}`.",
    ),
    Rule(
        "made_scoped",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} has become a scoped enum: its values need its name in front and do not convert to "
        "integers.",
    ),
    Rule(
        "no_longer_scoped",
        Severity.COSMETIC,
        (USERS,),
        "{name} is not a scoped enum any more: its values convert to integers by themselves.",
    ),
    Rule("alias_removed", Severity.COMPILE_BREAK, (USERS,), "{name} is gone."),
    Rule(
        "alias_renamed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is called {new_name} now; it stands for the same type.",
        "Use the new name. " + BY_VERSION,
    ),
    Rule("alias_added", Severity.COSMETIC, (USERS,), "{name} is a new name of a type."),
    Rule(
        "alias_changed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} stands for `{now_type}` instead of `{was_type}`.",
    ),
    Rule("constant_removed", Severity.COMPILE_BREAK, (USERS,), "{name} is gone."),
    Rule(
        "constant_renamed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is called {new_name} now; its type and value are the same.",
        "Use the new name. " + BY_VERSION,
    ),
    Rule("constant_added", Severity.COSMETIC, (USERS,), "{name} is a new constant or variable."),
    Rule(
        "constant_changed",
        Severity.SILENT_BREAK,
        (USERS,),
        "{name} is {now_value} instead of {was_value}.",
    ),
    Rule(
        "constant_type_changed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is a `{now_type}` instead of a `{was_type}`.",
    ),
    Rule(
        "no_longer_constexpr",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is not a constant expression any more: it cannot size an array, nor stand in a "
        "static_assert or a case.",
    ),
    Rule(
        "kind_changed",
        Severity.COMPILE_BREAK,
        (USERS,),
        "{name} is {now_kind} now; it was {was_kind}.",
    ),
)

MACROS = (
    Rule("macro_removed", Severity.COMPILE_BREAK, (REGISTRARS, USERS), "{name} is gone."),
    Rule(
        "macro_renamed",
        Severity.COMPILE_BREAK,
        (REGISTRARS, USERS),
        "{name} is called {new_name} now; it expands to the same.",
        "Use the new name; #ifdef of either name tells which torch it is.",
    ),
    Rule("macro_added", Severity.COSMETIC, (REGISTRARS, USERS), "{name} is a new macro."),
    Rule(
        "macro_parameters_changed",
        Severity.COMPILE_BREAK,
        (REGISTRARS, USERS),
        "{name} takes {now_parameters} instead of {was_parameters}.",
        "Change its uses. " + BY_VERSION,
    ),
    Rule(
        "macro_body_changed",
        Severity.SEMANTIC,
        (REGISTRARS, USERS),
        "{name} expands to something else.",
        "Read its new text: what it registers or declares may have changed.",
    ),
)

ANY = (
    Rule(
        "requires_changed",
        Severity.COMPILE_BREAK,
        (CALLERS,),
        "{name} is only declared where {profile} is defined; it was declared without.",
        "Compile what uses it with the same macro, or only #ifdef it.",
    ),
    Rule(
        "requires_dropped",
        Severity.COSMETIC,
        (CALLERS,),
        "{name} is declared without {profile} too.",
    ),
    Rule(
        "deprecated",
        Severity.DEPRECATED,
        (OVERRIDERS, CALLERS),
        "{name} is deprecated{reason}: it works, but warns, and fails under -Werror.",
    ),
    Rule(
        "no_longer_deprecated", Severity.COSMETIC, (CALLERS,), "{name} is not deprecated any more."
    ),
)

RULES = table(*CLASSES, *VIRTUALS, *FUNCTIONS, *MEMBERS, *VALUES, *MACROS, *ANY)
