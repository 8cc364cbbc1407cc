"""The parts of random programs: the initial tensors, and the lines.

In a line, `{x}`, `{y}` and `{z}` are tensors, `{r}` is the name of the result, and each name of `CHOICES` stands for one of its
values. `{d}` is a dimension and `{i}` an index of `x`. Each group of lines has a condition on `x`, `y` and `z` that most random
tensors satisfy. Therefore most programs compute results, and some raise errors.
"""

from typing import NamedTuple

# Both libraries execute this code before the program. `log` records the arguments and the order of calls of user functions.
# `second` and `quiet` exclude undefined properties: the values that formulas of second derivatives save, and the layout of the
# results.
PRELUDE = """
log, handles, quiet = [], [], []


def note(*what):
    if not quiet:
        log.append(snapshot(what))


def asked(tensor):
    tensor.grad_fn  # PyTorch crashes for hooks on a view that was changed since anybody asked
    return tensor


def watch(label):
    return lambda *given: note(label, given)


def scale(label, factor):
    def hook(grad):
        note(label, grad)
        return grad * factor
    return hook


def failing(label):
    def hook(*given):
        note(label)
        raise KeyError(label)
    return hook


def changing(label):
    def hook(grad):
        note(label, grad)
        grad.mul_(2)
    return hook


def once(label, register):
    def hook(*given):
        note(label, given)
        handle.remove()
    handle = register(hook)


def adding(label, register):
    def hook(*given):
        note(label)
        handles.append(register(watch(label + " added")))
    handles.append(register(hook))


def scale_inputs(label):
    def hook(grad_inputs, grad_outputs):
        note(label, grad_inputs, grad_outputs)
        return tuple(None if grad is None else grad * 2 for grad in grad_inputs)
    return hook


def scale_outputs(label):
    def hook(grad_outputs):
        note(label, grad_outputs)
        return tuple(None if grad is None else grad * 3 for grad in grad_outputs)
    return hook


def stepping(label):
    def hook(leaf):
        note(label, leaf.grad)
        with torch.no_grad():
            leaf.sub_(leaf.grad, alpha=0.1)
        leaf.grad = None
    return hook


def nested(label):
    def hook(grad):
        note(label, grad)
        with torch.enable_grad():
            inner = torch.ones(2, dtype=torch.float64, requires_grad=True)
            (inner * 3).sum().backward()
        note(label, inner.grad)
    return hook


def pack(tensor):
    note("pack", tensor)
    return tensor.detach().clone()


def pack_itself(tensor):
    note("pack", tensor)
    return tensor


def unpack(packed):
    note("unpack", packed)
    return packed


def failing_pack(tensor):
    raise KeyError("pack")


def second(result):
    quiet.append(None)
    try:
        return result().clone(memory_format=torch.contiguous_format)
    finally:
        quiet.pop()


def gradient(result):
    return None if result is None else result.clone(memory_format=torch.contiguous_format)


def edge_of(tensor):
    return torch.autograd.graph.get_gradient_edge(asked(tensor))


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def checkpoint(function, *args, **kwargs):
    return torch.utils.checkpoint.checkpoint(function, *args, **kwargs)


def changed(tensor, change):
    change(tensor)
    return tensor


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        note("Cube", grad, ctx.needs_input_grad)
        return 3 * x * x * grad


class Sinh(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sinh(), x.cosh()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*output)
        ctx.save_for_forward(*output)

    @staticmethod
    def backward(ctx, one, two):
        note("Sinh", one is None, two is None)
        sinh, cosh = ctx.saved_tensors
        return one * cosh.conj() + two * sinh.conj()

    @staticmethod
    def jvp(ctx, tangent):
        sinh, cosh = ctx.saved_tensors
        return tangent * cosh, tangent * sinh


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        note("Double_", grad)
        return grad * 2


class Dirty2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(y)
        ctx.save_for_backward(x)
        y.add_(1)
        return x * 3, y

    @staticmethod
    def backward(ctx, one, two):
        note("Dirty2", one, two, ctx.saved_tensors)
        return one * 3, two


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        sign = x > 0
        ctx.mark_non_differentiable(sign)
        ctx.set_materialize_grads(False)
        return x * 2, sign, x * 3

    @staticmethod
    def backward(ctx, one, two, three):
        note("Sign", one, two, three)
        return one * 2 if one is not None else three


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x

    @staticmethod
    def backward(ctx, grad):
        note("Same", grad, ctx.needs_input_grad)
        return grad * 2, None


class Views(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.sum().expand(())


class ViewOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        note("ViewOf", grad)
        return grad * 5


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0].conj()

    @staticmethod
    def jvp(ctx, tangent):
        return 2 * tangent * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x):
        note("Square", info.batch_size, in_dims)
        return Square.apply(x), in_dims[0]


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * 2
"""

# Each program begins with some of these lines.
STARTS = """
torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64, requires_grad=True)
torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
torch.tensor([[2.0, 1.0, -0.5], [0.75, -1.25, 3.0]], dtype=torch.float64)
torch.tensor([[1.25, -0.5], [0.75, 2.5]], dtype=torch.float64, requires_grad=True)
torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
torch.tensor([0.5, 1.5, -1.0], requires_grad=True)
torch.tensor([[0.25], [-1.75]])
torch.tensor([[1 + 2j, -0.5j, 0.5], [2 - 1j, 1.5 + 0.5j, -1.25]], dtype=torch.complex128, requires_grad=True)
torch.tensor([0.5 - 1j, 2.0, 1j], dtype=torch.complex128)
torch.tensor([[3, -1, 2], [0, 5, -4]])
torch.tensor([2, 0, 1])
torch.tensor([[True, False, True], [False, True, True]])
torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(2, 2, 3).requires_grad_()
torch.linspace(-2, 1, 6, dtype=torch.float64).reshape(3, 2).t().requires_grad_()
torch.empty(0, 3, dtype=torch.float64, requires_grad=True)
torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
torch.nn.Parameter(torch.tensor([[0.5, -0.25, 1.0]], dtype=torch.float64))
""".strip().split("\n")

CHOICES = {
    "n": "0.5 2 -1.5 3 1 True".split(),
    "d": [],  # a dimension of x
    "i": [],  # an index of the first dimension of x, or an index that is slightly out of bounds
    "unary": (
        "abs atan asinh cos cosh erf exp expm1 log1p neg reciprocal relu round rsqrt sigmoid sin sinh sqrt square tan tanh "
        "trunc log sign floor ceil frac angle sgn conj exp2 log2 sinc lgamma digamma nan_to_num deg2rad acos asin"
    ).split(),
    "unary_": (
        "abs_ atan_ asinh_ cos_ cosh_ erf_ exp_ expm1_ log1p_ neg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinh_ sqrt_ "
        "square_ tan_ tanh_ trunc_ log_ sign_ floor_ frac_ zero_ nan_to_num_ t_"
    ).split(),
    "function": "relu gelu silu elu softplus leaky_relu hardtanh mish softsign logsigmoid selu celu relu6 hardswish".split(),
    "binary": (
        "add sub mul div maximum minimum atan2 pow fmod remainder hypot copysign gt le eq ne fmax logaddexp xlogy true_divide "
        "rsub"
    ).split(),
    "binary_": "add_ sub_ mul_ div_ atan2_ pow_ fmod_ remainder_ copysign_ gt_ eq_ copy_ hypot_ xlogy_".split(),
    "operator": "+ - * / ** // % > <= ==".split(),
    "operator_": "+= -= *= /= **=".split(),
    "reduction": (
        "sum mean prod amax amin logsumexp std var norm cumsum cumprod softmax log_softmax argmax any all nansum".split()
    ),
    "pairs": "max min median mode kthvalue cummax aminmax".split(),
    "dtype": "float64 float64 float32 complex128 int64 bool".split(),
    "flag": ["True", "False"],
    "mode": (
        "torch.no_grad() torch.enable_grad() torch.inference_mode() torch.set_grad_enabled(False) torch.set_grad_enabled(True) "
        "torch.inference_mode(False) torch.autograd.graph.saved_tensors_hooks(pack,unpack) "
        "torch.autograd.graph.saved_tensors_hooks(pack_itself,unpack) torch.autograd.graph.save_on_cpu() "
        "torch.autograd.graph.disable_saved_tensors_hooks('off') torch.autograd.graph.saved_tensors_hooks(failing_pack,unpack) "
        "torch.autograd.forward_ad.dual_level() torch.autograd.graph.allow_mutation_on_saved_tensors() "
        "torch.autograd.set_multithreading_enabled(False)"
    ).split(),
    "hook": [
        "watch('{r}')",
        "scale('{r}',2)",
        "scale('{r}',0.5)",
        "failing('{r}')",
        "changing('{r}')",
        "nested('{r}')",
    ],
    "node_hook": ["watch('{r}')", "scale_inputs('{r}')", "failing('{r}')"],
    "node_prehook": ["watch('{r}')", "scale_outputs('{r}')", "failing('{r}')"],
    "custom": ["Cube", "ViewOf", "Once", "Cube", "Views", "Square"],
    "expression": [
        "(a * a).tanh()",
        "a.sin() * {y}",
        "a[..., :1] + a.sum()",
        "changed(a.clone(), lambda b: b.mul_(a))",
        "changed(a * 1, lambda b: b[0].zero_())",
        "Cube.apply(a)",
        "Sinh.apply(a)[0]",
        "Square.apply(a)",
        "a.softmax(-1)",
        "torch.where(a > 0, a, a * a)",
        "a.T @ a",
        "(a.exp() * {y}.detach()).cumsum(0)",
        "a.unbind()[0] * a.diff().sum()",
        "torch.func.grad(lambda b: (b * b * a.detach()).sum())(a)",
        "a.view(-1)[1:] * 2",
        "torch.cat([a, a * 2])",
        "a.max(0).values",
        "a.index_select(0, torch.tensor([0, 0])) * a[:1]",
        "a * a.detach()",
    ],
}

MAKING = """
## fits(x.shape, y.shape)
{r} = torch.{binary}({x}, {y})
{r} = {x} {operator} {y}
{r} = torch.add({x}, {y}, alpha=2)
{r} = torch.where({x} > 0, {x}, {y})
{r} = {x}.lerp({y}, 0.25)
{r} = torch.addcmul({x}, {y}, {z})
{r} = torch.addcdiv({x}, {y}, {z}, value=0.5)
{r} = {x}.masked_fill({y} > 0, {n})
{r} = torch.nn.functional.mse_loss({x}, {y}, reduction="none")
{r} = torch.nn.functional.smooth_l1_loss({x}, {y})
{r} = {x}.clamp({y}, None)
{r} = {x}.masked_select({y} > 0)
{r} = torch.broadcast_tensors({x}, {y})[1]
## True
{r} = {x}.{unary}()
{r} = torch.nn.functional.{function}({x})
{r} = {x} {operator} {n}
{r} = {n} {operator} {x}
{r} = {x} * 1j
{r} = {x}.clamp(-0.5, 0.5)
{r} = {x}.sum()
{r} = {x}.norm()
{r} = {x}.clone()
{r} = {x}.contiguous()
{r} = {x}.to(torch.{dtype})
{r} = {x}.to({y})
{r} = {x}.type_as({y})
{r} = torch.zeros_like({x}, requires_grad={flag})
{r} = torch.ones_like({x})
{r} = {x}[{x} > 0]
{r} = {x}.nan_to_num(0.5)
{r} = torch.nn.functional.dropout({x}, 0.5)
{r} = {x}.tril()
{r} = {x}.logsumexp(({d},))
{r} = torch.stack([{x}, {x}], {d})
{r} = {x}.flip({d})
{r} = {x}.roll(1, {d})
{r} = {x}.repeat_interleave(2)
{r} = torch.complex({x}, {x})
{r} = torch.polar({x}, {x})
{r} = torch.tensor({x}.tolist(), dtype={x}.dtype, requires_grad={flag})
{r} = {x}.new_zeros(2, 3)
{r} = {x}.mean()
## x.dim() >= 1
{r} = {x}.{reduction}({d})
{r} = {x}.sum({d}, keepdim=True)
{r} = {x}.mean({d})
{r} = {x}.std({d}, correction=0)
{r} = {x}.var({d}, keepdim=True)
{r} = torch.{pairs}({x}, dim={d})[0]
{r} = {x}.kthvalue(1, {d}).values
{r} = {x}.sort({d}).values
{r} = {x}.topk(1, {d}).values
{r} = {x}.index_select({d}, torch.tensor([0, 0]))
{r} = {x}[[0, 0]]
{r} = {x}[torch.tensor([0, -1])]
{r} = {x}[..., torch.tensor([[0], [1]])]
{r} = torch.cat([{x}, {x}, {x}], {d})
{r} = {x}.diff(dim={d})
{r} = torch.nn.functional.layer_norm({x}, {x}.shape[-1:])
{r} = torch.nn.functional.normalize({x}, dim={d})
{r} = torch.nn.functional.pad({x}, (1, 1))
{r} = {x}.gather({d}, torch.zeros_like({x}, dtype=torch.int64))
{r} = {x}.take(torch.tensor([0, 1]))
{r} = {x}.cumsum({d})
{r} = torch.diag({x})
{r} = {x}.tile(2)
{r} = torch.nn.functional.glu({x}, {d})
{r} = torch.outer({x}.flatten(), {x}.flatten())
{r} = torch.take_along_dim({x}, {x}.argsort(0), 0)
## x.dim() == 2
{r} = {x} @ {x}.mT
{r} = {x}[torch.tensor([0, 1]), torch.tensor([1, 0])]
{r} = {x}[:, [0, 1]]
{r} = torch.einsum("ij,kj->ik", {x}, {x})
{r} = {x}.triu(1)
{r} = {x}.repeat(2, 1)
{r} = torch.nn.functional.cross_entropy({x}, torch.tensor([0, 1]))
{r} = {x}.renorm(2, 0, 1.0)
## x.dim() == 2 and x.shape[0] == x.shape[1]
{r} = torch.linalg.inv({x})
{r} = torch.linalg.det({x})
{r} = torch.linalg.solve({x}, {x})
{r} = {x}.trace()
## x.dim() >= 1 and y.dim() >= 1 and x.shape[-1] == y.shape[-2 if y.dim() > 1 else 0]
{r} = {x} @ {y}
{r} = torch.matmul({x}, {y})
## x.dim() >= 1 and y.dim() >= 1 and x.shape[-1] == y.shape[-1]
{r} = torch.tensordot({x}, {y}, dims=([-1], [-1]))
{r} = torch.nn.functional.linear({x}, {y})
{r} = torch.inner({x}, {y})
{r} = torch.nn.functional.cosine_similarity({x}, {y}, dim=-1)
{r} = torch.cat([{x}, {y}])
## x.shape == y.shape
{r} = torch.cat([{x}, {y}], {d})
{r} = torch.stack([{x}, {y}, {x}])
{r} = torch.dist({x}, {y})
{r} = torch.hstack([{x}, {y}])
{r} = {x}.scatter({d}, torch.zeros_like({x}, dtype=torch.int64)[:1], {y})
{r} = {x}.index_add(0, torch.tensor([0]), {y}[:1])
{r} = {x}.masked_scatter({x} > 0, {y})
{r} = {x}.index_put((torch.tensor([0, 0]),), {y}[0], accumulate=True)
{r} = torch.select_scatter({x}, {y}.select({d}, 0), {d}, 0)
"""

VIEWS = """
## x.dim() >= 1
{r} = {x}[{i}]
{r} = {x}[1:]
{r} = {x}[::2]
{r} = {x}[..., {i}]
{r} = {x}[..., 1:]
{r} = {x}[..., None, :1]
{r} = {x}.narrow({d}, 0, 1)
{r} = {x}.select({d}, {i})
{r} = {x}.unbind({d})[{i}]
{r} = {x}.unbind()[{i}]
{r} = {x}.chunk(2, {d})[0]
{r} = {x}.chunk(2)[-1]
{r} = {x}.split(1, {d})[{i}]
{r} = {x}.split([1, 1], {d})[{i}]
{r} = torch.tensor_split({x}, 2)[1]
{r} = {x}.unfold({d}, 2, 1)
{r} = {x}.unflatten(-1, (-1, 1))
{r} = {x}.flatten()
{r} = {x}.movedim(0, -1)
{r} = list({x})[{i}]
## x.dim() >= 2
{r} = {x}.mT
{r} = {x}.mH
{r} = {x}.transpose(0, {d})
{r} = {x}.swapaxes(0, {d})
{r} = {x}.diagonal()
{r} = {x}.diagonal(1, 0, -1)
{r} = {x}[:, 1]
{r} = {x}[0, 1:]
{r} = {x}[:, None, ::2]
{r} = {x}.flatten(0, 1)
{r} = {x}.hsplit(1)[0]
## x.dim() == 2
{r} = {x}.t()
{r} = {x}.T
{r} = {x}.permute(1, 0)
## True
{r} = {x}.view(-1)
{r} = {x}.reshape(-1)
{r} = {x}.ravel()
{r} = {x}[None]
{r} = {x}[...]
{r} = {x}.unsqueeze({d})
{r} = {x}.squeeze()
{r} = {x}.squeeze({d})
{r} = {x}.expand(2, *{x}.shape)
{r} = {x}.detach()
{r} = {x}.data
{r} = {x}.view_as({x})
{r} = {x}.view({x}.shape)
{r} = {x}.expand_as({y})
{r} = {x}.broadcast_to({y}.shape)
{r} = torch.atleast_2d({x})
{r} = {x}.real
{r} = {x}.imag
{r} = {x}.view(torch.{dtype})
{r} = {x}.positive()
## x.is_complex()
{r} = torch.view_as_real({x})
{r} = {x}.real
{r} = {x}.imag
{r} = {x}.H
{r} = {x}.conj()
{r} = {x}.conj()
{r} = {x}.mH
{r} = {x}.adjoint()
{r} = {x}.conj().imag
{r} = {x}.conj().real
{r} = torch._neg_view({x})
{r} = {x}.resolve_conj()
{r} = {x}.resolve_neg()
{r} = {x}.conj_physical()
{r} = {x}.conj_physical_()
{r} = torch.fft.ifft({x}.real)
## x.shape and x.shape[-1] == 2
{r} = torch.view_as_complex({x})
## x.numel() == 6
{r} = {x}.view(3, 2)
{r} = {x}.reshape(3, 2)
{r} = {x}.reshape(6, 1)
{r} = {x}.unflatten(0, (1, -1))
## x.numel() >= 4 and x.is_contiguous()
{r} = {x}.as_strided((2,), (1,))
{r} = {x}.as_strided((2,), (2,), 1)
"""

CHANGING = """
## fits_into(y.shape, x.shape)
{x}.{binary_}({y})
{x} {operator_} {y}
{x}.add_({y}, alpha=2)
{x}.sub_({y})
{x}.mul_({y})
{x}.copy_({y})
{x}.lerp_({y}, 0.5)
{x}.addcmul_({y}, {z})
{x}.addcdiv_({y}, {z})
{x}.masked_fill_({y} > 0, {n})
{x}[...] = {y}
{x}[:] = {y}
{x}.clamp_(min={y})
torch.where({y} > 0, {y}, {y} * 2, out={x})
## x.dim() >= 1 and fits_into(y.shape, x.shape[1:])
{x}[0] = {y}
{x}[-1] += {y}
{x}[[0]] = {y}
{x}[1:] = {y}
{x}[::2] *= {y}
{x}[torch.tensor([1, 0])] = {y}
{x}[0].mul_({y})
{x}.select(0, {i}).copy_({y})
## True
{x}.{unary_}()
{x}.mul_({n})
{x}.add_({n})
{x} {operator_} {n}
{x}.fill_({n})
{x}.fill_({y})
{x}.clamp_(-1, 1)
{x}.pow_(2)
{x}.zero_()
{x}.neg_()
torch.nn.functional.relu({x}, inplace=True)
torch.nn.functional.elu_({x})
{x}[{x} > 0] = 0.1
{x}[{x} > 0] *= 2
{x}.detach().mul_(2)
{x}.data.add_(1)
{x}.requires_grad_()
{x}.requires_grad_({flag})
{x}.requires_grad = {flag}
{x}.detach_()
{x}.unsqueeze_({d})
{x}.squeeze_()
{x}.data = {y}.detach().clone()
{x}.data = {y}
{x}.set_({y})
{x}.bernoulli_(0.5)
{x}.uniform_()
torch.nn.init.ones_({x})
del {x}
del {x}
{x}.swapaxes_(0, {d})
torch.autograd.graph.increment_version({x})
{x}.index_fill_({d}, torch.tensor([0]), {n})
{x}.masked_scatter_({x} > 0, {y}.detach())
## x.numel() >= 1
{x}.resize_(1)
## x.dim() >= 1
{x}[0] = {n}
{x}[..., {i}] = {n}
{x}[..., -1].mul_({n})
{x}.cumsum_({d})
{x}.cumprod_({d})
{x}.tril_()
{x}.transpose_(0, {d})
{x}.index_add_({d}, torch.tensor([0]), {y})
{x}.index_copy_(0, torch.tensor([0]), {y})
{x}.narrow(0, 0, 1).zero_()
{x}.unbind()[0].mul_(2)
{x}.chunk(2)[0].add_(1)
{x}.view(-1)[0].mul_(3)
{x}.scatter_({d}, torch.zeros_like({x}, dtype=torch.int64)[:1], {n})
{x}.index_put_((torch.tensor([0]),), {y})
## x.dim() == 2
{x}.t_()
{x}.fill_diagonal_({n})
{x}.T.mul_({n})
{x}.diagonal().add_(1)
{x}.addmm_({y}, {z})
{x}.renorm_(2, 0, 1.0)
## fits(y.shape, z.shape)
torch.add({y}, {z}, out={x})
torch.mul({y}, {z}, out={x})
torch.sub({y}, {y}, out={x})
## True
torch.exp({y}, out={x})
torch.cat([{y}, {y}], out={x})
torch.sum({y}, {d}, out={x})
"""

HOOKS = """
## x.requires_grad
handles.append(asked({x}).register_hook({hook}))
handles.append(asked({x}).register_hook(watch('{r}')))
handles.append(asked({x}).register_hook(scale('{r}',2)))
handles.append({x}.register_post_accumulate_grad_hook(watch('{r}')))
handles.append({x}.register_post_accumulate_grad_hook(stepping('{r}')))
handles.append({x}.grad_fn.register_hook({node_hook}))
handles.append({x}.grad_fn.register_prehook({node_prehook}))
handles += [node := {x}.grad_fn.next_functions[0][0], node.register_hook({node_hook})]
handles += [node := {x}.grad_fn.next_functions[0][0], node.register_prehook(watch('{r}'))]
handles += [node := {x}.expand_as({x}).grad_fn.next_functions[0][0], node.register_hook({node_hook})]
handles.append(torch.autograd.graph.register_multi_grad_hook((asked({x}), asked({y})), watch('{r}')))
handles.append(torch.autograd.graph.register_multi_grad_hook((asked({x}), asked({y})), watch('{r}'), mode="any"))
once('{r}', asked({x}).register_hook)
once('{r}', {x}.grad_fn.register_hook)
adding('{r}', asked({x}).register_hook)
{x}.retain_grad()
{x}.retain_grad()
{x}.grad_fn._raw_saved_self.register_hooks(pack, unpack)
{x}.grad_fn._raw_saved_result.register_hooks(pack_itself, unpack)
{r} = {x}.grad_fn._saved_self
{r} = {x}.grad_fn._saved_result
handles.pop().remove()
handles.pop(0).remove()
"""

MODES = """
## True
modes.enter({mode})
modes.enter(torch.no_grad())
modes.enter(torch.enable_grad())
modes.leave()
modes.leave()
modes.leave()
torch.set_grad_enabled({flag})
torch.autograd.set_detect_anomaly({flag})
"""

BACKWARD = """
## x.requires_grad and x.numel() > 0
{x}.sum().backward()
{x}.sum().backward()
{x}.sum().backward(retain_graph=True)
({x} * {x}).sum().backward()
({x} * {x}.conj()).real.sum().backward()
{x}.abs().sum().backward()
{x}.backward()
{x}.backward(torch.ones_like({x}))
{x}.backward({y})
{x}.backward(torch.full_like({x}, 0.5), retain_graph=True)
{x}.sum().backward(inputs=[{y}])
{x}.sum().backward(inputs=[{x}, {y}])
torch.autograd.backward([{x}.sum(), {y}.sum()])
torch.autograd.backward([{x}, {y}], [torch.ones_like({x}), torch.ones_like({y})])
in_thread(lambda: {x}.sum().backward())
{r} = gradient(torch.autograd.grad({x}.sum(), {y})[0])
{r} = gradient(torch.autograd.grad({x}.sum(), {x})[0])
{r} = gradient(torch.autograd.grad({x}.sum(), [{y}, {z}], allow_unused=True)[1])
{r} = gradient(torch.autograd.grad({x}.sum(), {y}, materialize_grads=True)[0])
{r} = gradient(torch.autograd.grad({x}, {y}, {x}.detach(), retain_graph=True)[0])
{r} = gradient(torch.autograd.grad({x}, {y}, torch.stack([torch.ones_like({x}), torch.ones_like({x})]), is_grads_batched=True)[0])
{r} = second(lambda: torch.autograd.grad({x}.sum(), {y}, create_graph=True)[0])
{r} = second(lambda: torch.autograd.grad(({x} * {x}).sum(), {y}, create_graph=True)[0])
{r} = second(lambda: torch.autograd.grad({x}, {y}, torch.ones_like({x}, requires_grad=True), create_graph=True)[0])
{r} = gradient(torch.autograd.grad(edge_of({x}), {y}, torch.ones_like({x}))[0])
{r} = gradient(torch.autograd.grad({x}.sum(), edge_of({y}), allow_unused=True)[0])
torch.autograd.backward({x}.sum(), inputs=[edge_of({y})])
torch.autograd.backward([edge_of({x}), {y}], [torch.ones_like({x}), torch.ones_like({y})], retain_graph=True)
{r} = {x}.grad
{r} = {x}.grad_fn.next_functions[0][0].variable
## True
{x}.grad = None
{x}.grad = {y}.detach()
{x}.grad = {y}
{x}.grad.zero_()
{x}.grad.mul_(2)
{x}.data.sub_({x}.grad)
{x}.retain_grad()
"""

WHOLE = """
## x.is_floating_point() or x.is_complex()
{r} = {custom}.apply({x})
{r} = Sinh.apply({x})[{i}]
{r} = Double_.apply({x})
{r} = Double_.apply({x} * 1)
{r} = Dirty2.apply({x}, {y})[0]
{r} = Dirty2.apply({x}, {y})[1]
{r} = Sign.apply({x})[{i}]
{r} = Sign.apply({x})[2]
{r} = Same.apply({x}, {y})
{r} = Wrong.apply({x})
{r} = checkpoint(lambda a: {expression}, {x}, use_reentrant=False)
{r} = checkpoint(lambda a: {expression}, {x}, use_reentrant=True)
{r} = torch.utils.checkpoint.checkpoint_sequential([torch.sin, lambda a: {expression}], 2, {x}, use_reentrant={flag})
{r} = in_thread(lambda: {x} * {n})
{r} = in_thread(lambda: torch.is_grad_enabled()) and {x} * 2
{r} = torch.autograd.forward_ad.make_dual({x}, {y})
{r} = torch.autograd.forward_ad.make_dual({x}.detach(), torch.ones_like({x}))
{r} = torch.autograd.forward_ad.unpack_dual({x}).tangent
{r} = torch.autograd.forward_ad.unpack_dual({x}).primal
## x.numel() > 0 and (x.is_floating_point() or x.is_complex())
{r} = second(lambda: torch.func.jvp(lambda a: {expression}, ({x},), (torch.ones_like({x}),))[1])
{r} = second(lambda: torch.func.vjp(lambda a: {expression}, {x})[0])
{r} = second(lambda: torch.func.grad(lambda a: ({expression}).sum())({x}))
{r} = second(lambda: torch.func.grad(lambda a: ({expression}).sum())({x}))
{r} = second(lambda: torch.func.vmap(lambda a: {expression})({x}))
{r} = second(lambda: torch.func.vmap(torch.func.grad(lambda a: ({expression}).sum()))({x}))
{r} = second(lambda: torch.func.jacrev(lambda a: {expression})({x}))
{r} = second(lambda: torch.func.jacfwd(lambda a: {expression})({x}))
{r} = second(lambda: torch.func.hessian(lambda a: ({expression}).sum())({x}))
{r} = second(lambda: torch.func.linearize(lambda a: {expression}, {x}.detach())[1](torch.ones_like({x})).detach())
{r} = second(lambda: torch.func.grad_and_value(lambda a: ({expression}).sum())({x})[1])
{r} = second(lambda: torch.func.vmap(lambda a: {expression}, in_dims=-1, out_dims=-1, chunk_size=1)({x}))
{r} = second(lambda: torch.func.vmap(lambda a, b: a * b.sum(), in_dims=(0, None))({x}, {y}))
{r} = second(lambda: torch.func.vmap(torch.func.vmap(lambda a: {expression}))({x}))
{r} = second(lambda: torch.func.jvp(torch.func.grad(lambda a: ({expression}).sum()), ({x},), (torch.ones_like({x}),))[1])
{r} = second(lambda: torch.func.grad(lambda a: torch.func.vmap(lambda a: {expression})(a).sum())({x}))
{r} = second(lambda: torch.func.vmap(lambda a: torch.func.jvp(lambda a: {expression}, (a,), (a,))[1])({x}))
{r} = second(lambda: torch.func.jacrev(lambda a: {expression}, chunk_size=2)({x}))
{r} = second(lambda: torch.func.vjp(lambda a: {expression}, {x})[1]({y})[0])
{r} = second(lambda: torch.autograd.functional.jvp(lambda a: {expression}, {x}, torch.ones_like({x}))[1])
{r} = second(lambda: torch.autograd.functional.hvp(lambda a: ({expression}).sum(), {x}, torch.ones_like({x}))[1])
{r} = second(lambda: torch.autograd.functional.vhp(lambda a: ({expression}).sum(), {x}, torch.ones_like({x}))[1])
{r} = second(lambda: torch.autograd.functional.hessian(lambda a: ({expression}).sum(), {x}))
{r} = second(lambda: torch.autograd.functional.jacobian(lambda a: {expression}, {x}, vectorize=True))
{r} = second(lambda: torch.autograd.functional.vjp(lambda a: {expression}, {x}, torch.ones_like({x}))[1])
{r} = second(lambda: torch.autograd.functional.jacobian(lambda a: {expression}, {x}))
"""


class Line(NamedTuple):
    """A template of a line, and the condition on its tensors."""

    text: str
    condition: str


def _lines(text: str) -> list[Line]:
    found, condition = [], "True"
    for line in text.strip().split("\n"):
        if line.startswith("## "):
            condition = line[3:]
        else:
            found.append(Line(line, condition))
    return found


# The number of entries of a kind determines how often this kind is drawn.
KINDS = [
    *[_lines(MAKING)] * 4,
    *[_lines(VIEWS)] * 4,
    *[_lines(CHANGING)] * 5,
    *[_lines(BACKWARD)] * 3,
    *[_lines(HOOKS)] * 2,
    _lines(MODES),
    *[_lines(WHOLE)] * 2,
]
