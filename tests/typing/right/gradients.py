"""Explicit gradients: autograd, hooks, custom functions, transforms."""

from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from adjoint.utils.checkpoint import checkpoint


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (result,) = ctx.saved_tensors
        gradient: Tensor = grad_output * result
        return gradient


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, low: float) -> Tensor:
        return x.clamp(min=low)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, low = inputs
        ctx.save_for_backward(x)
        ctx.low = low

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad_output * (x >= ctx.low), None


def own_functions(x: Tensor) -> Tensor:
    y: Tensor = Exp.apply(x)
    z: Tensor = Clamp.apply(x, 0.0)
    return y + z


def first_and_second(x: Tensor) -> tuple[Tensor, Tensor]:
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), [x])
    return first, second


def accumulated(x: Tensor) -> Tensor | None:
    (x * 2).sum().backward()
    (x * 3).sum().backward(retain_graph=True)
    x.sum().backward(torch.tensor(2.0))
    gradient = x.grad
    if gradient is not None:
        gradient = gradient.clone()
    x.grad = None
    return gradient


def hooked(x: Tensor) -> list[float]:
    seen: list[float] = []

    def note(gradient: Tensor) -> Tensor | None:
        seen.append(gradient.sum().item())
        return gradient * 2

    y = x * 2
    handle = y.register_hook(note)
    y.retain_grad()
    y.sum().backward()
    handle.remove()
    return seen


def graph(x: Tensor) -> str:
    y = (x * 2).sum()
    names: list[str] = []
    node = y.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return " ".join(names)


def modes(x: Tensor) -> bool:
    with torch.no_grad():
        a = x * 2
    with torch.enable_grad(), torch.set_grad_enabled(True):
        b = x * 2
    with torch.inference_mode():
        c = x * 2
    return a.requires_grad or not b.requires_grad or c.is_inference() or torch.is_grad_enabled()


def transforms(x: Tensor) -> Tensor:
    def f(x: Tensor) -> Tensor:
        return (x.sin() * x).sum()

    gradient: Tensor = grad(f)(x)
    second: Tensor = hessian(f)(x)
    outputs: tuple[Tensor, Tensor] = jvp(f, (x,), (torch.ones_like(x),))
    _, pull = vjp(f, x)
    rows: Tensor = vmap(torch.linalg.norm)(second)
    total: Tensor = (
        gradient
        + second.sum(0)
        + outputs[1]
        + pull(torch.tensor(1.0))[0]
        + rows
        + jacrev(torch.sin)(x).sum(0)
        + jacfwd(torch.cos)(x)[0]
    )
    return total


def per_sample(model: torch.nn.Module, inputs: Tensor) -> dict[str, Tensor]:
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], sample: Tensor) -> Tensor:
        output: Tensor = functional_call(model, parameters, (sample,))
        return output.pow(2).sum()

    gradients: dict[str, Tensor] = vmap(grad(loss), in_dims=(None, 0))(parameters, inputs)
    return gradients


def recomputed(model: torch.nn.Module, x: Tensor) -> Tensor:
    result: Tensor = checkpoint(model, x, use_reentrant=False)
    return result


def checked(x: Tensor) -> bool:
    def f(x: Tensor) -> Tensor:
        return (x**2).sum()

    return torch.autograd.gradcheck(f, (x.double().requires_grad_(),))


def jacobians(x: Tensor) -> Tensor:
    def f(x: Tensor) -> Tensor:
        return x**2

    full = torch.autograd.functional.jacobian(f, x)
    assert isinstance(full, Tensor)
    return full.diagonal()


def run() -> None:
    def x() -> Tensor:
        return torch.tensor([0.5, 1.0, 2.0], requires_grad=True)

    own_functions(x()).sum().backward()
    print(first_and_second(x()))
    print(accumulated(x()))
    print(hooked(x()))
    print(graph(x()))
    print(modes(x()))
    print(transforms(x().detach()))
    model = torch.nn.Linear(3, 2)
    print(per_sample(model, torch.randn(4, 3)))
    print(recomputed(model, x()))
    print(checked(x().detach()))
    print(jacobians(x().detach()))
