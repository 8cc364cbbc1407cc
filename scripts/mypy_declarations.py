"""A mypy plugin for declarations: a declared class is replaced by the function that it declares.

Mypy treats a decorated class as a class, whatever the decorator returns. This plugin declares that the constructor of
such a class accepts any arguments, and that its instances (as which mypy sees results of the function, and the first
parameters of formulas) are compatible with any type.
"""

from collections.abc import Callable

from mypy.plugin import ClassDefContext, Plugin

DECORATORS = (
    "adjoint.dispatch.decorators.",
    "adjoint.dispatch.overloads.",
    "adjoint.dispatch.reductions.",
    "adjoint.dispatch.slopes.",
    "adjoint.operators.",
)


class Declarations(Plugin):
    """The plugin: it handles the decorators of declarations, those of `dispatch` and those that a family derives from them."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """The handler for a class decorated by the function with this name."""
        return becomes_function if fullname.startswith(DECORATORS) else None


def becomes_function(context: ClassDefContext) -> None:
    """Let the constructor of the class accept any arguments, and let its instances have any type."""
    context.cls.info.fallback_to_any = True


def plugin(version: str) -> type[Plugin]:
    """The entry point for mypy."""
    return Declarations
