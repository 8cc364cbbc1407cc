"""What mypy cannot read from a declaration: the class is replaced by the function that it declares.

Mypy leaves a decorated class what it is, whatever the decorator returns. This tells it that instances of such a class (that is
what it takes results of the function, and the first parameters of formulas, for) may be anything, and that any arguments do.
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
    """Knows the decorators of declarations: those of `dispatch`, and those that a family makes of them."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """What is to be done with a class decorated by the function of this name."""
        return becomes_function if fullname.startswith(DECORATORS) else None


def becomes_function(context: ClassDefContext) -> None:
    """The class, which will be a function: take anything for its arguments, and its instances for anything."""
    context.cls.info.fallback_to_any = True


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return Declarations
