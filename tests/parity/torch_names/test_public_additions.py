"""Further public functions and layers, compared with PyTorch's."""

import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

import adjoint

LIBRARIES = (torch, adjoint)
GENERATOR = numpy.random.RandomState(0)


def values(library, function, *arrays):
    """Return the result of a function of tensors, its gradients, and its second gradients."""
    inputs = [library.tensor(array, requires_grad=True) for array in arrays]
    result = function(library, *inputs)
    weights = library.tensor(numpy.random.RandomState(1).randn(*result.shape))
    grads = library.autograd.grad((result * result * weights).sum(), inputs, create_graph=True)
    seconds = library.autograd.grad(sum((grad * grad).sum() for grad in grads), inputs, allow_unused=True)
    found = [result, *grads, *(second for second in seconds if second is not None)]
    return [result.grad_fn.name(), *(tensor.detach().numpy() for tensor in found)]


def check(function, *arrays):
    (name, *expected), (own, *actual) = (values(library, function, *arrays) for library in LIBRARIES)
    assert own == name
    for ours, theirs in zip(actual, expected, strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * max(1, abs(theirs).max()))


SQUARE = GENERATOR.randn(2, 3, 3)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + numpy.eye(3)
TALL, SIDE = GENERATOR.randn(2, 5, 3), GENERATOR.randn(2, 3, 2)
LOWER = numpy.tril(SQUARE) + 3 * numpy.eye(3)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda m, A, B: m.linalg.solve_triangular(A, B, upper=False), (LOWER, SIDE)),
        (lambda m, A, B: m.linalg.solve_triangular(A, B, upper=True, unitriangular=True), (SQUARE, SIDE)),
        (lambda m, A, B: m.linalg.solve_triangular(A, B.mT, upper=False, left=False), (LOWER, SIDE)),
        (lambda m, B, L: m.cholesky_solve(B, L.tril()), (SIDE, LOWER)),
        (lambda m, L: m.cholesky_inverse(L.triu(), upper=True), (LOWER,)),
        (lambda m, A: m.linalg.cholesky_ex(A, upper=True).L, (POSITIVE,)),
        (lambda m, A: m.matrix_exp(A), (SQUARE,)),
        (lambda m, A: m.linalg.pinv(A), (TALL,)),
        (lambda m, A: m.linalg.pinv(A, hermitian=True), (POSITIVE,)),
        (lambda m, A, B: m.linalg.lstsq(A, B).solution, (TALL, GENERATOR.randn(2, 5, 2))),
        (lambda m, A: m.nn.functional.unfold(A, (2, 3), (1, 2), (1, 2), (2, 1)), (GENERATOR.randn(2, 3, 5, 6),)),
        (lambda m, A: m.nn.functional.fold(A, (3, 4), 2), (GENERATOR.randn(1, 8, 6),)),
    ],
)
def test_linear_algebra_and_blocks(function, arrays):
    check(function, *arrays)


@pytest.mark.parametrize("mode", "nearest nearest-exact linear bilinear trilinear bicubic lanczos area".split())
@pytest.mark.parametrize("size", [{"size": 8}, {"scale_factor": 1.7}, {"scale_factor": 0.6}])
def test_interpolation(mode, size):
    dims = {"linear": 1, "trilinear": 3}.get(mode, 2)
    image = GENERATOR.randn(1, 2, *(5, 7, 4)[:dims])
    smooth = mode in ("linear", "bilinear", "trilinear", "bicubic")
    for options in [
        *([{}] if mode != "lanczos" else []),
        *([{"align_corners": True}] if smooth else []),
        *([{"antialias": True}] if mode in ("bilinear", "bicubic", "lanczos") else []),
    ]:
        check(lambda m, A, options=options: m.nn.functional.interpolate(A, mode=mode, **size, **options), image)


@pytest.mark.parametrize("name", ["upsample_bilinear2d", "_upsample_bicubic2d_aa", "upsample_nearest2d"])
def test_operators_that_interpolate(name):
    results = []
    for library in LIBRARIES:
        operator, x = getattr(library.ops.aten, name), library.arange(20.0).reshape(1, 1, 4, 5)
        aligned = () if "nearest" in name else (True,)
        made = [operator.default(x, [2, 3], *aligned, 0.5, 0.6), operator.default(x, [2, 3], *aligned)]
        made += [operator.vec(x, None, *aligned, [0.5, 0.6]), operator.vec(x, [3, 2], *aligned, None)]
        results.append(made)
    for ours, theirs in zip(*results, strict=True):
        numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1, 4, 4), (1, 1, 4)])
@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"antialias": True}])
def test_what_lanczos_refuses(options, shape):
    words = []
    for library in LIBRARIES:
        try:
            words.append(library.nn.functional.interpolate(library.ones(shape), 2, mode="lanczos", **options).shape)
        except (ValueError, NotImplementedError) as error:
            words.append((type(error), str(error)))
    assert words[0] == words[1]


def test_bytes_and_the_node_of_lanczos():
    results = []
    for library in LIBRARIES:
        image = library.arange(64).reshape(1, 1, 8, 8)
        resize = lambda x, library=library: library.nn.functional.interpolate(
            x, size=(3, 5), mode="lanczos", antialias=True
        )
        results.append(
            (resize((image * 4).to(library.uint8)).tolist(), resize(image.double().requires_grad_()).grad_fn.name())
        )
    assert results[0] == results[1]


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 3}])
@pytest.mark.parametrize("call", [{}, {"need_weights": False}, {"average_attn_weights": False}, {"mask": True}])
def test_attention_with_several_heads(options, call):
    arrays = [GENERATOR.randn(3, 2, 4).astype("f"), GENERATOR.randn(5, 2, 3 if "kdim" in options else 4).astype("f")]
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        layer = library.nn.MultiheadAttention(4, 2, **options)
        query, key = (library.tensor(array) for array in arrays)
        given = {name: value for name, value in call.items() if name != "mask"}
        if "mask" in call:
            given["attn_mask"] = library.ones(3, 5).triu(1).bool()
            given["key_padding_mask"] = library.arange(10).reshape(2, 5) == 4
        output, weights = layer(query.requires_grad_(), key, key, **given)
        (output * output).sum().backward()
        found = [output, query.grad, *(p.grad for p in layer.parameters()), *([] if weights is None else [weights])]
        results.append([tensor.detach().numpy() for tensor in found])
    for ours, theirs in zip(results[1], results[0], strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"mode": "sum"}, {"mode": "max"}, {"padding_idx": 1}, {"include_last_offset": True}]
)
def test_bags_of_embeddings(options):
    table = GENERATOR.randn(4, 3)
    results = []
    for library in LIBRARIES:
        weight = library.tensor(table, requires_grad=True)
        indices, offsets = library.tensor([0, 1, 1, 3, 2]), library.tensor([0, 2, 2 if not options else 5])
        result = library.nn.functional.embedding_bag(indices, weight, offsets, **options)
        (result * result).sum().backward()
        results.append((result.detach().numpy(), weight.grad.numpy()))
    numpy.testing.assert_allclose(results[1][0], results[0][0])
    numpy.testing.assert_allclose(results[1][1], results[0][1])


def test_packed_sequences():
    shown = []
    for library in LIBRARIES:
        rnn = library.nn.utils.rnn
        parts = [library.arange(2.0), library.arange(4.0), library.arange(1.0)]
        packed = rnn.pack_sequence(parts, enforce_sorted=False)
        with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
            rnn.pack_sequence(parts)
        shown.append(
            repr((packed, rnn.pad_packed_sequence(packed, total_length=5), rnn.unpack_sequence(packed)))
            + repr(rnn.pad_sequence(parts, True, -1, "left"))
        )
    assert shown[0] == shown[1]


CASES = [
    lambda m: (m.tensor([1.0, 2.0, 3.0]), m.tensor([1.0, 2.0, 4.0])),
    lambda m: (m.tensor(1.0), m.tensor(2.0)),
    lambda m: (m.tensor([1, 2]), m.tensor([1, 3])),
    lambda m: (m.tensor([True]), m.tensor([False])),
    lambda m: (m.tensor([[1.0, float("nan")]]), m.tensor([[2.0, 2.0]])),
    lambda m: (m.tensor([1.0, 2.0]).half(), m.tensor([1.0, 2.1]).half()),
    lambda m: ({"a": [1.0, {"b": m.ones(2)}]}, {"a": [1.0, {"b": m.zeros(2)}]}),
    lambda m: ([1, 2], [1]),
    lambda m: (1.0 + 1j, 1.0),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_words_of_comparisons(case):
    words = []
    for library in LIBRARIES:
        with pytest.raises(AssertionError) as caught:
            library.testing.assert_close(*CASES[case](library))
        words.append(str(caught.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("name", "float32 float64 float16 complex64 int64 uint8 bool".split())
@pytest.mark.parametrize("options", [{}, {"noncontiguous": True}, {"low": 0, "high": 2, "exclude_zero": True}])
def test_made_tensors_are_the_same(name, options):
    made = []
    for library in LIBRARIES:
        library.manual_seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.append(library.testing.make_tensor((3, 5), dtype=getattr(library, name), device="cpu", **options))
    assert repr(made[0]) == repr(made[1]) and made[0].stride() == made[1].stride()


LINES = "a = add(x)\nb = mul(a)\nc = add(b)\nreturn c\n"
CHECKS = [
    lambda check: check.check("add").check("mul").run(LINES),
    lambda check: check.check("mul").check("mul").run(LINES),
    lambda check: check.check_not("div").run(LINES),
    lambda check: check.check_not("mul").run(LINES),
    lambda check: check.check("mul").check_not("a = add").check("return").run(LINES),
    lambda check: check.check("a = add").check_not("mul").check_not("x").check("return").run(LINES),
    lambda check: check.check("a = add").check_not("return").run(LINES),
    lambda check: check.check_count("add", 2).run(LINES),
    lambda check: check.check_count("add", 3).run(LINES),
    lambda check: check.check_count("add", 1, exactly=True).run(LINES),
    lambda check: check.check_count("add", 1, exactly=True).check("mul").run(LINES),
    lambda check: check.check_count("div", 0, exactly=True).run(LINES),
    lambda check: check.check("a =").check_next("b =").check_next("c").run(LINES),
    lambda check: check.check("a =").check_next("c =").run(LINES),
    lambda check: check.check_next("a =").run(LINES),
    lambda check: check.check("a").check_next("a").run("a a\nb a"),
    lambda check: check.check("a =").check_same("add").run(LINES),
    lambda check: check.check("a =").check_same("mul").run(LINES),
    lambda check: check.check_dag("c =").check_dag("a =").check("return").run(LINES),
    lambda check: check.check_dag("c =").check_dag("z =").run(LINES),
    lambda check: check.check_dag("c =").check_dag("a =").check("b =").run(LINES),
    lambda check: check.check_dag("a =").check_not("b =").check_dag("return").run(LINES),
    lambda check: check.check_not("mul").check_dag("c =").check_dag("a =").run(LINES),
    lambda check: check.check_regex(r"b = \w+\(").check_next("c").run(LINES),
    lambda check: check.check_regex(r"b = \d+").run(LINES),
    lambda check: check.run("# CHECK: add\nx = 1  #CHECK-NEXT: mul\n## CHECK: div", LINES),
    lambda check: check.run("# CHECK-COUNT-2: add\n# CHECK-NOT: div\n# CHECK-DAG: return\n# CHECK-SAME: c", LINES),
    lambda check: check.run("# CHECK-COUNT-EXACTLY-1: add\n", LINES),
    lambda check: check.run("# CHECK-REGEX: b.*\n", LINES),
    lambda check: check.run("# CHECK-FOO: b\n", LINES),
    lambda check: check.run("nothing", LINES),
    lambda check: check.run(LINES),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CHECKS)))
def test_checks_of_texts(case):
    outcomes = []
    for library in LIBRARIES:
        try:
            outcomes.append(CHECKS[case](library.testing.FileCheck()))
        except RuntimeError as error:
            words = str(error)
            outcomes.append((words.partition("\n")[0].replace("\\\\", "\\"), words.partition("From ")[2]))
    assert outcomes[0] == outcomes[1]


def test_checks_that_were_forgotten_are_printed(capfd):
    library, ours = (made.testing.FileCheck().check("a").check_count("b", 2) for made in LIBRARIES)
    del library
    expected = capfd.readouterr().out
    del ours
    assert capfd.readouterr().out == expected != ""
