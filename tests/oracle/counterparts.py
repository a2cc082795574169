"""PyTorch's counterpart of every row that write_rows computes.

A row's counterpart is found by `operation: label`, else by its operation. It takes the row's inputs in their order.
"""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

# Operations of which no row is compared.
WITHOUT_COUNTERPART = {
    "uniform": "its random numbers are others than PyTorch's",
    "normal": "its random numbers are others than PyTorch's",
    "bernoulli": "its random numbers are others than PyTorch's",
    "dropout": "its random numbers are others than PyTorch's",
    "attention: dropping, a scale": "its random numbers are others than PyTorch's",
    "attention: dropping, in blocks": "its random numbers are others than PyTorch's",
    "attention_adjoint: dropping": "its random numbers are others than PyTorch's",
    "share": "PyTorch has no such function; the rows of maximum and minimum compare what it is for",
}

# Rows of which PyTorch has no second derivatives.
WITHOUT_SECOND = {
    "grid_sample": "PyTorch does not differentiate grid_sampler_2d_backward",
    "grid_sample_image_adjoint": "PyTorch does not differentiate grid_sampler_2d_backward",
    "grid_sample_grid_adjoint": "PyTorch does not differentiate grid_sampler_2d_backward",
}


def pull_back(y, x, dy):
    """The adjoint of x, to be differentiated again."""
    return torch.autograd.grad(y, x, dy, create_graph=True)[0]


def slope(y, x):
    return pull_back(y.sum(), x, None)


def places(classes):
    return classes.long()


# Functions whose every element is compared by itself ---------------------------------------------



FUNCTIONS = {
    "-x": lambda x: -x,
    "x + 2.5": lambda x: x + 2.5,
    "x - 2.5": lambda x: x - 2.5,
    "2.5 - x": lambda x: 2.5 - x,
    "2.5 * x": lambda x: 2.5 * x,
    "x / 2.5": lambda x: x / 2.5,
    "2.5 / x": lambda x: torch.full((), 2.5, dtype=x.dtype) / x,
    "reciprocal": torch.reciprocal,
    "square": torch.square,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "pow(x, -1.5)": lambda x: x ** -1.5,
    "pow(x, 0)": lambda x: x ** 0,
    "pow(x, 0.5)": lambda x: x ** 0.5,
    "pow(x, 1)": lambda x: x ** 1,
    "pow(x, 2)": lambda x: x ** 2,
    "pow(x, 3)": lambda x: x ** 3,
    "pow(x, -2)": lambda x: x ** -2,
    "pow(2.5, x)": lambda x: 2.5 ** x,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "clamp(-1, 2)": lambda x: torch.clamp(x, -1, 2),
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "relu": torch.relu,
    "leaky_relu(0.125)": lambda x: F.leaky_relu(x, 0.125),
    "elu(1.5)": lambda x: F.elu(x, 1.5),
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "stop_gradient": lambda x: x.detach(),
    "maximum(x, 1.5)": lambda x: torch.maximum(x, torch.full((), 1.5, dtype=x.dtype)),
    "minimum(x, 1.5)": lambda x: torch.minimum(x, torch.full((), 1.5, dtype=x.dtype)),
    "x > 1.5": lambda x: x > 1.5,
    "not_equal(x, 0)": lambda x: x != 0,
    "where(x > 1, x, 0)": lambda x: torch.where(x > 1, x, 0),
    "cast to f64": lambda x: x.to(torch.float64),
    "cast to f32": lambda x: x.to(torch.float32),
    "cast to f16": lambda x: x.to(torch.float16),
    "cast to bf16": lambda x: x.to(torch.bfloat16),
    "cast to i64": lambda x: x.to(torch.int64),
    "cast to i32": lambda x: x.to(torch.int32),
    "cast to bool": lambda x: x.to(torch.bool),
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "divide, truncated": lambda x: torch.div(x, x.flip(0), rounding_mode="trunc"),
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "pow(a, b)": torch.pow,
    "atan2": torch.atan2,
    "a > b": torch.gt,
    "a >= b": torch.ge,
    "a < b": torch.lt,
    "a <= b": torch.le,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "where(a > b, a, b)": lambda a, b: torch.where(a > b, a, b),
    "mse": lambda a, b: F.mse_loss(a, b, reduction="none"),
    "l1": lambda a, b: F.l1_loss(a, b, reduction="none"),
    "huber(0.75)": lambda a, b: F.huber_loss(a, b, reduction="none", delta=0.75),
    "bce_with_logits": lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"),
    "x + 0.5": lambda x: x + 0.5,
    "x + 1.0": lambda x: x + 1.0,
    "x / 2": lambda x: x / 2,
    # Those of tests/autodiff/elementwise_rows.cpp.
    "negate": lambda x: -x,
    "shift": lambda x: x - 2.5,
    "shift: of whole numbers by a fraction": lambda x, i: x * (i + 0.5) / (0.25 - i),
    "subtract_from": lambda x: 2.5 - x,
    "scale": lambda x: 2.5 * x,
    "divide_by": lambda x: x / 2.5,
    "square: (2)": lambda x: x ** 2,
    "power": lambda x: x ** -1.5,
    "power: (2)": lambda x: x ** 3,
    "clamp": lambda x: torch.clamp(x, -1, 2),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.125),
    "elu": lambda x: F.elu(x, 1.5),
    "identity": lambda x: slope(slope(torch.sqrt(x), x), x),
    "multiply: with itself": lambda x: x * x,
    "divide: of a number": lambda x: torch.full((), 2.0, dtype=x.dtype) / x,
    "maximum: with a number": lambda x: torch.maximum(x, torch.full((), 0.5, dtype=x.dtype)),
    "maximum: absolute value of whole numbers": lambda x, i: x * (3 - i).abs(),
    "pow: column": torch.pow,
    "pow: of a number": lambda x: 2.5 ** x,
    "greater: row": torch.gt,
    "greater: a number": lambda x: x > 0.5,
    "greater_equal: column": torch.ge,
    "less: equal shapes": torch.lt,
    "less: of bools": lambda x, y: (x < 0) < (y < x),
    "less_equal: row and column": torch.le,
    "equal: itself": lambda x: x == x,
    "not_equal: rounded": lambda x: torch.round(x) != 0,
    "where: equal shapes": lambda x, y: torch.where(x > 0, x, y),
    "where: row, column, condition": lambda x, a, b: torch.where(x > 0.25, a, b),
    "where: numbers": lambda x: torch.where(x > 1, 3, torch.where(x < -1, x * x, -2)),
    "logical_and: row and column": lambda a, b: (a > 0) & (b > 0),
    "logical_or: equal shapes": lambda a, b: (a > 0) | (b > 0),
    "logical_not": lambda x: torch.logical_not(x if x.dtype == torch.bool else x > 0),
    "parameter: a leaf by itself": lambda x: x * 1,
    "constant: beside a variable": lambda x: x * x.detach(),
    "full: two thirds": lambda x: x * 0.625,
    "stop_gradient: value": lambda x: x.detach(),
    "identity: beside itself": lambda x: x * x,
    "cast: to f32": lambda x: x.to(torch.float32),
    "cast: to i64": lambda x: x.to(torch.int64),
    "cast: to bool": lambda x: x.to(torch.bool),
    "square: as mse": lambda a, b: F.mse_loss(a, b),
    "abs: as l1": lambda a, b: F.l1_loss(a, b, reduction="none"),
    "huber_loss: mean": lambda a, b: F.huber_loss(a, b),
    "huber_loss: sum": lambda a, b: F.huber_loss(a, b, reduction="sum", delta=0.7),
    "huber_loss_adjoint: each": lambda a, b: slope(F.huber_loss(a, b, reduction="none", delta=0.7), a),
    "bce_with_logits: mean": lambda a, b: F.binary_cross_entropy_with_logits(a, b),
    "bce_with_logits: certain targets, far logits":
        lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"),
}


def adjoint_of(function):
    return lambda x, dy: pull_back(function(x), x, dy)


# Operands that rows see through a view, by the row's label.
VIEWS = {
    "transposed": lambda x: x.mT,
    "every other one": lambda x: x[1::2],
    "backwards": lambda x: x.flip(0),
    "repeated": lambda x: x.expand(2, 4, 3),
}

# Reductions --------------------------------------------------------------------------------------


def every_axis(x):
    return tuple(range(x.ndim))


def product(x, axes, keep=False):
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = x.prod(axis, keep)
    return x if x.ndim else x.prod()


def place_of(function):
    def place(x, axes, keep=False):
        axes = [axis % x.ndim for axis in axes]
        others = [axis for axis in range(x.ndim) if axis not in axes]
        y = function(x.permute(others + axes).flatten(len(others)), -1) if x.ndim else function(x)
        return y.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if keep else y
    return place


REDUCTIONS = {
    "sum": lambda x, axes, keep: torch.sum(x, axes, keep),
    "mean": lambda x, axes, keep: torch.mean(x, axes, keep),
    "prod": product,
    "max": lambda x, axes, keep: torch.amax(x, axes, keep),
    "min": lambda x, axes, keep: torch.amin(x, axes, keep),
    "variance": lambda x, axes, keep: torch.var(x, axes, correction=0, keepdim=keep),
    "standard_deviation": lambda x, axes, keep: torch.std(x, axes, correction=0, keepdim=keep),
    "logsumexp": lambda x, axes, keep: torch.logsumexp(x, axes, keep),
    "norm": lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep),
    "all": lambda x, axes, keep: torch.all(x > 0, axes, keep) if axes else x > 0,
    "any": lambda x, axes, keep: torch.any(x > 0, axes, keep) if axes else x > 0,
}
AXES = {
    "all axes": (every_axis, False),
    "scalar": (lambda x: (), False),
    "last axis kept": (lambda x: (-1,), True),
    "middle axis": (lambda x: (1,), False),
    "first and last axis": (lambda x: (0, 3), False),
    "nothing left": (lambda x: (1,), False),
}

OTHERS = {
    "sum: in segments": lambda x: x.sum(0),
    "sum: in tiles of columns": lambda x: x.sum(0),
    "sum: of bools": lambda x: (x > 0).sum(1),
    "prod: one and two zeros": lambda x: x.prod(1),
    "prod: seven factors, axes apart": lambda x: product(x, (0, 2)),
    "variance: corrected": lambda x: x.var(1),
    "standard_deviation: corrected": lambda x: x.std(1),
    "norm: p = 1": lambda x: torch.linalg.vector_norm(x, 1, 0),
    "norm: p = 3.5": lambda x: torch.linalg.vector_norm(x, 3.5, (1, 2)),
    "max: as the norm for p = infinity": lambda x: torch.linalg.vector_norm(x, math.inf, 1),
    "cumsum: last axis": lambda x: x.cumsum(-1),
    "cumsum: middle axis from the end": lambda x: x.flip(1).cumsum(1).flip(1),
    "cumsum: nothing": lambda x: x.cumsum(0),
    # Lines.
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "prod": lambda x: x.prod(),
    "max": lambda x: x.amax(),
    "min": lambda x: x.amin(),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(),
    "variance": lambda x: x.var(),
    "variance, uncorrected": lambda x: x.var(correction=0),
    "standard_deviation": lambda x: x.std(),
    "standard_deviation, uncorrected": lambda x: x.std(correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "norm(1)": lambda x: torch.linalg.vector_norm(x, 1),
    "norm(3.5)": lambda x: torch.linalg.vector_norm(x, 3.5),
    "norm(inf)": lambda x: torch.linalg.vector_norm(x, math.inf),
    "logsumexp": lambda x: x.logsumexp(0),
    "cumsum": lambda x: x.cumsum(0),
    "cumsum, reverse": lambda x: x.flip(0).cumsum(0).flip(0),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-6),
    "instance_norm": lambda x: F.group_norm(x.reshape(1, 1, -1), 1),
    "batch_norm": lambda x: F.batch_norm(x.unsqueeze(1), None, None, training=True),
    # Of other dtypes.
    "all": lambda x: x.all(),
    "any": lambda x: x.any(),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(3),
    "slice": lambda x: x[1::3],
    "tile": lambda x: x.tile(3),
    "pad": lambda x: F.pad(x, (1, 2), value=1),
    "concat": lambda a, b: torch.cat([a, b], 1),
    # Shapes.
    "reshape: to rank 2": lambda x: x.reshape(5, -1),
    "reshape: flatten": lambda x: x.flatten(1),
    "reshape: squeeze": lambda x: x.squeeze(),
    "reshape: unsqueeze": lambda x: x.unsqueeze(-2),
    "broadcast_to: middle and front": lambda x: x.expand(2, 3, 4, 5),
    "broadcast_to: last": lambda x: x.expand(3, 40),
    "broadcast_to: tile": lambda x: x.tile(2, 1, 3),
    "broadcast_to: repeat": lambda x: x.repeat_interleave(3, 1),
    "broadcast_to: repeated never": lambda x: x.repeat_interleave(0, 1),
    "permute: squares and remainders": lambda x: x.mT,
    "permute: rotation": lambda x: x.permute(2, 0, 1),
    "permute: last axis stays": lambda x: x.transpose(0, 1),
    "permute: short axis to the end": lambda x: x.permute(0, 2, 1),
    "permute: nothing": lambda x: x.mT,
    "slice: inside": lambda x: x[1:3, :, 1:-1],
    "slice: steps both ways": lambda x: x.flip(0)[::2, 1::2].flip(2),
    "slice: nothing": lambda x: x[:, 3:1],
    "slice: one place": lambda x: x[:, -2],
    "slice: flip": lambda x: x.flip(0, 1, 2),
    "roll: back along the last axis": lambda x: x.roll(-2, 2),
    "roll: along the first axis": lambda x: x.roll(1, 0),
    "pad: a number": lambda x: F.pad(x, (3, 1, 0, 2, 1, 0), value=0.5),
    "pad: around nothing": lambda x: F.pad(x, (0, 1, 1, 1), value=2),
    "pad: gaps": lambda x: slope(x.flip(0)[::2, :, 1::3] ** 3, x),
    "concat: reflecting": lambda x: F.pad(x[None, None], (4, 0, 0, 3, 2, 1), mode="reflect")[0, 0],
    "concat: replicating": lambda x: F.pad(x[None, None], (4, 0, 0, 3, 2, 1), mode="replicate")[0, 0],
    "concat: first axis": lambda x, y: torch.cat([x, y], 0),
    "concat: last axis with nothing": lambda x, y, z: torch.cat([x, y, z, x], -1),
    "concat: stack": lambda x, y: torch.stack([x, y], 1),
    "concat: special numbers": lambda x, y: torch.cat([x, y], 0),
    "split: every part used": lambda x: (lambda p: p[1] * p[2] * p[0])(x.split([1, 2, 2], 2)),
    "split: chunks that do not divide": lambda x: (lambda p: p[0].sum() * p[-1])(x.chunk(3, 0)),
    "split: some parts used": lambda x: (lambda p: p[3] * p[1])(x.chunk(4, 1)),
    "pad: special numbers": lambda x: F.pad(x, (0, 1, 1, 0), value=-2),
    "tril": torch.tril,
    "triu": torch.triu,
    # Places.
    "gather: middle axis": lambda x, i: x.gather(1, places(i)) ** 2,
    "gather: last axis, i32": lambda x, i: x.gather(-1, places(i)) ** 2,
    "gather: nothing": lambda x, i: x.gather(1, places(i)),
    "scatter_add: middle axis":
        lambda x, i: torch.zeros(3, 4, 2, dtype=x.dtype).scatter_add(1, places(i), x) ** 2,
    "scatter_add: many at few places":
        lambda x, i: torch.zeros(3, 2, 90, dtype=x.dtype).scatter_add(1, places(i), x),
    "index_select: middle axis by a matrix": lambda x, i: x[:, places(i)] ** 2,
    "index_select: by one place": lambda x, i: x[..., places(i)] ** 2,
    "index_select: embedding": lambda x, i: F.embedding(places(i), x) ** 2,
    "index_select: special numbers": lambda x, i: x.index_select(0, i),
    "index_add: a matrix of places":
        lambda x, i: torch.zeros(2, 4, 2, dtype=x.dtype).index_add(1, places(i).flatten(), x.flatten(1, 2)) ** 2,
    "index_add: one place behind the last axis":
        lambda x, i: torch.zeros(2, 3, 3, dtype=x.dtype).index_add(2, places(i).reshape(1), x[..., None]) ** 2,
    "index_add: special numbers": lambda x, i: torch.zeros(2, 4, dtype=x.dtype).index_add(0, i, x),
    "one_hot: of a matrix": lambda i: F.one_hot(places(i), 4).double(),
    # Softmax.
    "softmax: last axis": lambda x: x.softmax(-1),
    "softmax: first axis": lambda x: x.softmax(0),
    "softmax: more columns than a batch": lambda x: x.softmax(1),
    "softmax: a line of one, none at all":
        lambda x, y: x.softmax(-1) + y.softmax(-1).sum() + y.softmax(0).sum(),
    "softmax_adjoint: last axis": lambda x, w: slope(x.softmax(-1) * w, x),
    "softmax_adjoint: middle axis": lambda x, w: slope(x.softmax(1) * w, x),
    "log_softmax: middle axis": lambda x: x.log_softmax(-2),
    "log_softmax_adjoint: last axis": lambda x, w: slope(x.log_softmax(-1) * w, x),
    "log_softmax_adjoint: first axis": lambda x, w: slope(x.log_softmax(0) * w, x),
}

for name, reduce in REDUCTIONS.items():
    for label, (axes, keep) in AXES.items():
        OTHERS[f"{name}: {label}"] = lambda x, r=reduce, a=axes, k=keep: r(x, a(x), k)
for name, place in {"max": place_of(torch.argmax), "min": place_of(torch.argmin)}.items():
    for label, (axes, keep) in AXES.items():
        OTHERS[f"{name}: {label} (2)"] = lambda x, p=place, a=axes, k=keep: p(x, a(x), k)

# Losses of classes -------------------------------------------------------------------------------


def cross_entropy(**options):
    return lambda x, c: F.cross_entropy(x, places(c), **options)


def nll(**options):
    return lambda x, c: F.nll_loss(x, places(c), **options)


def smoothed_nll(x, c):
    """Along axis 1, for each place, 0.1 of the target spread; class 3 is ignored."""
    c = places(c)
    chosen = -x.gather(1, c.unsqueeze(1)).squeeze(1)
    return torch.where(c == 3, 0, 0.9 * chosen - 0.1 * x.mean(1))


def weighted_slope(loss):
    return lambda x, w, c: slope(loss(x, c) * w, x)


PIXELS = {"reduction": "none", "label_smoothing": 0.1, "ignore_index": 3}
OTHERS |= {
    "cross_entropy": cross_entropy(),
    "cross_entropy: sum": cross_entropy(reduction="sum"),
    "cross_entropy: smoothed": cross_entropy(label_smoothing=0.2),
    "cross_entropy: ignoring a class": cross_entropy(ignore_index=3),
    "cross_entropy: of pixels": cross_entropy(**PIXELS),
    "log_softmax: cross entropy with probabilities": lambda x, t: F.cross_entropy(x, t),
    "log_softmax: smoothed probabilities":
        lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1),
    "cross_entropy_adjoint: mean": weighted_slope(cross_entropy()),
    "cross_entropy_adjoint: ignoring": weighted_slope(cross_entropy(ignore_index=3)),
    "cross_entropy_adjoint: of pixels": weighted_slope(cross_entropy(**PIXELS)),
    "nll": nll(),
    "nll: smoothed, ignoring": smoothed_nll,
    "nll_adjoint: mean": weighted_slope(nll()),
    "nll_adjoint: smoothed, ignoring": weighted_slope(smoothed_nll),
    "cross_entropy, sum": cross_entropy(reduction="sum"),
    "cross_entropy, smoothed": cross_entropy(label_smoothing=0.25),
    "cross_entropy, ignoring": cross_entropy(ignore_index=1),
    "cross_entropy, ignoring, each": cross_entropy(ignore_index=1, reduction="none"),
    "cross_entropy of weighted logits, ignoring":
        lambda x, w, c: F.cross_entropy(x * w, c, ignore_index=1),
    "nll, sum": nll(reduction="sum"),
    "nll, ignoring": nll(ignore_index=1),
    "nll, ignoring, each": nll(ignore_index=1, reduction="none"),
}

# Normalisation -----------------------------------------------------------------------------------


def slopes(function, count=None, share=1.0):
    """The sum of y and of the squares of the gradients of y·y by every input, or the first ones."""
    def total(*xs):
        y = function(*xs)
        of = xs[:count]
        squares = [(g * g * share).sum() for g in torch.autograd.grad((y * y).sum(), of, create_graph=True)]
        return y.sum() + sum(squares)
    return total


def batch_norm_with_statistics(x, w, b):
    axes = [axis for axis in range(x.ndim) if axis != 1]
    y = F.batch_norm(x, None, None, w, b, training=True)
    return y * 0.5 + (x.mean(axes) ** 2).sum() + (x.var(axes, correction=0) ** 2).sum()


def per_channel(v):
    return v[:, None, None]


def group(x, w, b):
    return F.group_norm(x, 2, w, b)


def batch_norm(x):
    return F.batch_norm(x, None, None, training=True)


OTHERS |= {
    "layer_norm: weight": lambda x, w: F.layer_norm(x, (7,), w),
    "layer_norm: two axes, many rows": lambda x, w, b: F.layer_norm(x, (2, 3), w, b),
    "layer_norm: no rows": lambda x, w, b: F.layer_norm(x, (7,), w, b),
    "rms_norm: weight": lambda x, w: F.rms_norm(x, (7,), w, 1e-6),
    "group_norm: two groups": group,
    "group_norm: no spatial axis": group,
    "group_norm: plain": lambda x: F.group_norm(x, 2),
    "group_norm: as instance_norm": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    "batch_norm: images": batch_norm_with_statistics,
    "batch_norm: rows": batch_norm_with_statistics,
    "batch_norm: plain": batch_norm,
    "batch_norm: more channels than a batch of columns": batch_norm,
    "multiply: as batch_norm with statistics given":
        lambda x, m, v, w, b: (x - per_channel(m)) / torch.sqrt(per_channel(v) + 1e-5) * per_channel(w) + per_channel(b),
    "normalization_adjoint: layer_norm": slopes(lambda x, w, b: F.layer_norm(x, (7,), w, b), share=0.01),
    "normalization_adjoint: rms_norm": slopes(lambda x, w: F.rms_norm(x, (7,), w, 1e-6), share=0.01),
    "normalization_adjoint: group_norm": slopes(group, share=0.01),
    "normalization_adjoint: batch_norm": slopes(batch_norm_with_statistics, share=0.01),
    "normalization_adjoint: batch_norm of rows": slopes(batch_norm_with_statistics, share=0.01),
}

# Attention ---------------------------------------------------------------------------------------


def attention(causal=False, scale=None):
    def attend(q, k, v, mask=None):
        if causal:
            seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
            if mask is None:
                mask = seen
            elif mask.dtype == torch.bool:
                mask = mask & seen
            else:
                mask = torch.where(seen, mask, -math.inf)
        with sdpa_kernel(SDPBackend.MATH):  # the only one with second derivatives
            return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    return attend


def four_heads(x, query, key, value, output, query_bias, output_bias):
    def heads(y):
        return y.unflatten(-1, (4, -1)).transpose(-2, -3)
    y = attention(causal=True)(heads(x @ query + query_bias), heads(x @ key), heads(x @ value))
    return y.transpose(-2, -3).flatten(-2) @ output + output_bias


OTHERS |= {
    "attention": attention(),
    "attention, masked": attention(),
    "attention: causal": attention(True),
    "attention: causal, more keys than queries": attention(True),
    "attention: causal, more queries than keys": attention(True),
    "attention: a scale": attention(scale=0.3),
    "attention: added mask for each head": attention(True),
    "attention: four heads, as multi_head_attention": four_heads,
    "attention_adjoint: plain": slopes(attention(), 3),
    "attention_adjoint: masked": slopes(attention(True), 3),
    "attention_adjoint: added mask": slopes(attention(), 3),
}

# Products, matrices ------------------------------------------------------------------------------


def transposed(x):
    return x.mT if x.ndim > 1 else x


def matmul(left=False, right=False):
    return lambda a, b: torch.matmul(transposed(a) if left else a, transposed(b) if right else b)


def triangular_solve(upper=False, transpose=False, right=False):
    def solve(a, b):
        matrix = a.mT if transpose else a
        return torch.linalg.solve_triangular(matrix, b, upper=upper != transpose, left=not right)
    return solve


def by_lower_triangle(function):
    """Of the symmetric matrix that the lower triangle makes."""
    return lambda a: function(a.tril() + a.tril(-1).mT)


def qr(a):
    q, r = torch.linalg.qr(a)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1, 1).to(a.dtype)
    return q * signs.unsqueeze(-2), r * signs.unsqueeze(-1)


@by_lower_triangle
def eigh(a):
    w, v = torch.linalg.eigh(a)
    if not v.numel():
        return w, v
    large = v.abs() >= 0.9 * v.abs().amax(-2, keepdim=True)
    first = v.gather(-2, large.int().argmax(-2, keepdim=True))
    return w, v * first.detach().sign()


def of_pair(name, label, function):
    return {
        f"{name}: {label}, first output": lambda x: function(x)[0],
        f"{name}: {label}, second output": lambda x: function(x)[1],
        f"{name}: {label}, both outputs": lambda x: (lambda a, b: (a * a).sum() + (b * b * b).sum())(*function(x)),
    }


def vector_for_many(a, b):
    return torch.linalg.solve(a.mT, b.unsqueeze(-1)).squeeze(-1)


ROWS_OF = torch.tensor([1, 2, 2, 2, 3, 3])
COLUMNS_OF = torch.tensor([2, 0, 3, 1, 4, 4])


def sparse(values):
    return torch.zeros(4, 5, dtype=values.dtype).index_put((ROWS_OF, COLUMNS_OF), values, accumulate=True)


def sampled(a, b):
    y = (a @ b.mT)[..., ROWS_OF, COLUMNS_OF]
    return y.sum(tuple(range(y.ndim - 1))) if y.ndim > 1 else y


OTHERS |= {
    "matmul": matmul(),
    "matmul: transposed views": matmul(True, True),
    "matmul: left transposed": matmul(True),
    "matmul: right transposed": matmul(False, True),
    "matmul: both transposed": matmul(True, True),
    "matmul: a vector on the left, transposed": matmul(False, True),
    "matmul: a vector on the right, transposed": matmul(True),
    "matmul: batches, both transposed": matmul(True, True),
    "matmul: shared on the right, transposed": matmul(False, True),
    "matmul: shared on the right, left transposed": matmul(True),
    "matmul: shared on the left, both transposed": matmul(True, True),
    "matmul: outer broadcast, transposed": matmul(False, True),
    "triangle: lower": torch.tril,
    "triangle: upper, tall": lambda x: x.triu(-1),
    "triangle: no rows": lambda x: x.tril(1),
    "cholesky": by_lower_triangle(torch.linalg.cholesky),
    "cholesky: as it is": torch.linalg.cholesky,
    "triangular_solve: lower": triangular_solve(),
    "triangular_solve: upper": triangular_solve(upper=True),
    "triangular_solve: transposed": triangular_solve(transpose=True),
    "triangular_solve: upper, transposed, shared": triangular_solve(upper=True, transpose=True),
    "triangular_solve: right, many for one":
        lambda a, b: triangular_solve(right=True)(a, b.unsqueeze(0) if b.ndim < a.ndim else b),
    "triangular_solve: right, upper": triangular_solve(upper=True, right=True),
    "triangular_solve: right, transposed": triangular_solve(transpose=True, right=True),
    "triangular_solve: right, upper, transposed": triangular_solve(True, True, True),
    "triangular_solve: blocked": triangular_solve(upper=True),
    "triangular_solve: blocked, right": triangular_solve(right=True),
    "triangular_solve: nothing to solve for": triangular_solve(),
    "solve": torch.linalg.solve,
    "solve: a vector for many, transposed": vector_for_many,
    "solve: pivots, blocked": lambda a, b: torch.linalg.solve(a.flip(-2), b),
    "inverse": torch.linalg.inv,
    "det": torch.linalg.det,
    "det: singular": lambda a: torch.linalg.det(a) + a.sum(),
    "det: of rank two": lambda a: torch.linalg.det(a) + a.sum(),
    "cofactors: regular and singular matrices": lambda a, b: torch.stack(
        [slope(torch.linalg.det(a), a), slope(torch.linalg.det(b), b)]),
    "cofactors: the second derivative of a determinant":
        lambda a, e: slope(slope(torch.linalg.det(a), a) * e, a),
    "cofactors: one element": lambda a: slope(torch.linalg.det(a) ** 2, a),
    "logdet": torch.logdet,
    "slogdet": lambda a: torch.linalg.slogdet(a)[1],
    "slogdet: any sign": lambda a: sum(torch.linalg.slogdet(a)),
    "qr: no columns": lambda a: qr(a)[0],
    "eigh: one element": lambda a: eigh(a)[0],
    "eigh: values as they are": lambda a: torch.linalg.eigh(a)[0],
    "eigh: no rows": lambda a: eigh(a)[1],
    "inverse_gaps: in eigh's adjoint": lambda a: slope(eigh(a)[1], a),
    "sparse_matmul": lambda v, x: sparse(v) @ x,
    "sparse_matmul: transposed": lambda v, x: sparse(v).mT @ x,
    "sparse_matmul: no entries": lambda v, x: torch.zeros(2, 3, dtype=v.dtype) @ x + v.sum(),
    "sampled_matmul": sampled,
    "sampled_matmul: no entries": lambda a, b: (a @ b.mT).flatten()[:0],
}
for label in ["square", "tall, batch", "wide, batch"]:
    OTHERS |= of_pair("qr", label, qr)
for label in ["one matrix", "batch"]:
    OTHERS |= of_pair("eigh", label, eigh)

# Convolutions, pooling, images -------------------------------------------------------------------

OTHERS |= {
    "conv1d: special numbers": lambda x, w: F.conv1d(x, w, padding=1),
    "conv1d: one element": F.conv1d,
    "convolution: sequence, dilated": lambda x, w, b: F.conv1d(x, w, b, padding=1, dilation=2),
    "convolution: image, padded": lambda x, w: F.conv2d(x, w, padding=1),
    "convolution: image, stride and padding per axis, bias":
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0)),
    "convolution: groups": lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2),
    "convolution: depthwise": lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=4),
    "convolution: kernel of one element": F.conv2d,
    "convolution: volume": lambda x, w: F.conv3d(x, w, stride=(1, 2, 2), padding=(0, 1, 1)),
    "convolution: empty batch": F.conv2d,
    "convolution: one image without a batch, bias": lambda x, w, b: F.conv2d(x, w, b, padding=1),
    "transposed_convolution: one sequence without a batch": lambda x, w: F.conv_transpose1d(x, w, stride=2),
    "transposed_convolution: sequence":
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2),
    "transposed_convolution: image, groups, dilated":
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, dilation=(1, 2), groups=2),
    "transposed_convolution: stride longer than the kernel":
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=3),
    "convolution_weight: strided": lambda x, w: slope(F.conv2d(x, w, stride=2, padding=1) ** 2, w),
    "convolution_weight: depthwise": lambda x, w: slope(F.conv2d(x, w, padding=1, groups=4) ** 2, w),
    "max_pool: special numbers": lambda x: F.max_pool1d(x, 2),
    "max_pool: equal numbers": lambda x: F.max_pool2d(x, 2),
    "max_pool: negative infinities": lambda x: F.max_pool1d(x, 2),
    "max_pool: sequence": lambda x: F.max_pool1d(x, 3),
    "max_pool: image, overlapping, padded": lambda x: F.max_pool2d(x, 3, (2, 1), 1),
    "max_pool: volume, rounded up": lambda x: F.max_pool3d(x, (2, 2, 1), ceil_mode=True),
    "max_pool: dilated, padded": lambda x: F.max_pool2d(
        F.pad(x, (1, 1, 2, 2), value=-math.inf), (3, 2), (2, 1), dilation=(2, 3)),
    "max_pool: adaptive": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "max_pool: global": lambda x: F.adaptive_max_pool3d(x, 1),
    "max_pool: empty batch": lambda x: F.max_pool2d(x, 2),
    "max_pool_pick: by the derivative along a direction":
        lambda x, z, dy: pull_back(pull_back(F.max_pool2d(x, 2), x, dy), dy, z),
    "max_pool_adjoint: overlapping": lambda x, dy: pull_back(F.max_pool1d(x, 3, 2), x, dy),
    "average_pool: special numbers": lambda x: F.avg_pool1d(x, 2),
    "average_pool: image, padding counted": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average_pool: padding not counted, rounded up":
        lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False),
    "average_pool: volume": lambda x: F.avg_pool3d(x, (2, 3, 1)),
    "average_pool: adaptive, windows of different sizes": lambda x: F.adaptive_avg_pool1d(x, 4),
    "average_pool: adaptive, enlarging": lambda x: F.adaptive_avg_pool3d(x, (7, 1, 3)),
    "average_pool: empty batch": lambda x: F.avg_pool2d(x, 2),
    "average_pool_adjoint: overlapping": lambda x, dy: pull_back(F.avg_pool2d(x, (3, 2), (2, 1)), x, dy),
    "mean: of an image": lambda x: F.adaptive_avg_pool2d(x, 1),
    "upsample: special numbers": lambda x: F.interpolate(x, scale_factor=2, mode="linear"),
    "resize: nearest, doubled": lambda x: F.interpolate(x, scale_factor=2),
    "resize: nearest, other sizes": lambda x: F.interpolate(x, (2, 5, 3)),
    "resize: bilinear, edges kept": lambda x: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"),
    "resize: bilinear, corners kept": lambda x: F.interpolate(x, (7, 3), mode="bilinear", align_corners=True),
    "resize: trilinear": lambda x: F.interpolate(x, (4, 3, 6), mode="trilinear"),
    "resize: trilinear, corners kept, shrinking":
        lambda x: F.interpolate(x, (2, 4, 3), mode="trilinear", align_corners=True),
    "resize: linear to one element": lambda x: F.interpolate(x, 1, mode="linear", align_corners=True),
    "resize: empty batch": lambda x: F.interpolate(x, scale_factor=2),
    "resize_adjoint: bilinear":
        lambda x, dy: pull_back(F.interpolate(x, (6, 7), mode="bilinear"), x, dy),
    "permute: of pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "permute: of pixel_shuffle in threes": lambda x: F.pixel_shuffle(x, 3),
    "permute: of pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "grid_sample: zeros outside": lambda x, g: F.grid_sample(x, g, align_corners=False),
    "grid_sample: border outside, corners at the ends":
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True),
    "grid_sample: nearest, zeros outside": lambda x, g: F.grid_sample(x, g, "nearest", align_corners=False),
    "grid_sample_image_adjoint: nearest, border outside":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, "nearest", "border", True), x, dy),
    "grid_sample_image_adjoint: zeros outside":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, align_corners=False), x, dy),
    "grid_sample_grid_adjoint: zeros outside":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, align_corners=False), g, dy),
}

# Recurrent cells ---------------------------------------------------------------------------------


def rnn_cell(x, h, w, u, b, activation=torch.tanh):
    return activation(x @ w + h @ u + b)


def lstm_cell(x, h, c, w, u, b):
    i, f, g, o = (x @ w + h @ u + b).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_cell(x, h, w, u, b, hidden_bias):
    r, z, n = (x @ w + b).chunk(3, -1)
    s, y, m = (h @ u + hidden_bias).chunk(3, -1)
    m = torch.tanh(n + torch.sigmoid(r + s) * m)
    return m + torch.sigmoid(z + y) * (h - m)


def two_lstm_steps(x, h, w, u, b, c):
    h, c = lstm_cell(x, h, c, w, u, b)
    h, c = lstm_cell(x, h, c, w, u, b)
    return h * c


def rnn(x, h, *parameters):
    outputs = []
    for step in x:
        h = rnn_cell(step, h, *parameters)
        outputs.append(h)
    return torch.stack(outputs) * h


def lstm(x, h, w, u, b, c):
    outputs = []
    for step in x:
        h, c = lstm_cell(step, h, c, w, u, b)
        outputs.append(h)
    return torch.stack(outputs) * c


def gru(x, h, *parameters):
    outputs = []
    for step in x:
        h = gru_cell(step, h, *parameters)
        outputs.append(h)
    return torch.stack(outputs)


OTHERS |= {
    "tanh: two steps of rnn_cell": lambda x, h, *p: rnn_cell(x, rnn_cell(x, h, *p), *p),
    "relu: rnn_cell": lambda x, h, *p: rnn_cell(x, h, *p, torch.relu),
    "slice: two steps of lstm_cell": two_lstm_steps,
    "slice: two steps of gru_cell": lambda x, h, *p: gru_cell(x, gru_cell(x, h, *p), *p),
    "concat: rnn of a sequence": rnn,
    "concat: lstm of a sequence": lstm,
    "concat: gru of a sequence": gru,
}


def find(table, operation, label):
    """What a table of operations and labels says of a row, or None."""
    return table.get(f"{operation}: {label}" if label else operation, table.get(operation))


def counterpart(operation, label):
    """(PyTorch's function, whether every element is compared by itself), or None."""
    key = f"{operation}: {label}" if label else operation
    for table, by_element in ((FUNCTIONS, True), (OTHERS, False)):
        if key in table:
            return table[key], by_element
    base = operation.removesuffix("_adjoint")
    if base != operation and (function := find(FUNCTIONS, base, label)):
        return adjoint_of(function), True
    for table, by_element in ((FUNCTIONS, True), (OTHERS, False)):
        if operation in table:
            return table[operation], by_element
    return None
