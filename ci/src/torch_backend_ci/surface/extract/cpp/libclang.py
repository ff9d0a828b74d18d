# SPDX-License-Identifier: BSD-3-Clause
"""libclang, and what its Python module leaves out of it."""

from __future__ import annotations

import ctypes
import functools

from torch_backend_ci.errors import CiError

try:
    from clang import cindex
    from clang.cindex import Cursor, Diagnostic, TranslationUnit, Type, TypeKind
    from clang.cindex import CursorKind as Kind
except ImportError as error:
    raise CiError(f"reading C++ needs libclang ({error}); pip install libclang") from error

__all__ = ["Cursor", "Diagnostic", "Kind", "TranslationUnit", "Type", "TypeKind", "cindex"]

INTEGER, FLOAT, STRING = 1, 2, 4  # CXEvalResultKind
TYPE_ARGUMENT, INTEGRAL_ARGUMENT = 1, 4  # CXTemplateArgumentKind


class _String(ctypes.Structure):  # CXString
    _fields_ = (("data", ctypes.c_void_p), ("flags", ctypes.c_uint))


_Cursors = ctypes.POINTER(ctypes.POINTER(Cursor))


@functools.cache
def library() -> ctypes.CDLL:
    """The C library, with the declarations of the functions that cindex leaves out.

    It is opened once more, because cindex keeps other declarations of some of them.
    """
    try:
        lib = ctypes.CDLL(cindex.conf.lib._name)
    except cindex.LibclangError as error:
        raise CiError(f"libclang does not load: {error}; pip install libclang") from error
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("clang_Cursor_isInlineNamespace", ctypes.c_uint, (Cursor,)),
        ("clang_Cursor_isAnonymousRecordDecl", ctypes.c_uint, (Cursor,)),
        ("clang_Cursor_getTemplateArgumentKind", ctypes.c_int, (Cursor, ctypes.c_uint)),
        ("clang_isVirtualBase", ctypes.c_uint, (Cursor,)),
        ("clang_getOverriddenCursors", None, (Cursor, _Cursors, ctypes.POINTER(ctypes.c_uint))),
        ("clang_disposeOverriddenCursors", None, (ctypes.POINTER(Cursor),)),
        ("clang_Cursor_Evaluate", pointer, (Cursor,)),
        ("clang_EvalResult_getKind", ctypes.c_int, (pointer,)),
        ("clang_EvalResult_getAsLongLong", ctypes.c_longlong, (pointer,)),
        ("clang_EvalResult_getAsUnsigned", ctypes.c_ulonglong, (pointer,)),
        ("clang_EvalResult_isUnsignedInt", ctypes.c_uint, (pointer,)),
        ("clang_EvalResult_getAsDouble", ctypes.c_double, (pointer,)),
        ("clang_EvalResult_getAsStr", ctypes.c_char_p, (pointer,)),
        ("clang_EvalResult_dispose", None, (pointer,)),
        (
            "clang_getCursorPlatformAvailability",
            ctypes.c_int,
            (Cursor, *[pointer] * 5, ctypes.c_int),
        ),
        ("clang_getCString", ctypes.c_char_p, (_String,)),
        ("clang_disposeString", None, (_String,)),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def key(cursor: Cursor) -> tuple[int, int | None]:
    """The key of a declaration or macro, unique in its unit.

    `Cursor.hash` has 32 bits: of a hundred thousand cursors some share one, others in each process.
    """
    return cursor._kind_id, cursor.data[0]


def visit(unit: TranslationUnit, top: Cursor, kinds: set[int]) -> list[Cursor]:
    """The cursors of some kinds (by number) at and below one: ten times as fast as walking."""
    found: list[Cursor] = []

    def look(cursor: Cursor, parent: Cursor, data: object) -> int:
        if cursor._kind_id in kinds:
            cursor._tu = unit
            found.append(cursor)
        return 2  # go deeper

    look(top, top, None)
    cindex.conf.lib.clang_visitChildren(top, cindex.callbacks["cursor_visit"](look), None)
    return found


def overloads(reference: Cursor) -> list[Cursor]:
    """What a name that is overloaded may mean."""
    lib = cindex.conf.lib
    count = lib.clang_getNumOverloadedDecls(reference)
    return [lib.clang_getOverloadedDecl(reference, index) for index in range(count)]


def included_file(directive: Cursor) -> str | None:
    """The file that an #include found."""
    file = cindex.conf.lib.clang_getIncludedFile(directive)
    return str(file.name) if file is not None else None


def is_inline_namespace(cursor: Cursor) -> bool:
    return bool(library().clang_Cursor_isInlineNamespace(cursor))


def is_anonymous_record(cursor: Cursor) -> bool:
    """`union { int x; };`: its members are members of the scope around it."""
    return bool(library().clang_Cursor_isAnonymousRecordDecl(cursor))


def template_argument_kind(cursor: Cursor, index: int) -> int:
    """cindex does not know all of them."""
    return int(library().clang_Cursor_getTemplateArgumentKind(cursor, index))


def is_virtual_base(cursor: Cursor) -> bool:
    return bool(library().clang_isVirtualBase(cursor))


def overridden(method: Cursor) -> list[Cursor]:
    """The virtual functions of direct bases that a method overrides."""
    lib = library()
    found, count = ctypes.POINTER(Cursor)(), ctypes.c_uint()
    lib.clang_getOverriddenCursors(method, ctypes.byref(found), ctypes.byref(count))
    if not found:
        return []
    copies = [Cursor.from_buffer_copy(found[index]) for index in range(count.value)]
    lib.clang_disposeOverriddenCursors(found)
    for copy in copies:
        copy._tu = method._tu
    return copies


def value(cursor: Cursor) -> int | float | str | None:
    """What a constant evaluates to, if clang can say."""
    lib = library()
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        kind = lib.clang_EvalResult_getKind(result)
        if kind == INTEGER:
            unsigned = lib.clang_EvalResult_isUnsignedInt(result)
            read = (
                lib.clang_EvalResult_getAsUnsigned
                if unsigned
                else lib.clang_EvalResult_getAsLongLong
            )
            return int(read(result))
        if kind == FLOAT:
            return float(lib.clang_EvalResult_getAsDouble(result))
        if kind == STRING:
            return str(lib.clang_EvalResult_getAsStr(result).decode())
        return None
    finally:
        lib.clang_EvalResult_dispose(result)


def deprecation(cursor: Cursor) -> str | bool:
    """The message of a `deprecated` attribute, True for one without, False for none."""
    lib = library()
    deprecated, unavailable = ctypes.c_int(), ctypes.c_int()
    message, other = _String(), _String()
    lib.clang_getCursorPlatformAvailability(
        cursor,
        ctypes.byref(deprecated),
        ctypes.byref(message),
        ctypes.byref(unavailable),
        ctypes.byref(other),
        None,
        0,
    )
    text = (lib.clang_getCString(message) or b"").decode()
    lib.clang_disposeString(message)
    lib.clang_disposeString(other)
    return bool(deprecated.value) and (text or True)
