"""Intended differences from PyTorch. Every entry names a row of docs/differences-from-pytorch.md."""

import re

import numpy as np
import torch


class Difference:
    """The rows and elements where a result may differ. Operation, label, dtype and quantity of the row match the patterns, and
    `when` accepts the inputs of the element. The quantity "error" stands for an error on one side, "type" for another dtype or shape.
    `heading` and `item` are a heading of the documentation and the first cell of a row under it."""

    def __init__(self, heading, item, operation, label=".*", quantity=".*", dtype=".*", when=None):
        self.heading, self.item, self.when = heading, item, when
        self.patterns = {"operation": operation, "label": label, "dtype": dtype}
        self.quantity = quantity

    def __str__(self):
        return f"{self.item} ({self.patterns['operation']}, {self.patterns['label']}, {self.quantity}, {self.patterns['dtype']})"

    def matches(self, row, quantity):
        return (re.fullmatch(self.quantity, quantity) is not None
                and all(re.fullmatch(pattern, row[name]) for name, pattern in self.patterns.items()))

    def places(self, inputs, shape):
        """The elements that it covers."""
        if self.when is None:
            return np.ones(shape, bool)
        if any(x.ndim > len(shape) or torch.broadcast_shapes(x.shape, shape) != shape for x in inputs):
            return np.zeros(shape, bool)
        with np.errstate(all="ignore"):
            return self.when(*(torch.broadcast_to(x.to(torch.float64), shape).numpy() for x in inputs))

    def is_documented(self, documentation):
        _, _, after = documentation.partition(f"## {self.heading}\n")
        section = after.partition("\n## ")[0]
        return any(line.startswith(f"| {self.item} |") for line in section.splitlines())


DTYPES = "Dtypes"
DERIVATIVES = "Derivatives where there is no single one"
VALUES = "Values"
REFUSED = "What is refused"
RANGE = "Range and accuracy"
DERIVATIVE = "(gradient|second derivative).*"
SECOND = "second derivative.*"
GATED = "(gelu|gelu_tanh|silu|mish)"


def any_nan(*xs):
    return np.any([np.isnan(x) for x in xs], axis=0)


def out_of_range(a, b):
    """Whether a² + b² or one of its terms is 0, subnormal, infinite or NaN in some dtype."""
    largest, smallest = np.maximum(np.abs(a), np.abs(b)), np.minimum(np.abs(a), np.abs(b))
    return ~(largest < 1e2) | (largest < 1e-2) | (smallest < 1e-30)


DIFFERENCES = [
    Difference(DTYPES, "`i + 1.0` of integers", r"x \+ 1\.0", quantity="type"),
    Difference(DTYPES, "`i / 2` of integers", "x / 2", "of i.*", quantity="type"),
    Difference(DTYPES, "`sum`, `prod`, `cumsum`, `cumprod` of i32", "sum|prod|cumsum", "of i32", quantity="type"),
    Difference(DTYPES, "scalar of f64 with a tensor of f32", "batch_norm", "images|rows", dtype="b?f16", quantity="type"),
    Difference(DTYPES, "`b + b` of bool", "add|multiply|minimum|maximum", "bool and bool", quantity="error"),
    Difference(DTYPES, "`b + b` of bool", "max", "of bool", quantity="error"),
    Difference(DTYPES, "`x - b` of numbers and bool", "subtract", "(?!bool and bool).*bool.*", quantity="error"),
    Difference(DTYPES, "`exp(i)` and other functions of integers", "exp", "of i.*", quantity="error"),
    Difference(DTYPES, "`cast` of NaN and large numbers to integers", "cast to i.*"),
    Difference(DERIVATIVES, "`norm` with p = ∞, `max` and `min` over all axes, at equal elements",
               r"max|min|norm\(inf\)", "(?!.*NaN).*", DERIVATIVE),
    Difference(DERIVATIVES, "`norm` with p = ∞, `max` and `min` where an element is NaN",
               r"max|min|norm\(inf\)", ".*NaN.*", DERIVATIVE),
    Difference(DERIVATIVES, "`norm` with p = 1 at NaN", r"norm\(1\)", ".*NaN.*", DERIVATIVE),
    Difference(DERIVATIVES, "second derivative of `norm` at 0", "norm.*", ".*zeros?", SECOND),
    Difference(DERIVATIVES, "`prod` where a factor is not finite or the product leaves the range", "prod",
               ".*(NaN|infinit|largest|subnormal|smallest).*", DERIVATIVE),
    Difference(DERIVATIVES, "`cumprod` where a factor is not finite or the product leaves the range", "cumprod",
               ".*(NaN|infinit|largest|subnormal|smallest|far apart).*", DERIVATIVE),
    Difference(DERIVATIVES, "`logcumsumexp` at ±∞", "logcumsumexp", ".*infinit.*", DERIVATIVE),
    Difference(DERIVATIVES, "`logsumexp` where all elements are −∞", "logsumexp", "negative infinities only", DERIVATIVE),
    Difference(DERIVATIVES, "`quantile`, `nanquantile` at equal elements", r"(nan)?quantile\(0\.3\)",
               "equal numbers|two zeros|far from zero", DERIVATIVE),
    Difference(DERIVATIVES, "`maximum`, `minimum` where an operand is NaN", "(maximum|minimum).*", quantity="gradient.*",
               when=any_nan),
    Difference(DERIVATIVES, "`relu` at NaN", "relu", quantity="gradient.*", when=any_nan),
    Difference(DERIVATIVES, "second derivatives of `erf`, `erfc`, `atan` and `asinh` at ±∞", "erf|erfc|atan|asinh", quantity=SECOND,
               when=lambda x: np.isinf(x)),
    Difference(DERIVATIVES, "second derivative of `elu` at 0", "elu.*", quantity=SECOND, when=lambda x: x == 0),
    Difference(DERIVATIVES, "`gelu`, `gelu_tanh`, `silu`, `mish` at ±∞ and at numbers whose powers overflow", GATED,
               quantity=DERIVATIVE, when=lambda x: np.abs(x) > 6e4),
    Difference(DERIVATIVES, "`gelu`, `gelu_tanh`, `silu`, `mish` at ±∞ and at numbers whose powers overflow", "mish",
               quantity=SECOND, when=lambda x: np.abs(x) > 80),
    Difference(DERIVATIVES, "`pow(a, b)` at b = 0, by a, where a⁻¹ is infinite or NaN", r"pow\(a, b\)", "special numbers",
               "gradient 0", when=lambda a, b: ~(np.abs(a) > 1e-4) & (b == 0)),
    Difference(DERIVATIVES, "`acosh` below −1, where it is NaN", "acosh", quantity=DERIVATIVE, when=lambda x: x <= -1),
    Difference(DERIVATIVES, "`pow(x, 0.5)` at −∞ and −0", r"pow\(x, 0\.5\)", quantity=DERIVATIVE,
               when=lambda x: np.signbit(x) & ((x == 0) | np.isinf(x))),
    Difference(DERIVATIVES, "`clamp` at its bounds and at NaN", "clamp.*", quantity="gradient.*",
               when=lambda x: (x == -1) | (x == 2) | np.isnan(x)),
    Difference(DERIVATIVES, "`atan2(0, 0)`", "atan2", quantity="gradient.*", when=lambda a, b: (a == 0) & (b == 0)),
    Difference(DERIVATIVES, "`cross_entropy` by scores of ignored places that are not finite", "cross_entropy.*, ignoring.*",
               "(NaN|infinity) at place 1", DERIVATIVE),
    Difference(DERIVATIVES, "second derivative of `huber` where u is NaN", "huber.*", quantity=SECOND,
               when=lambda a, b: np.isnan(a - b)),
    Difference(DERIVATIVES, "second derivative of `huber` at \\|u\\| = δ", "huber.*", quantity=SECOND,
               when=lambda a, b: np.abs(np.abs(a - b) - 0.75) < 0.005),
    Difference(DERIVATIVES, "`det` of a singular matrix", "det", "of zeros", SECOND),
    Difference(DERIVATIVES, "`cholesky`, `eigh`", "cholesky|eigh", ".*as (it is|they are)", DERIVATIVE),
    Difference(VALUES, "`sign` of NaN and −0", "sign", quantity="value", when=lambda x: np.isnan(x) | (x == 0)),
    Difference(VALUES, "`softplus`", "softplus.*", dtype="f64", when=lambda x, *dy: x >= 20),
    Difference(VALUES, "`pow(x, 0.5)` of −∞ and −0", r"pow\(x, 0\.5\)", quantity="value",
               when=lambda x: np.signbit(x) & ((x == 0) | np.isinf(x))),
    Difference(VALUES, "`gelu`, `gelu_tanh`, `silu`, `mish` of −∞", GATED, quantity="value", when=np.isneginf),
    Difference(VALUES, "`bce_with_logits` of large numbers", "bce_with_logits", "special numbers", "value",
               when=lambda a, b: np.maximum(np.abs(a), np.abs(b)) > 15),
    Difference(VALUES, "linear `resize` next to NaN and infinities", "upsample", "special numbers"),
    Difference(VALUES, "attention to masked keys and values that are not finite", "attention, masked"),
    Difference(REFUSED, "`mean` of nothing", "mean", "nothing", "error"),
    Difference(REFUSED, "`variance`, `standard_deviation` with correction ≥ count", "(variance|standard_deviation).*",
               "nothing|one number|zero|only NaN", "error"),
    Difference(REFUSED, "`batch_norm`, `instance_norm` of one element for each channel", "(batch|instance)_norm",
               "nothing|one number|zero|only NaN", "error"),
    Difference(REFUSED, "`i / 0` by `rounding_mode=\"trunc\"`", "divide, truncated", quantity="error"),
    Difference(RANGE, "`variance`, `standard_deviation` where an element is infinite, or squares leave the range",
               "(variance|standard_deviation).*", ".*(infinit|largest|smallest|subnormal).*"),
    Difference(RANGE, "`norm` where powers leave the range", r"norm(\(3\.5\))?", ".*(largest|smallest|subnormal|far apart).*"),
    Difference(RANGE, "`logcumsumexp` of numbers next to which log 2 is lost", "logcumsumexp", "largest numbers.*", DERIVATIVE),
    Difference(RANGE, "normalisations of lines whose squares overflow", "(layer|rms|instance|batch)_norm", "largest numbers.*"),
    Difference(RANGE, "`huber` of f16 where u leaves the range", "huber.*", "special numbers", dtype="f16",
               when=lambda a, b: np.abs(a - b) > 65504),
    Difference(RANGE, "normalisations and `norm` where derivatives nearly cancel", "(layer|rms|instance|batch)_norm|norm",
               "one number|smallest numbers|one zero|scalar", SECOND),
    Difference(RANGE, "`pow(a, b)` at infinities, zeros, NaN and b = 1, second derivatives", r"pow\(a, b\)", "special numbers",
               SECOND, when=lambda a, b: (a == 0) | (b == 0) | (b == 1) | ~np.isfinite(a) | ~np.isfinite(b)),
    Difference(RANGE, "`atan2` where a² + b² leaves the range or is 0", "atan2", "special numbers", DERIVATIVE, when=out_of_range),
    Difference(RANGE, "`atan2` where \\|a\\| is nearly \\|b\\|, second derivatives", "atan2", quantity=SECOND,
               when=lambda a, b: np.abs(np.abs(a) - np.abs(b)) <= 0.02 * np.abs(a)),
    Difference(RANGE, "`erf`, `erfc` and `gelu` of f64 far from 0, derivatives", "erfc?|gelu", dtype="f64", quantity=DERIVATIVE,
               when=lambda x: np.abs(x) > 4),
    Difference(RANGE, "`gelu` near ±√2, where its second derivative is 0", "gelu", quantity=SECOND,
               when=lambda x: np.abs(np.abs(x) - np.sqrt(2)) < 0.02),
    Difference(RANGE, "`gelu_tanh` of f64 beyond ±4, derivatives", "gelu_tanh", quantity=DERIVATIVE, dtype="f64",
               when=lambda x: np.abs(x) > 4),
    Difference(RANGE, "`asinh` and `acosh` of the largest numbers, second derivatives", "asinh|acosh", quantity=SECOND,
               when=lambda x: np.abs(x) > 1e150),
    Difference(RANGE, "`bce_with_logits` of f64 where σ(x) is nearly t, derivatives", "bce_with_logits", quantity=DERIVATIVE,
               dtype="f64", when=lambda a, b: np.abs(1 / (1 + np.exp(-a)) - b) < 0.03),
    Difference(RANGE, "`qr` of nearly singular matrices, derivatives", "qr", "wide.*", DERIVATIVE),
    Difference(DERIVATIVES, "`logit` outside [0, 1], where it is NaN", "logit", quantity=DERIVATIVE,
               when=lambda x: ~((x > 0) & (x < 1))),
    Difference(DERIVATIVES, "`hypot(0, 0)`", "hypot", quantity=DERIVATIVE, when=lambda a, b: (a == 0) & (b == 0)),
    Difference(DERIVATIVES, "`copysign` at 0, ±∞ and NaN, by a", "copysign", quantity=DERIVATIVE,
               when=lambda a, b: ~(np.abs(a) > 1e-300) | np.isinf(a)),
    Difference(DERIVATIVES, "`softsign` at ±∞ and NaN", "softsign", quantity=DERIVATIVE, when=lambda x: ~np.isfinite(x)),
    Difference(DERIVATIVES, "second derivative of `i1e` next to 0", "i1e", quantity=SECOND, when=lambda x: np.abs(x) < 1e-3),
    Difference(DERIVATIVES, "`xlogy` at a = 0 ≥ b, by b, and its second derivatives", "xlogy", quantity=DERIVATIVE,
               when=lambda a, b: (a == 0) & (b <= 0)),
    Difference(DERIVATIVES, "`poisson_nll_loss` with `full` at t = 0, by t", "exp", "poisson_nll_loss",
               "(gradient|second derivative 1) 1", when=lambda x, t: t == 0),
    Difference(VALUES, "`i1` and `i1e` of −0", "i1e?", quantity="value", when=lambda x: x == 0),
    Difference(VALUES, "`i0` and `i1` of ±∞, and derivatives where they overflow", "i0|i1", when=lambda x: np.abs(x) > 10),
    Difference(VALUES, "`sinc` of large numbers and next to whole ones", "sinc",
               when=lambda x: (np.abs(x) > 1e3) | ((x != 0) & (np.abs(x - np.rint(x)) < 1e-3))),
    Difference(VALUES, "`cosine_embedding_loss`", "norm", "cosine_embedding_loss", dtype="f64"),
    Difference(RANGE, "`polygamma`, and derivatives of `lgamma` and `digamma`, in f64", "lgamma|digamma|polygamma.*", dtype="f64"),
    Difference(RANGE, "`polygamma`, and derivatives of `lgamma` and `digamma`, in f64", "igammac?", "row", SECOND, dtype="f64"),
    Difference(RANGE, "`igamma`, `igammac` of f64", "igammac?, by x", dtype="f64"),
    Difference(RANGE, "`zeta` of f64", "zeta, by q", dtype="f64"),
    Difference(RANGE, "`igamma`, `igammac`, `zeta` outside their domains, and of the largest and smallest numbers",
               "(igammac?|zeta), by .", "special numbers",
               when=lambda a, b: ~((a > 1e-30) & (a < 1e30) & (b > 1e-30) & (b < 1e30))),
    Difference(RANGE, "`lgamma`, `digamma`, `polygamma` below and next to 0, and of very large numbers",
               "lgamma|digamma|polygamma.*", "(ordinary|special) numbers", when=lambda x: ~((x > 1e-2) & (x < 1e4))),
    Difference(RANGE, "`logit` of f64 near ½", "logit", dtype="f64", quantity="value", when=lambda x: np.abs(x - 0.5) < 0.1),
    Difference(RANGE, "`hypot` where \\|a\\| and \\|b\\| are far apart or out of range, derivatives", "hypot", quantity=DERIVATIVE,
               when=lambda a, b: out_of_range(a, b) | (np.minimum(np.abs(a), np.abs(b)) < 1e-2 * np.maximum(np.abs(a), np.abs(b)))),
    Difference(RANGE, "`logaddexp` at infinities and of numbers far apart, derivatives", "logaddexp", quantity=DERIVATIVE,
               when=lambda a, b: np.isinf(a) | np.isinf(b) | (np.abs(a - b) > 20)),
    Difference(RANGE, "`fmod`, `remainder` where a/b or b is not finite, or a/b rounds to a whole number", "fmod|remainder",
               "special numbers",
               when=lambda a, b: ~np.isfinite(a / b) | np.isinf(b) | (np.abs(a / b - np.rint(a / b)) <= 1e-9 * np.abs(a / b))),
    Difference(RANGE, "`sinc` at and near zeros of its derivatives, second derivatives", "sinc", quantity=SECOND),
    Difference(RANGE, "`remainder` of f16 next to the largest number, derivative by b", "remainder", "special numbers", "gradient 1",
               dtype="f16", when=lambda a, b: np.abs(a) > 6e4),
    Difference(RANGE, "`i1` of f64 near 0, second derivative", "i1", quantity=SECOND, dtype="f64", when=lambda x: np.abs(x) < 0.01),
    Difference(RANGE, "`binary_cross_entropy`, second derivatives", "log1p", "binary_cross_entropy", SECOND, dtype="f64"),
    Difference(RANGE, "`hardsigmoid` of f64, derivative", "hardtanh", "hardsigmoid", "gradient.*", dtype="f64"),
    Difference(RANGE, "`ctc_loss`, second derivatives", "ctc_loss_adjoint", quantity=DERIVATIVE, dtype="f64"),
]
