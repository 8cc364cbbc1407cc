"""The signature of each public name, and the line that declares it."""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
from functools import cache
from pathlib import Path

from sphinx.util.inspect import signature, stringify_signature

from .public_names import PACKAGE, PublicName

STUBS = {
    "torch": "__init__.pyi",
    "torch.nn.functional": "nn/functional/__init__.pyi",
    "torch.linalg": "linalg.pyi",
    "torch.special": "special.pyi",
    "torch.fft": "fft.pyi",
    "torch.Tensor": "operators/tensor_methods.pyi",
}


def signatures(public: PublicName) -> list[str]:
    """Return one signature for each overload, from the type stubs or, if they lack the name, from the object."""
    if found := stubs(public.module).get(public.name):
        return found
    if isinstance(public.value, property) or not callable(public.value):
        return [""]
    try:
        called = signature(public.value, bound_method=public.kind == "method")
    except (TypeError, ValueError):
        return ["(...)"]
    return [readable(called)]


def readable(called: inspect.Signature) -> str:
    """Return the signature as text, with the short names of types and without defaults that are objects."""
    return re.sub(r"=( ?)<[^<>]*>", r"=\1...", stringify_signature(called, unqualified_typehints=True))


@cache
def stubs(module: str) -> dict[str, list[str]]:
    """Return the signatures in the type stubs of a module, by name."""
    if module not in STUBS:
        return {}
    body = ast.parse((PACKAGE / STUBS[module]).read_text(encoding="utf-8")).body
    if module == "torch.Tensor":
        (body,) = [item.body for item in body if isinstance(item, ast.ClassDef) and item.name == "TensorMethods"]
    found: dict[str, list[str]] = {}
    for item in body:
        if not isinstance(item, ast.FunctionDef):
            continue
        if any(ast.unparse(decorator) == "property" for decorator in item.decorator_list):
            found[item.name] = [""]
            continue
        if module == "torch.Tensor":
            del (item.args.posonlyargs or item.args.args)[:1]
        returned = f" -> {ast.unparse(item.returns)}" if item.returns is not None else ""
        text = f"({ast.unparse(item.args)}){returned}"
        private = r"\b_(bool|int|float|complex|dtype|device|layout|memory_format|Number|Dims|Index|slice|type)\b"
        found.setdefault(item.name, []).append(re.sub(private, r"\1", text))
    return found


def declaration(public: PublicName) -> tuple[str, int] | None:
    """Return the file that declares the name, and the line, or None for names of other packages."""
    if public.family:
        path = PACKAGE / "operators" / f"{public.family.replace('.', '/')}.py"
        owner, name, code = public.module.rpartition(".")[2], public.name, path.read_text(encoding="utf-8")
        ways = (f"{owner}_{name}\\b", rf"{name}\b", rf"{name.removesuffix('_')}\b")
        ways = [rf"^ *(?:class|def) {way}" for way in ways] + [rf"\b{name}\b"]  # or a decorator adds the name
        for found in filter(None, (re.search(way, code, re.MULTILINE) for way in ways)):
            return str(path.relative_to(PACKAGE.parent)), code.count("\n", 0, found.start()) + 1
    value = inspect.unwrap(public.value.fget if isinstance(public.value, property) else public.value)
    try:
        path, line = Path(str(inspect.getsourcefile(value))), inspect.getsourcelines(value)[1]
    except (TypeError, OSError, tokenize.TokenError):  # the object has no source, or generated source
        return None
    return (str(path.relative_to(PACKAGE.parent)), line) if path.is_relative_to(PACKAGE) else None
