# SPDX-License-Identifier: BSD-3-Clause
"""For a finding that breaks compilation: a few lines of a backend that show it.

A witness uses the declaration as it was, the way somebody whom the finding concerns does: it
derives and overrides, calls, constructs, names, expands. It compiles with the torch before and not
with the torch after. What it takes to make one is in the finding; the snapshot before says which
pure virtuals a class has to implement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch_backend_ci.surface.diff.cpp.hierarchy import Hierarchy, is_virtual, own_name, signature
from torch_backend_ci.surface.model import Declaration, Domain, Finding, Severity

# What a class template of the surface is instantiated with.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "at::CachingHostAllocatorImpl": ("c10::Stream", "int", "at::HostBlock<c10::Stream>"),
    "at::HostBlock": ("c10::Stream",),
}
_DEPENDENT = "type-parameter-0-"


class NotProvable(Exception):
    """There is no witness for this finding; the text says why."""


@dataclass(frozen=True)
class Witness:
    """Source that compiles with the torch before and not with the torch after."""

    finding: Finding
    source: str
    alone: bool = False  # must not share a translation unit: it is about what is included
    standard: str = ""  # of C++, if not that of the torch


class Writer:
    """Makes witnesses for the findings between two snapshots."""

    def __init__(self, before: Sequence[Declaration], after: Sequence[Declaration]) -> None:
        self._before = Hierarchy(_named(before))
        self._after = {d.name for d in after}

    def write(self, finding: Finding) -> Witness:
        """The witness; NotProvable if the finding does not say enough for one."""
        if finding.severity != Severity.COMPILE_BREAK:
            raise NotProvable("it does not break compilation")
        if finding.domain == Domain.HEADER:
            return _header(finding)
        if finding.domain != Domain.CPP or finding.rule not in _MAKERS:
            raise NotProvable(f"nothing is known about witnesses of {finding.rule}")
        return Witness(finding, _MAKERS[finding.rule](self, finding))

    # ---- overriders ----

    def override(self, finding: Finding) -> str:
        """A class that overrides the function as it was declared."""
        method = _before(finding)
        if method.kind == "destructor":
            return _derived(_scope(method.name), [f"~Derived(){_noexcept(method)} override;"])
        return _derived(_scope(method.name), [_declaration(method) + " override;"])

    def implement(self, finding: Finding) -> str:
        """A class that implements every pure virtual there was, and is not abstract then."""
        base = finding.before if finding.rule == "made_abstract" else finding.after
        assert base is not None
        name = base.name if base.kind == "class" else _scope(base.name)
        bodies = [_declaration(method) + ";" for method in self._pure(name)]
        return _derived(name, bodies) + "static_assert(!std::is_abstract_v<Derived>);\n"

    def derive(self, finding: Finding) -> str:
        """A class derived from the class, or one that overrides the function."""
        if _before_or_after(finding).kind == "class":
            return _derived(_before(finding).name, [])
        method = finding.before or self._inherited(finding)
        return _derived(_scope(finding.name), [_declaration(method) + " override;"])

    # ---- callers ----

    def call(self, finding: Finding) -> str:
        """A call with the arguments that had to be given, and one with all."""
        function = _before(finding)
        if function.facts.get("template") and function.name not in self._after:
            return self.mention(finding)
        if function.kind == "constructor":
            return _construct(function)
        if function.kind == "destructor":
            return _inside(function, f"void use({_class(function)}* object) {{ delete object; }}")
        lines = [
            _call(function, count) for count in sorted({_required(function), _count(function)})
        ]
        return "".join(lines)

    def short_call(self, finding: Finding) -> str:
        """A call that leaves the defaults out."""
        return _call(_before(finding), _required(_before(finding)))

    def call_deleted(self, finding: Finding) -> str:
        """A call of what is declared as deleted now."""
        function = finding.before or finding.after
        assert function is not None
        return (
            _construct(function)
            if function.kind == "constructor"
            else _call(function, _count(function))
        )

    def result(self, finding: Finding) -> str:
        """A call whose result is what it was declared to be."""
        function = _before(finding)
        if function.facts.get("template"):
            raise NotProvable("a function template: its result depends on the caller")
        returns = function.facts["returns"]
        if returns == "void":
            raise NotProvable("nothing can be done with the void that it returned")
        return _call(function, _count(function), f"{_type(function, returns)} result = {{}};")

    def convert(self, finding: Finding) -> str:
        """An implicit conversion."""
        function = _before(finding)
        if function.kind != "constructor" or _required(function) > 1:
            raise NotProvable("a conversion by a constructor of one argument is what is known")
        argument = _arguments(function, 1)
        return f"void take({_class(function)});\nvoid use() {{ take({argument}); }}\n"

    def upcast(self, finding: Finding) -> str:
        """A pointer to the class, passed where one to the base is wanted."""
        was, now = _before(finding), finding.after
        assert now is not None
        gone = [b for b in was.facts.get("bases", ()) if b not in now.facts.get("bases", ())]
        bases = [b.removeprefix("public ") for b in gone if b.startswith("public ")]
        if not bases:
            raise NotProvable("the base was not public")
        return "".join(
            f"::{base}* convert({_named_class(was.name)}* object) {{ return object; }}\n"
            for base in bases
        )

    # ---- users ----

    def mention(self, finding: Finding) -> str:
        """The name itself."""
        was = _before(finding)
        if was.name in self._after and finding.rule != "requires_changed":
            raise NotProvable("other declarations of the name are left: it depends on the use")
        if was.kind in ("field", "method", "constructor", "destructor"):
            return _member(was)
        if was.kind == "enumerator":
            return f"constexpr auto value = ::{was.name};\n"
        if _scope(was.name) in self._before.classes:
            return _passed(was) if was.facts.get("template") else f"using Name = ::{was.name};\n"
        return f"using ::{was.name};\n"

    def reach(self, finding: Finding) -> str:
        """The member, from where it could be reached."""
        if finding.before is None:  # a destructor that was not written
            return f"void use(::{_scope(finding.name)}* object) {{ delete object; }}\n"
        return _member(finding.before) if finding.before.kind == "field" else self.call(finding)

    def kind(self, finding: Finding) -> str:
        """The name, as what it was."""
        was = _before(finding)
        if was.kind == "function":
            return _call(was, _count(was))
        if was.kind in ("class", "enum", "alias"):
            return f"using Name = ::{was.name};\n"
        return f"auto* value = &::{was.name};\n"

    def alias(self, finding: Finding) -> str:
        """The alias, where its target is meant."""
        was = _before(finding)
        if was.facts.get("template"):
            raise NotProvable("an alias template: what it stands for depends on its arguments")
        return f"static_assert(std::is_same_v<::{was.name}, {was.facts['target']}>);\n"

    def typed(self, finding: Finding) -> str:
        """A field or constant, bound to a reference to its type."""
        was = _before(finding)
        type_ = _type(was, was.facts["type"])
        if was.kind == "field":
            owner, name = _named_class(_scope(was.name)), _simple(was.name)
            field = f"this->{name}" if was.facts.get("access") else f"{owner}::{name}"
            check = f"static_assert(std::is_same_v<decltype({field}), {type_}>);"
            return _inside(was, f"void use() {{ {check} }}")
        return f"static_assert(std::is_same_v<decltype(::{was.name}), {type_}>);\n"

    def constant(self, finding: Finding) -> str:
        """A constant expression."""
        return f"constexpr auto value = ::{_before(finding).name};\n"

    def integer(self, finding: Finding) -> str:
        """A value of the enum where an integer is wanted."""
        return f"static_assert(std::is_convertible_v<::{_before(finding).name}, long>);\n"

    def pass_template(self, finding: Finding) -> str:
        """A class template as the argument of a template that takes such templates."""
        was = _before(finding)
        if was.kind != "class" or not was.facts.get("template"):
            raise NotProvable("a function template: its arguments are mostly deduced")
        return _passed(was)

    def expand(self, finding: Finding) -> str:
        """The macro, expanded with as many arguments as it took."""
        was = _before(finding)
        defined = f'#ifndef {was.name}\n#error "{was.name} is not defined"\n#endif\n'
        parameters = was.facts.get("parameters")
        if finding.rule != "macro_parameters_changed" or parameters is None:
            return defined
        arguments = ", ".join(f"a{index}" for index, _ in enumerate(parameters))
        return f"{defined}const char* text = WITNESS_EXPANDED({was.name}({arguments}));\n"

    # ---- what the snapshot before knows ----

    def _pure(self, name: str) -> list[Declaration]:
        """The pure virtuals that a class derived from this one had to implement."""
        if name not in self._before.classes:
            raise NotProvable(f"{name} is not a class of the snapshot before")
        done: set[object] = set()
        pure: list[Declaration] = []
        for owner in (name, *self._before.ancestors(name)):
            for method in self._before.members.get(owner, ()):
                key = (own_name(method, name), signature(method))
                if method.kind == "method" and is_virtual(method) and key not in done:
                    done.add(key)
                    pure += [method] if method.facts.get("pure") else []
        return pure

    def _inherited(self, finding: Finding) -> Declaration:
        """The virtual of a base that a class overrode without saying so."""
        assert finding.after is not None
        above = self._before.above(finding.after)
        if above is None:
            raise NotProvable("the function that it overrides is not in the snapshot before")
        return above


_MAKERS: Mapping[str, Callable[[Writer, Finding], str]] = {
    **dict.fromkeys(
        ("virtual_signature_changed", "virtual_removed", "virtual_renamed", "no_longer_virtual"),
        Writer.override,
    ),
    **dict.fromkeys(("pure_virtual_added", "made_pure", "made_abstract"), Writer.implement),
    "made_final": Writer.derive,
    **dict.fromkeys(
        (
            *("function_removed", "function_renamed", "function_signature_changed"),
            *("method_removed", "method_renamed", "method_signature_changed"),
            *("constructor_removed", "constructor_signature_changed", "no_longer_static"),
        ),
        Writer.call,
    ),
    "default_removed": Writer.short_call,
    "made_deleted": Writer.call_deleted,
    "return_type_changed": Writer.result,
    "made_explicit": Writer.convert,
    "base_removed": Writer.upcast,
    **dict.fromkeys(
        (
            *("class_removed", "class_renamed", "enum_removed", "enum_renamed"),
            *("enumerator_removed", "enumerator_renamed", "alias_removed", "alias_renamed"),
            *("constant_removed", "constant_renamed", "field_removed", "field_renamed"),
        ),
        Writer.mention,
    ),
    "requires_changed": Writer.mention,
    "access_narrowed": Writer.reach,
    "kind_changed": Writer.kind,
    "alias_changed": Writer.alias,
    "field_type_changed": Writer.typed,
    "constant_type_changed": Writer.typed,
    "no_longer_constexpr": Writer.constant,
    "made_scoped": Writer.integer,
    "template_changed": Writer.pass_template,
    **dict.fromkeys(("macro_removed", "macro_renamed", "macro_parameters_changed"), Writer.expand),
}


def _header(finding: Finding) -> Witness:
    """Include the header first; with an older C++ standard if that is what changed."""
    if finding.rule in ("header_removed", "header_not_alone"):
        return Witness(finding, f"#include <{finding.name}>\n", alone=True)
    if finding.rule == "language_raised" and finding.after is not None:
        minimum = finding.before.facts["minimum"] if finding.before else 17
        header = finding.after.file.removeprefix("torch/include/")
        return Witness(finding, f"#include <{header}>\n", alone=True, standard=f"c++{minimum}")
    raise NotProvable(f"nothing is known about witnesses of {finding.rule}")


# ---- declarations as source ----


def _derived(base: str, members: Sequence[str]) -> str:
    body = "".join(f"  {member}\n" for member in members)
    # What depends on the arguments of a template is written without its namespace.
    using = f"using namespace ::{_scope(base)};\n" if base in ARGUMENTS else ""
    return using + f"struct Derived : {_named_class(base)} {{\n{body}}};\n"


def _declaration(method: Declaration) -> str:
    """The function as an overrider repeats it."""
    facts = method.facts
    parameters = ", ".join(_type(method, p["type"]) for p in facts.get("parameters", ()))
    const = " const" if facts.get("const") else ""
    ref = f" {facts['ref']}" if facts.get("ref") else ""
    returns = _type(method, facts["returns"])
    name = _simple(method.name)
    return f"auto {name}({parameters}){const}{ref}{_noexcept(method)} -> {returns}"


def _noexcept(method: Declaration) -> str:
    return " noexcept" if method.facts.get("noexcept") else ""


def _call(function: Declaration, count: int, form: str = "{};") -> str:
    """A function that calls this one with the first `count` arguments."""
    name, arguments = _simple(function.name), _arguments(function, count)
    if function.facts.get("template"):
        form = "using Result = decltype({});"  # its body is nobody's business
    if function.kind == "function":
        return f"void use{count}() {{ {form.format(f'::{function.name}({arguments})')} }}\n"
    owner = _named_class(_scope(function.name))
    if function.facts.get("static"):
        call = form.format(f"{owner}::{name}({arguments})")
        return _inside(function, f"void use{count}() {{ {call} }}")
    if function.facts.get("access") == "protected":
        call = form.format(f"this->{owner}::{name}({arguments})")
        return _inside(function, f"void use{count}() {{ {call} }}")
    const = "const " if function.facts.get("const") else ""
    object_ = f"static_cast<{const}{owner}{function.facts.get('ref', '&')}>(object)"
    call = form.format(f"{object_}.{name}({arguments})")
    return f"void use{count}({const}{owner}& object) {{ {call} }}\n"


def _construct(constructor: Declaration) -> str:
    """A derived class that constructs its base; also for classes that are abstract."""
    if constructor.facts.get("template"):
        raise NotProvable("a constructor template: its arguments are deduced")
    owner = _class(constructor)
    counts = sorted({_required(constructor), _count(constructor)})
    return "".join(
        f"struct Derived{count} : {owner} {{\n"
        f"  Derived{count}() : {owner}({_arguments(constructor, count)}) {{}}\n}};\n"
        for count in counts
    )


def _member(was: Declaration) -> str:
    owner = _named_class(_scope(was.name))
    use = f"auto use({owner}& object) {{ return sizeof(&object.{_simple(was.name)}); }}"
    if was.facts.get("static"):
        use = f"auto use() {{ return sizeof(&{owner}::{_simple(was.name)}); }}"
    if was.facts.get("access") == "protected":
        use = f"auto use() {{ return sizeof(&this->{owner}::{_simple(was.name)}); }}"
    return _inside(was, use)


def _inside(member: Declaration, line: str) -> str:
    """The line, in a derived class if the member is protected."""
    if member.facts.get("access") != "protected":
        return line + "\n"
    return _derived(_scope(member.name), [line])


def _arguments(function: Declaration, count: int) -> str:
    types = [_type(function, p["type"]) for p in function.facts.get("parameters", ())]
    return ", ".join(f"some<{type_}>()" for type_ in types[:count])


def _count(function: Declaration) -> int:
    return len(function.facts.get("parameters", ()))


def _required(function: Declaration) -> int:
    return sum(not p.get("default") for p in function.facts.get("parameters", ()))


def _type(declaration: Declaration, type_: str) -> str:
    """A type of a signature; the parameters of a known class template filled in."""
    if _DEPENDENT not in type_:
        return type_
    arguments = ARGUMENTS.get(_scope(declaration.name))
    if arguments is None and declaration.facts.get("template"):
        arguments = ("int",) * 9  # a function template, called with what it is given
    if arguments is None:
        raise NotProvable("a template: its types depend on the arguments")
    for index, argument in enumerate(arguments):
        type_ = type_.replace(f"{_DEPENDENT}{index}", argument)
    return type_


def _class(member: Declaration) -> str:
    return _named_class(_scope(member.name))


def _named_class(name: str) -> str:
    arguments = ARGUMENTS.get(name)
    return f"::{name}<{', '.join(arguments)}>" if arguments else f"::{name}"


def _passed(template: Declaration) -> str:
    """The template as the argument of one that takes such templates."""
    head = template.facts["template"].replace(" =", "")
    return (
        f"template <template <{head}> class Template> struct Takes;\n"
        f"using Taken = Takes<::{template.name}>;\n"
    )


def _before(finding: Finding) -> Declaration:
    if finding.before is None:
        raise NotProvable("there was no such declaration before")
    return finding.before


def _before_or_after(finding: Finding) -> Declaration:
    about = finding.before or finding.after
    if about is None:
        raise NotProvable("the finding is about no declaration")
    return about


def _scope(name: str) -> str:
    return name.rpartition("::")[0]


def _simple(name: str) -> str:
    return name.rpartition("::")[2]


def _named(declarations: Sequence[Declaration]) -> dict[str, list[Declaration]]:
    named: dict[str, list[Declaration]] = {}
    for declaration in declarations:
        if declaration.domain == Domain.CPP:
            named.setdefault(declaration.name, []).append(declaration)
    return named
