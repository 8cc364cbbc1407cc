"""A mypy plugin that replaces a declared class by the function that the class declares.

mypy treats a decorated class as a class, even if the decorator returns another object. This plugin lets the constructor of such a
class accept any arguments. It also makes instances of the class compatible with any type. The reason is that mypy gives the type
of the class to results of the function and to the first parameters of formulas.
"""

from collections.abc import Callable

from mypy.plugin import ClassDefContext, Plugin

DECORATORS = (
    "adjoint.dispatch.decorators.",
    "adjoint.operators.",
)


class Declarations(Plugin):
    """The plugin. It handles the decorators of `dispatch`, and the decorators that families derive from them."""

    def get_class_decorator_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Return the handler for a class that the function with this name decorates."""
        return becomes_function if fullname.startswith(DECORATORS) else None


def becomes_function(context: ClassDefContext) -> None:
    """Let the constructor of the class accept any arguments, and let its instances have any type."""
    context.cls.info.fallback_to_any = True


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, as mypy requires."""
    return Declarations
