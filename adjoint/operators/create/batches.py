"""Random numbers within `vmap`: one draw for a whole batch."""

from __future__ import annotations

import functools
from typing import Any

from ...dispatch.decorators import tensors
from ...tape import modes


def under_vmap(draw_batch: Any) -> Any:
    """Decorate a function that makes a random tensor: within `vmap`, `draw_batch(level, function, args, keywords)` draws."""

    def decorate(create: Any) -> Any:
        @functools.wraps(create)
        def drawing(*args: Any, **keywords: Any) -> Any:
            if not modes.FLAGS.special:
                return create(*args, **keywords)
            for level in reversed(modes.STATE.interpreters):
                if hasattr(level, "drawn"):
                    if keywords.get("out") is not None:
                        raise RuntimeError(
                            "vmap: We do not support calling out variants of random operations inside of vmap. Please use "
                            "non-out variants as a workaround"
                        )
                    return level.drawn(
                        functools.partial(drawing, *args, **keywords),
                        functools.partial(draw_batch, level, drawing, args, keywords),
                    )
            return create(*args, **keywords)

        return drawing

    return decorate


def with_batch_size(level: Any, draw: Any, args: Any, keywords: Any) -> Any:
    """Draw with the size of the batch before the other sizes."""
    if keywords.get("size") is not None:
        return draw(*args, **{**keywords, "size": (level.size, *keywords["size"])})
    if args and isinstance(args[-1], (tuple, list)):
        return draw(*args[:-1], (level.size, *args[-1]), **keywords)
    return draw(level.size, *args, **keywords)


def like_batch(level: Any, draw: Any, args: Any, keywords: Any) -> Any:
    """Draw like the tensor of the whole batch."""
    named = {name: level.expanded(value) if name in ("input", "x") else value for name, value in keywords.items()}
    return draw(*map(level.expanded, args[:1]), *args[1:], **named)


def one_by_one(level: Any, draw: Any, args: Any, keywords: Any) -> Any:
    """Draw for one batch element after another."""
    return tensors.stack([draw(*args, **keywords) for _ in range(max(level.size, 1))])[: level.size]
