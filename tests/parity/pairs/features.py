"""Features of the library. Each feature turns a function of tensors into another function.

A feature is a function `feature(torch, function, *inputs)`. It applies `function` to the inputs, or to tensors that it creates
from the inputs, and returns a tensor or a tuple of tensors. Its `meaning` is the same function in simpler terms, for combinations
that PyTorch refuses.
"""

import copy
import io
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

Function = Callable[..., Any]


class Feature(NamedTuple):
    """`digits`: the number of correct digits, if the feature computes with low precision."""

    apply: Function
    meaning: Function | None
    digits: int
    is_large: bool


FEATURES: dict[str, Feature] = {}


def feature(
    meaning: Function | None = None, *, digits: int = 7, is_large: bool = False
) -> Callable[[Function], Function]:
    """Register a feature under the name of its function."""

    def enter(apply: Function) -> Function:
        FEATURES[apply.__name__.strip("_").replace("_", " ")] = Feature(apply, meaning, digits, is_large)
        return apply

    return enter


def flat(result: Any) -> tuple[Any, ...]:
    """Return a tensor, or nested tuples of tensors, as a flat tuple without missing gradients (None)."""
    if isinstance(result, tuple):
        return tuple(item for part in result for item in flat(part))
    return () if result is None else (result,)


def numbers(torch: Any, like: Any, shift: float = 0.0) -> Any:
    """Return different real weights for the elements of a tensor."""
    count = torch.arange(like.numel(), dtype=torch.float64, device=like.device)
    return torch.cos(count + shift).reshape(like.shape).to(like.real.dtype)


def loss(torch: Any, results: Any) -> Any:
    """Return a weighted sum of all elements of the results that depend on leaves, or None if no result depends on a leaf."""
    parts = [(result * numbers(torch, result)).sum().real for result in flat(results) if result.requires_grad]
    return sum(parts[1:], parts[0]) if parts else None


def gradients(torch: Any, results: Any, inputs: Any, **options: bool) -> tuple[Any, ...]:
    """Return the gradients of the inputs from all results, or zeros if no result depends on an input."""
    total = loss(torch, results)
    if total is None:
        return tuple(torch.zeros_like(one) for one in inputs)
    return torch.autograd.grad(total, tuple(inputs), materialize_grads=True, **options)


def same(torch: Any, f: Function, *x: Any) -> Any:
    """Compute the meaning of a feature that changes no values, which is the function itself."""
    return f(*x)


def elsewhere(torch: Any, f: Function, x: Any, move: Function = lambda tensors: tensors) -> Any:
    """Return the results and gradients of the function at leaves that `move` has moved."""
    moved = move([one.detach().requires_grad_() for one in x])
    result = f(*moved)
    return *(one.detach() for one in flat(result)), *gradients(torch, result, moved)


def leaves_of_their_own(torch: Any, f: Function, *x: Any) -> Any:
    """Compute the meaning of features that move leaves."""
    return elsewhere(torch, f, x)


# ---------------------------------------------------------------- sparse gradients


def embed(torch: Any, tensor: Any, *, sparse: bool) -> Any:
    """Return all rows of a table by a lookup that gives a sparse gradient."""
    if tensor.dim() != 2:
        rows = torch.arange(tensor.shape[0], device=tensor.device) if tensor.dim() else torch.tensor(0)
        rows = rows.reshape(-1, *[1] * (tensor.dim() - 1)).expand(tensor.shape) if tensor.dim() else rows
        return torch.gather(tensor, 0, rows, sparse_grad=sparse)
    rows = torch.arange(tensor.shape[0], device=tensor.device)
    return torch.nn.functional.embedding(rows, tensor, sparse=sparse)


@feature(lambda torch, f, *x: f(*(embed(torch, one, sparse=False) for one in x)))
def sparse_gradients_of_inputs(torch, f, *x):
    return f(*(embed(torch, one, sparse=True) for one in x))


@feature(lambda torch, f, *x: tuple(embed(torch, one, sparse=False) for one in flat(f(*x))))
def sparse_gradients_of_results(torch, f, *x):
    return tuple(embed(torch, one, sparse=True) for one in flat(f(*x)))


# ---------------------------------------------------------------- contexts


@feature(digits=2)
def autocast(torch, f, *x):
    x = [one.float() if one.dtype == torch.float64 else one for one in x]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return f(*x)


@feature(same)
def checkpoint(torch, f, *x):
    return torch.utils.checkpoint.checkpoint(f, *x, use_reentrant=False)


@feature(same)
def checkpoint_reentrant(torch, f, *x):
    return torch.utils.checkpoint.checkpoint(f, *x, use_reentrant=True)


def _constant_and_result(torch, f, *x):
    constant = tuple(one.detach() for one in flat(f(*(one.detach() for one in x))))
    return *constant, *flat(f(*x))


@feature(_constant_and_result)
def no_grad(torch, f, *x):
    with torch.no_grad():
        constant = f(*x)
    return *flat(constant), *flat(f(*x))


@feature(_constant_and_result)
def inference_mode(torch, f, *x):
    with torch.inference_mode():
        constant = f(*x)
    return *(one.clone() for one in flat(constant)), *flat(f(*x))


@feature(same)
def saved_tensors_hooks(torch, f, *x):
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (tensor.clone(),), lambda packed: packed[0]):
        return f(*x)


@feature(same)
def another_thread(torch, f, *x):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(f, *x).result()


# ---------------------------------------------------------------- derivatives


def _tangents(torch: Any, x: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(numbers(torch, one, 1.0).to(one.dtype) for one in x)


def _result_and_tangent(torch, f, *x):
    """Return the derivative of a vector-Jacobian product with respect to the vector."""
    options = {"create_graph": True, "materialize_grads": True}
    with torch.enable_grad():
        x = [one if one.requires_grad else one.detach().requires_grad_() for one in x]
        result = flat(f(*x))
        known = [one for one in result if one.requires_grad]
        vectors = [torch.zeros_like(one, requires_grad=True) for one in known]
        products = torch.autograd.grad(known, x, vectors, **options) if known else ()
        pairs = [pair for pair in zip(products, _tangents(torch, x), strict=bool(known)) if pair[0].requires_grad]
        found = map(torch.zeros_like, vectors)
        if pairs:
            depending, directions = zip(*pairs, strict=True)
            found = iter(torch.autograd.grad(depending, vectors, directions, **options))
    return *result, *(next(found) if one.requires_grad else torch.zeros_like(one) for one in result)


@feature(_result_and_tangent)
def jvp(torch, f, *x):
    return flat(torch.func.jvp(f, x, _tangents(torch, x)))


@feature(_result_and_tangent)
def dual_numbers(torch, f, *x):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        pairs = [forward.make_dual(one, tangent) for one, tangent in zip(x, _tangents(torch, x), strict=True)]
        unpacked = [forward.unpack_dual(one) for one in flat(f(*pairs))]
        tangents = (torch.zeros_like(one.primal) if one.tangent is None else one.tangent for one in unpacked)
        return *(one.primal for one in unpacked), *tangents


def second_backward(torch, f, *x):
    result = f(*x)
    return *flat(result), *gradients(torch, result, x, create_graph=True)


@feature(second_backward)
def vjp(torch, f, *x):
    result, pull = torch.func.vjp(f, *x)
    vectors = tuple(numbers(torch, one).to(one.dtype) for one in flat(result))
    return *flat(result), *flat(pull(vectors if isinstance(result, tuple) else vectors[0]))


feature(vjp)(second_backward)


@feature(leaves_of_their_own)
def backward_twice(torch, f, *x):
    leaves = [one.detach().requires_grad_() for one in x]
    result = f(*leaves)
    first = gradients(torch, result, leaves, retain_graph=True)
    second = gradients(torch, result, leaves)
    return *(one.detach() for one in flat(result)), *((one + two) / 2 for one, two in zip(first, second, strict=True))


def _loop(torch, f, *x):
    results = [flat(f(*one)) for one in zip(*((tensor, tensor * 0.75) for tensor in x), strict=True)]
    return tuple(torch.stack(parts) for parts in zip(*results, strict=True))


@feature(_loop)
def vmap(torch, f, *x):
    return torch.vmap(f, randomness="different")(*(torch.stack((tensor, tensor * 0.75)) for tensor in x))


def _loop_over_first(torch, f, x, *rest):
    results = [flat(f(one, *rest)) for one in (x, x * 0.75)]
    return tuple(torch.stack(parts, -1) for parts in zip(*results, strict=True))


@feature(_loop_over_first)
def vmap_of_the_first(torch, f, x, *rest):
    dims = (-1, *(None for _ in rest))
    return torch.vmap(f, dims, -1, randomness="different")(torch.stack((x, x * 0.75), -1), *rest)


# ---------------------------------------------------------------- hooks


def _with_gradients(torch, f, *x):
    def scaled(tensor, factor):
        return tensor * factor - (tensor * (factor - 1)).detach() if tensor.requires_grad else tensor

    return tuple(scaled(one, 3.0) for one in flat(f(*(scaled(one, 2.0) for one in x))))


@feature(_with_gradients)
def hooks(torch, f, *x):
    """Register tensor hooks on the inputs and node hooks on the results."""
    x = [one * 1 for one in x]
    for one in x:
        if one.requires_grad:
            one.register_hook(lambda grad: grad * 2)
    results = [one.view_as(one) for one in flat(f(*x))]
    for one in results:
        if one.grad_fn is not None:
            one.grad_fn.register_prehook(lambda grads: tuple(grad * 1.5 for grad in grads))
            one.grad_fn.register_hook(lambda grads, _: tuple(grad * 2 for grad in grads))
    return tuple(results)


@feature(leaves_of_their_own)
def hooks_of_leaves(torch, f, *x):
    leaves, seen = [one.detach().requires_grad_() for one in x], {}
    for one in leaves:
        one.register_post_accumulate_grad_hook(lambda leaf: seen.update({id(leaf): leaf.grad * 1}))
    result = f(*leaves)
    total = loss(torch, result)
    if total is not None:
        total.backward()
    grads = (seen[id(leaf)] if id(leaf) in seen else torch.zeros_like(leaf) for leaf in leaves)
    return *(one.detach() for one in flat(result)), *(grad.detach() for grad in grads)


# ---------------------------------------------------------------- memory


def _half_of_it(torch: Any, tensor: Any) -> Any:
    """Return factors: 2 for elements whose last index is 0, and 1 for other elements."""
    ones = torch.ones(tensor.shape[-1:], device=tensor.device)
    return torch.where(torch.arange(tensor.shape[-1], device=tensor.device) == 0, ones * 2, ones).to(tensor.real.dtype)


def _change(tensor: Any) -> Any:
    """Double the elements whose last index is 0, by an in-place change of a view."""
    if tensor.dim():
        tensor.select(-1, 0).mul_(2)
    return tensor


@feature(lambda torch, f, *x: f(*(one * _half_of_it(torch, one) if one.dim() else one * 1 for one in x)))
def inputs_changed_in_place(torch, f, *x):
    return f(*(_change(one * 1) for one in x))


@feature(lambda torch, f, *x: tuple(one * _half_of_it(torch, one) if one.dim() else one for one in flat(f(*x))))
def results_changed_in_place(torch, f, *x):
    return tuple(_change(one) for one in flat(f(*x)))


@feature(lambda torch, f, *x: f(*(torch.complex(one, one * -0.5).conj().resolve_conj() for one in x)))
def conjugated(torch, f, *x):
    return f(*(torch.complex(one, one * -0.5).conj() for one in x))


@feature(same)
def negated(torch, f, *x):
    """Use real tensors with a lazy negative."""
    return f(*(torch.complex(one * 0, -one).conj().imag for one in x))


@feature(lambda torch, f, *x: f(*(one[:1].expand(one.shape).clone() if one.dim() else one * 1 for one in x)))
def expanded(torch, f, *x):
    return f(*(one[:1].expand(one.shape) if one.dim() else one for one in x))


def _windows(tensor):
    """Return overlapping windows of the tensor's shape."""
    if tensor.dim() < 2:
        return tensor
    rows, size = tensor.shape[0], tensor[0].numel()
    return tensor.flatten().unfold(0, size, 1)[:rows].view(tensor.shape)


@feature(lambda torch, f, *x: f(*(_windows(one).clone() for one in x)))
def overlapping(torch, f, *x):
    return f(*(_windows(one) for one in x))


# ---------------------------------------------------------------- kinds of tensors


@feature(digits=4)
def mixed_dtypes(torch, f, *x):
    return f(*x[:-1], x[-1].float())


@feature(same)
def subclass(torch, f, *x):
    name = f"Tagged_{torch.__name__}"  # pickles refer to the class by name
    tagged = globals().setdefault(name, type(name, (torch.Tensor,), {"__module__": __name__}))
    return f(*(one.as_subclass(tagged) for one in x))


@feature(lambda torch, f, *x: tuple(one.to("meta") for one in leaves_of_their_own(torch, f, *x)))
def meta(torch, f, *x):
    return elsewhere(
        torch, f, x, lambda tensors: [one.detach().to("meta").requires_grad_(one.requires_grad) for one in tensors]
    )


@feature(same, is_large=True)
def large(torch, f, *x):
    return f(*x)


# ---------------------------------------------------------------- copies


@feature(leaves_of_their_own)
def deep_copy(torch, f, *x):
    return copy.deepcopy(elsewhere(torch, f, x, copy.deepcopy))


def _saved_and_loaded(torch, value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


@feature(leaves_of_their_own)
def pickled(torch, f, *x):
    result = elsewhere(torch, f, x, lambda tensors: pickle.loads(pickle.dumps(tensors)))
    return tuple(_saved_and_loaded(torch, list(result)))


@feature(leaves_of_their_own)
def another_process(torch, f, *x):
    context = torch.multiprocessing.get_context("fork")
    questions, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=_serve, args=(torch, f, questions, answers), daemon=True)
    process.start()
    try:
        questions.put([one.detach().requires_grad_() for one in x])
        if not answers._reader.poll(30):
            raise TimeoutError("the other process does not answer")
        answer = answers.get()
    finally:
        questions.put(None)
        process.join(1)
        process.kill()
    if isinstance(answer, Exception):
        raise answer
    return tuple(answer)


def _serve(torch, f, questions, answers):
    """Run the other process, which receives and sends tensors in shared memory, and ends after the tensors have arrived."""
    try:
        answer: Any = list(elsewhere(torch, f, questions.get()))
    except Exception as error:
        answer = error
    try:
        answers.put(answer)
    except Exception as error:
        answers.put(error)
    questions.get()
