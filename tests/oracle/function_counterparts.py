"""PyTorch's counterparts of elementwise functions, reductions and data movement."""

import math

import torch
import torch.nn.functional as F
from shared import places, pull_back, slope

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

ROWS = {
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
        ROWS[f"{name}: {label}"] = lambda x, r=reduce, a=axes, k=keep: r(x, a(x), k)
for name, place in {"max": place_of(torch.argmax), "min": place_of(torch.argmin)}.items():
    for label, (axes, keep) in AXES.items():
        ROWS[f"{name}: {label} (2)"] = lambda x, p=place, a=axes, k=keep: p(x, a(x), k)
