"""PyTorch's counterparts of special functions, and of functions that are composed of others."""

import math

import torch
import torch.nn.functional as F
from shared import places, slope

# Functions whose every element is compared by itself ---------------------------------------------


def filled(x, number):
    return torch.full((), number, dtype=x.dtype)


def igamma(a, x):
    """By its series for x of moderate size: PyTorch has no derivative by a."""
    n = torch.arange(80, dtype=x.dtype)
    a, x = a[..., None], x[..., None]
    return torch.exp((a + n) * torch.log(x) - x - torch.lgamma(a + n + 1)).sum(-1)


FUNCTIONS = {
    "trunc": torch.trunc,
    "exp2": torch.exp2,
    "log2": torch.log2,
    "log10": torch.log10,
    "erfc": torch.erfc,
    "logit": torch.logit,
    "lgamma": torch.lgamma,
    "lgamma: (2)": torch.lgamma,
    "digamma": torch.digamma,
    "polygamma(1)": lambda x: torch.polygamma(1, x),
    "polygamma": torch.digamma,
    "polygamma: (2)": torch.digamma,
    "polygamma: (3)": lambda x: torch.polygamma(1, x),
    "polygamma: (4)": lambda x: torch.polygamma(2, x),
    "erfinv": torch.erfinv,
    "i0": torch.special.i0,
    "i1": torch.special.i1,
    "i0e": torch.special.i0e,
    "i1e": torch.special.i1e,
    "bessel_i": torch.special.i0,
    "bessel_i: (2)": torch.special.i1,
    "bessel_i: (3)": torch.special.i0e,
    "bessel_i: (4)": torch.special.i1e,
    "sinc": torch.sinc,
    "spherical_bessel_j": torch.sinc,
    "hardtanh": lambda x: F.hardtanh(x, -0.8, 2),
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "hypot": torch.hypot,
    "igamma, by x": lambda a, x: torch.special.gammainc(a.detach(), x),
    "igammac, by x": lambda a, x: torch.special.gammaincc(a.detach(), x),
    "zeta, by q": lambda x, q: torch.special.zeta(x.detach(), q),
    "igamma": igamma,
    "igammac": lambda a, x: 1 - igamma(a, x),
    "zeta": lambda q: torch.special.zeta(torch.full((), 2.5, dtype=q.dtype), q),
    "logaddexp": torch.logaddexp,
    "xlogy": torch.xlogy,
    "xlogy: a number": lambda x: torch.xlogy(filled(x, 2.5), x),
    "fmod": torch.fmod,
    "fmod: a number": lambda x: torch.fmod(x, 2),
    "remainder": torch.remainder,
    "remainder: a number": lambda x: torch.remainder(x, -2),
    "copysign": torch.copysign,
    # Those of tests/autodiff/composed_rows.cpp.
    "not_equal: isnan": torch.isnan,
    "equal: isinf": torch.isinf,
    "equal: isposinf": torch.isposinf,
    "equal: isneginf": torch.isneginf,
    "less: isfinite": torch.isfinite,
    "less: signbit": torch.signbit,
    "less_equal: isclose": lambda a, b: torch.isclose(a, b, atol=1.25),
    "not_equal: logical_xor": lambda a, b: torch.logical_xor(a > 0, b > 0),
    "where: nan_to_num": torch.nan_to_num,
    "where: fmax": torch.fmax,
    "where: fmin": torch.fmin,
    "minimum: clamp": lambda a, b: torch.clamp(a, b - 4, b),
    "clamp: clamp_min": lambda x: torch.clamp_min(x, -1),
    "clamp: clamp_max": lambda x: torch.clamp_max(x, 1),
    "trunc: frac": torch.frac,
    "scale: rad2deg": torch.rad2deg,
    "scale: deg2rad": torch.deg2rad,
    "exp2: ldexp": torch.ldexp,
    "remainder: floor_divide": torch.floor_divide,
    "multiply: addcmul": lambda a, b: torch.addcmul(b, a, a, value=-1.5),
    "divide: addcdiv": lambda a, b: torch.addcdiv(b, a, b, value=0.75),
    "where: lerp near a": torch.lerp,
    "where: lerp near b": torch.lerp,
    "scale: lerp by a number near a": lambda a, b: torch.lerp(a, b, 0.25),
    "scale: lerp by a number near b": lambda a, b: torch.lerp(a, b, 0.875),
    "logaddexp: logaddexp2": torch.logaddexp2,
    "logit: clamped": lambda x: torch.logit(x, 0.3),
    "softplus: logsigmoid": F.logsigmoid,
    "xlogy: entr": torch.special.entr,
    "erfc: ndtr": torch.special.ndtr,
    "lgamma: mvlgamma": lambda x: torch.mvlgamma(x + 2, 3),
    "hardtanh: relu6": F.relu6,
    "hardtanh: hardsigmoid": F.hardsigmoid,
    "hardtanh: hardswish": F.hardswish,
    "elu: celu": lambda x: F.celu(x, 1.5),
    "elu: selu": F.selu,
    "clamp: softshrink": F.softshrink,
    "where: hardshrink": F.hardshrink,
    "where: threshold": lambda x: F.threshold(x, 0.5, -3),
}

# Others ------------------------------------------------------------------------------------------


def heaviside(x, value):
    """PyTorch has no derivative of it."""
    return torch.where(x == 0, value, (x > 0).to(x.dtype))


def square(function):
    return lambda *xs: function(*xs) ** 2


def ctc(**options):
    def loss(x, targets, steps, lengths):
        # PyTorch's derivative includes that of log_softmax.
        return F.ctc_loss(x.log_softmax(-1), places(targets), places(steps), places(lengths), **options)
    return loss


def recorded_ctc(x, targets, steps, lengths, blank=0):
    """The forward recursion, which is differentiable twice."""
    losses = []
    for n in range(x.shape[1]):
        labels = [blank]
        for label in targets[n, :lengths[n]].tolist():
            labels += [label, blank]
        emitted = x[:, n, labels]
        low = torch.full((), -math.inf, dtype=x.dtype)
        alpha = [emitted[0, s] if s < 2 else low for s in range(len(labels))]
        for t in range(1, int(steps[n])):
            after = []
            for s in range(len(labels)):
                terms = [alpha[s]] + [alpha[s - 1]] * (s > 0)
                if s > 1 and labels[s] not in (blank, labels[s - 2]):
                    terms.append(alpha[s - 2])
                terms = [term for term in terms if term.item() > -math.inf]
                after.append(torch.stack(terms).logsumexp(0) + emitted[t, s] if terms else low)
            alpha = after
        ends = [end for end in alpha[-2:] if end.item() > -math.inf]
        losses.append(-torch.stack(ends).logsumexp(0) if ends else torch.zeros((), dtype=x.dtype))
    return torch.stack(losses)


def mean_ctc(x, targets, steps, lengths, blank=0):
    return (recorded_ctc(x, targets, steps, lengths, blank) / lengths.clamp(min=1)).mean()


def embedding_triplet(**options):
    return lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=4, **options)


def multi_margin_loss(x, c, w):
    """Composed, because PyTorch has no derivative by the weights."""
    c = places(c)
    excess = F.relu(0.7 - x.gather(1, c[:, None]) + x) ** 2
    others = 1 - F.one_hot(c, x.shape[1]).to(x.dtype)
    return (excess * others).mean(1) * w[c]


ROWS = {
    "where: heaviside": heaviside,
    "where: prelu of channels": F.prelu,
    "where: prelu of one slope": F.prelu,
    "split: glu": lambda x: F.glu(x, 2),
    # Construction.
    "linspace": lambda x: x * torch.linspace(-1, 2, 4, dtype=x.dtype),
    "linspace: one number": lambda x: x * 3,
    "linspace: arange": lambda x: x * torch.arange(1, -1, -0.5, dtype=x.dtype),
    "linspace: logspace": lambda x: x * torch.logspace(-1, 1, 4, 2, dtype=torch.float64).to(x.dtype),
    "pad: eye": lambda x: x + torch.eye(3, 4, dtype=x.dtype),
    "full: ones_like": lambda x: x - torch.ones_like(x),
    "full: zeros_like": lambda x: x + torch.zeros_like(x),
    "slice: diagonal": square(torch.diagonal),
    "slice: diagonal above": square(lambda x: torch.diagonal(x, 2)),
    "slice: diagonal below": square(lambda x: torch.diagonal(x, -1)),
    "slice: diagonal outside": lambda x: torch.diagonal(x, 4),
    "slice: diagonal of nothing": torch.diagonal,
    "slice: diagonal of a batch": square(lambda x: torch.diagonal(x, 1, -1, 0)),
    "pad: diag_embed": square(torch.diag_embed),
    "pad: diag_embed above": square(lambda x: torch.diag_embed(x, 1, 0, -1)),
    "pad: diag_embed below": square(lambda x: torch.diag_embed(x, -2, 2, 0)),
    "pad: diag of a vector": lambda x: torch.diag(x, -1),
    "slice: diag of a matrix": lambda x: torch.diag(x, 1),
    "sum: trace": square(torch.trace),
    "sum: trace of a batch": square(lambda x: torch.diagonal(x, -1, 1, 2).sum(-1)),
    "concat: block_diag": square(torch.block_diag),
    "broadcast_to: meshgrid": lambda a, b: (lambda g: g[0] * g[1] * g[1])(torch.meshgrid(a, b, indexing="ij")),
    "broadcast_to: meshgrid, swapped":
        lambda a, b, c: (lambda g: g[0] * g[1] - g[2])(torch.meshgrid(a, b, c, indexing="xy")),
    "multiply: kron": torch.kron,
    "multiply: kron of a vector": torch.kron,
    "roll: cross": lambda a, b: torch.linalg.cross(a, b.expand(a.shape)),
    "roll: cross along an axis": lambda a, b: torch.linalg.cross(a, b * b, dim=1),
    "permute: movedim": square(lambda x: torch.movedim(x, 0, -1)),
    "permute: swapaxes": square(lambda x: torch.swapaxes(x, 0, 2)),
    "reshape: unflatten": square(lambda x: x.unflatten(-1, (2, -1))),
    "slice: fliplr": square(torch.fliplr),
    "slice: flipud": square(torch.flipud),
    "slice: rot90": square(torch.rot90),
    "slice: rot90 twice": square(lambda x: torch.rot90(x, -2, (1, 2))),
    "slice: rot90 back": square(lambda x: torch.rot90(x, 3, (0, 2))),
    # Distances and losses.
    "norm: cosine_similarity": F.cosine_similarity,
    "norm: cosine_similarity, broadcast": lambda a, b: F.cosine_similarity(a, b.reshape(2, 1, 4), 2),
    "norm: pairwise_distance": F.pairwise_distance,
    "norm: pairwise_distance, p = 3": lambda a, b: F.pairwise_distance(a, b, 3, 0.125, True),
    # PyTorch's cdist has no second derivatives.
    "norm: cdist": lambda a, b: torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), dim=-1),
    "norm: cdist, p = 1": lambda a, b: torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), 1, -1),
    "norm: cosine_embedding_loss": lambda a, b, t: F.cosine_embedding_loss(a, b, t, -0.75),
    "clamp: margin_ranking_loss":
        lambda a, b, t: F.margin_ranking_loss(a, b, t, 0.25, reduction="none"),
    "clamp: hinge_embedding_loss":
        lambda x, t: F.hinge_embedding_loss(x, t, 0.75, reduction="sum"),
    "norm: triplet_margin_loss": embedding_triplet(),
    "norm: triplet_margin_loss, swapped": embedding_triplet(swap=True, reduction="none"),
    "ctc_loss: mean": ctc(),
    "ctc_loss: sum": lambda x, *others: recorded_ctc(x.log_softmax(-1), *others).sum(),
    "ctc_loss: another blank, impossible targets":
        lambda x, *others: recorded_ctc(x.log_softmax(-1), *others, blank=4),
    "ctc_loss_adjoint": lambda x, w, *others: slope(mean_ctc(x, *others) * w, x),
    "huber_loss: smooth_l1": lambda a, b: F.smooth_l1_loss(a, b, beta=0.7),
    "log1p: binary_cross_entropy": F.binary_cross_entropy,
    "bce_with_logits: multilabel_soft_margin_loss":
        lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none").mean(-1),
    "softplus: soft_margin_loss": lambda x, t: F.soft_margin_loss(x, t.to(x.dtype)),
    "one_hot: multi_margin_loss": lambda x, c: F.multi_margin_loss(x, places(c)),
    "one_hot: multi_margin_loss, squared, weighted": multi_margin_loss,
    "xlogy: kl_div": lambda x, t: F.kl_div(x, t, reduction="batchmean"),
    "exp: kl_div of logarithms": lambda x, t: F.kl_div(x, t, log_target=True),
    "log: gaussian_nll_loss": lambda x, t, v: F.gaussian_nll_loss(x, t, v, full=True),
    "exp: poisson_nll_loss": lambda x, t: F.poisson_nll_loss(x, t, full=True),
    "log: poisson_nll_loss of rates":
        lambda x, t: F.poisson_nll_loss(x, t, log_input=False, eps=0.01, reduction="none"),
}
