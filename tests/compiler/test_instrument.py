"""Finding the definition of a function in its file."""

import ast
import linecache
import textwrap

import pytest

from adjoint.compiler.instrument import NotReadable, definition_of

FORMS = {
    "in one line": "def f(x): return x + 1",
    "a signature of several lines": "def f(\n    x,\n    y=(\n1,\n),\n):\n    return x",
    "a string with lines at the margin": "def f(x):\n    y = '''\nz = 1\ndef f(x):\n'''\n    return y",
    "a comment at the margin": "def f(x):\n    y = x\n# margin\n    return y",
    "continued lines at the margin": "def f(x):\n    y = x + \\\n1\n    z = (\ny\n)\n    return z",
    "a decorator of several lines": "@(\n  lambda g:\n  g\n)\ndef f(x):\n    def f(y):\n        return y\n    return f",
    "a decorator alone in its line": "@(\n  next\n  (iter([lambda g: g]))\n)\ndef f(x):\n    return x",
    "a branch at the end": "def f(x):\n    if x:\n        return 1\n    else:\n\n        return 2\n\n",
}


PLACES = [(form, inside) for form in FORMS for inside in (False, True) if not (inside and "margin" in form)]


@pytest.mark.parametrize(("form", "inside"), PLACES)
def test_definition_is_found_whole_with_its_positions(form: str, inside: bool) -> None:
    written = FORMS[form]
    text = f"class C:\n{textwrap.indent(written, '    ')}\n" if inside else f"{written}\n"
    text = f"before = 1\n{text}after = [\n2]\n"
    namespace: dict[str, object] = {}
    filename = f"<{form} {inside}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), namespace)
    owner = vars(namespace["C"]) if inside else namespace
    body = ast.parse(text).body[1]
    expected = body.body[0] if isinstance(body, ast.ClassDef) else body
    found = definition_of(owner["f"].__code__)
    assert ast.dump(found, include_attributes=True) == ast.dump(expected, include_attributes=True)


def test_definition_that_has_moved_in_its_file_is_not_used() -> None:
    text = "def f(x):\n    return x\n"
    namespace: dict[str, object] = {}
    exec(compile(text, "<moved>", "exec"), namespace)
    moved = f"\n{text}"
    linecache.cache["<moved>"] = (len(moved), None, moved.splitlines(True), "<moved>")
    with pytest.raises(NotReadable):
        definition_of(namespace["f"].__code__)
