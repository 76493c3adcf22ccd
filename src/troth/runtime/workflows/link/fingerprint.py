"""Decide whether a function is still the one that ran: a fingerprint of its code and constants.

Covered are the function's own code, the functions written inside it, its constants, names and defaults. Functions it
calls are not: a change in a helper goes unnoticed. The place in the file does not count, nor do comments.
"""

import functools
import hashlib
import inspect
import sys
from types import CodeType, FunctionType, MethodType

__all__ = ["fingerprint"]

_VERSION = f"py{sys.version_info[0]}.{sys.version_info[1]}"


def fingerprint(call: object) -> str | None:
    """A short text that changes with the code of `call`; None where there is no Python code to see.

    Bytecode differs between versions of Python, so the version is part of it: `py3.12:…`.
    """
    functions = _functions(call)
    if not functions:
        return None
    digest = hashlib.sha256()
    for function in functions:
        _add(digest, function.__code__)
        for default in (function.__defaults__, function.__kwdefaults__):
            digest.update(_constant(default))
    return f"{_VERSION}:{digest.hexdigest()[:16]}"


def _functions(call: object) -> list[FunctionType]:
    """The function that a call ends in, and those that it wraps."""
    functions: list[FunctionType] = []
    for _ in range(100):  # a wrapper can be made to wrap itself
        if isinstance(call, functools.partial):
            call = call.func
        elif isinstance(call, MethodType):
            call = call.__func__
        elif isinstance(call, FunctionType):
            functions.append(call)
            call = getattr(call, "__wrapped__", None)
        elif isinstance(call, type) or not callable(call):
            break
        else:
            method = inspect.getattr_static(type(call), "__call__", None)
            if not isinstance(method, FunctionType):
                break
            call = method
    return functions


def _add(digest: "hashlib._Hash", code: CodeType) -> None:
    digest.update(code.co_code)
    parts = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags)
    digest.update(repr(parts).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add(digest, constant)
        else:
            digest.update(_constant(constant))


def _constant(value: object) -> bytes:
    if isinstance(value, (frozenset, set)):  # whose order differs from process to process
        return repr(sorted(map(repr, value))).encode()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, tuple)):
        return f"{type(value).__name__}:{value!r};".encode()
    if isinstance(value, dict):
        return b"".join(f"{key}=".encode() + _constant(item) for key, item in value.items())
    return f"{type(value).__name__};".encode()  # an object's repr may hold its address
