"""PyTorch's counterparts of sorting, search, indexing, cumulative operations and patches."""

import torch
import torch.nn.functional as F

from shared import places


def linear_recurrence(a, b, axis):
    """hᵢ = aᵢ·hᵢ₋₁ + bᵢ along an axis."""
    a, b = torch.broadcast_tensors(a, b)
    state, states = None, []
    for factor, term in zip(a.unbind(axis), b.unbind(axis)):
        state = term if state is None else factor * state + term
        states.append(state)
    return torch.stack(states, axis)


def backwards(function, axis):
    return lambda *xs: function(*(x.flip(axis) if x.ndim > 1 else x for x in xs)).flip(axis)


def last_writes(index, axis):
    """Which elements of an index no later one along the axis repeats."""
    later = torch.ones_like(index, dtype=torch.bool)
    size = index.shape[axis]
    for step in range(1, size):
        same = index.narrow(axis, 0, size - step) == index.narrow(axis, step, size - step)
        later.narrow(axis, 0, size - step).logical_and_(~same)
    return later


def scatter(x, axis, index, source):
    """`scatter` of the last of repeated elements, with its derivative; PyTorch's is undefined there."""
    index, size = places(index), x.shape[axis] + 1
    aside = torch.where(last_writes(index, axis), index, size - 1)
    wide = torch.cat([x, torch.zeros_like(x.narrow(axis, 0, 1))], axis)
    return wide.scatter(axis, aside, source).narrow(axis, 0, size - 1)


def index_copy(x, index, source):
    """Writes slices along axis 1."""
    flat = places(index).flatten()
    aside = torch.where(last_writes(flat, 0), flat, x.shape[1])
    wide = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
    rows = source.reshape(x.shape[0], -1, *x.shape[2:])
    return wide.index_copy(1, aside, rows)[:, :-1]


def row_of(ids, index):
    return places(ids).flatten()[places(index)]


def histogram(x, weights):
    counts = []
    for low, high in zip((-1.5, -0.75, 0.0, 0.75), (-0.75, 0.0, 0.75, 1.5)):
        inside = (x >= low) & ((x < high) | ((x <= high) & (high == 1.5)))
        counts.append((weights * inside).sum())
    return torch.stack(counts) + 0 * x.sum()


def reduced(reduction, axis=1, include_self=True, power=1):
    return lambda x, i, s: x.scatter_reduce(axis, places(i), s, reduction, include_self=include_self) ** power


def lexsort(keys):
    order = torch.arange(keys.shape[-1]).expand(keys.shape[1:])
    for key in keys:
        order = order.gather(-1, key.gather(-1, order).argsort(dim=-1, stable=True))
    return order


SORTING = {
    "lexsort: two keys of lines": lexsort,
    # PyTorch has no derivative of unique; no columns are equal.
    "lexsort: unique columns": lambda x: x[:, lexsort(x.movedim(1, 2).flatten(0, 1).flip(0)[:, None])[0]] ** 2,
    "sort: last axis": lambda x: x.sort(dim=-1, stable=True).values ** 2,
    "sort: middle axis, descending": lambda x: x.sort(dim=1, descending=True, stable=True).values ** 2,
    "sort: a longer line": lambda x: x.sort(stable=True).values,
    "sort: argsort of the first axis": lambda x: x.argsort(dim=0, stable=True),
    "sort": lambda x: x.sort(dim=-1, stable=True).values,
    "sort, descending": lambda x: x.sort(dim=-1, descending=True, stable=True).values,
    "argsort": lambda x: x.argsort(dim=-1, stable=True),
    "argsort, descending": lambda x: x.argsort(dim=-1, descending=True, stable=True),
    "topk: largest": lambda x: x.topk(3).values ** 2,
    "topk: smallest of the first axis": lambda x: x.topk(1, 0, largest=False).values ** 2,
    "topk: few of many": lambda x: x.topk(4).values ** 2,
    "topk: positions": lambda x: x.argsort(stable=True)[:5],
    "topk: none": lambda x: x.topk(0).values,
    "kthvalue: second": lambda x: x.kthvalue(2).values ** 2,
    "kthvalue: positions of the last, axis kept": lambda x: x.kthvalue(4, 1, True).indices,
    "kthvalue: median": lambda x: x.median(1).values ** 2,
    "kthvalue: median of all": lambda x: x.median() ** 2,
    "median": lambda x: x.median(0).values,
    "nanmedian": lambda x: x.nanmedian(0).values,
    "quantile(0.3)": lambda x: x.quantile(0.3),
    "nanquantile(0.3)": lambda x: x.nanquantile(0.3),
    "sort: nanmedian": lambda x: x.nanmedian(0, True).values ** 2,
    "sort: quantile of all": lambda x: x.quantile(0.3) ** 2,
    "sort: quantiles of an axis":
        lambda x: x.quantile(torch.tensor([0, 0.25, 0.9, 1], dtype=x.dtype), 1) ** 2,
    "sort: quantile, midpoint, axis kept": lambda x: x.quantile(0.6, 0, True, interpolation="midpoint") ** 2,
    "sort: nanquantile": lambda x: x.nanquantile(0.4, 2) ** 2,
    "searchsorted: one line": lambda s, x: torch.searchsorted(s, x),
    "searchsorted: lines, from the right": lambda s, x: torch.searchsorted(s, x, right=True),
    "searchsorted: bucketize": lambda x, s: torch.bucketize(x, s),
    "bincount: counts": lambda x: places(x).flatten().bincount(minlength=7),
    "bincount: weights":
        lambda x, w: torch.zeros(6, dtype=w.dtype).index_add(0, places(x).flatten(), w.flatten()) ** 2,
    "bincount: histogram of weights": lambda x, w: histogram(x, w) ** 2,
    "bincount: histc": lambda x: torch.histc(x.detach().double(), 4, -1.5, 1.5).to(x.dtype),
    "bincount: density between edges":
        lambda x, e: torch.histogram(x.detach().double(), e.detach().double(), density=True).hist.to(x.dtype),
    "nonzero: positions": lambda x: (x > 0).nonzero(),
    "nonzero: masked_select": lambda x, y: y.masked_select(x > 0) ** 2,
    # PyTorch has no derivative of unique.
    "nonzero: unique": lambda x: x.flatten().sort().values ** 2,
    "nonzero: inverse of unique": lambda x: x.unique(return_inverse=True)[1],
    "nonzero: unique_consecutive": lambda x: x.unique_consecutive(return_counts=True)[1],
}
INDEXING = {
    "scatter_recurrence: products": reduced("prod"),
    "scatter_recurrence: products of the source, with zeros": reduced("prod", include_self=False),
    "scatter_recurrence: of nothing": lambda x, i, s: x + 0 * s.sum(),
    "scatter_extreme: largest": reduced("amax", power=2),
    "scatter_extreme: smallest of the source, i32": reduced("amin", include_self=False, power=2),
    "scatter_sum: middle axis": lambda x, i, s: x.scatter_add(1, places(i), s) ** 2,
    "scatter_sum: many at few places": lambda x, i, s: x.scatter_add(1, places(i), s),
    "scatter_sum: nothing": lambda x, i, s: x.scatter_add(1, places(i), s) + 0 * s.sum(),
    "scatter_sum: scatter_reduce, sums": reduced("sum", power=2),
    "scatter_sum: scatter_reduce, means of the source": reduced("mean", include_self=False, power=2),
    "scatter: middle axis": lambda x, i, s: scatter(x, 1, i, s) ** 2,
    "scatter: repeated positions, i32": lambda x, i, s: scatter(x, 1, i, s) ** 2,
    "scatter: a number at many places": lambda x, i: x.scatter(1, places(i), 0.5),
    "scatter: nothing": lambda x, i, s: x.scatter(1, places(i), s) + 0 * s.sum(),
    "index_copy: a matrix of places, one twice": lambda x, i, s: index_copy(x, i, s) ** 2,
    "index_copy: one place": lambda x, i, s: index_copy(x, i.reshape(1), s) ** 2,
    "index_copy: index_put": lambda x, i, s: scatter(
        x, 0, i[:, None, None].expand(3, 4, 2), s.expand(3, 4, 2)) ** 2,
    "index_sum: a matrix of places, one twice": lambda x, i, s: x.index_add(
        1, places(i).flatten(), s.reshape(x.shape[0], -1, *x.shape[2:])) ** 2,
    "index_sum: one place": lambda x, i, s: x.index_add(1, places(i).reshape(1), s.unsqueeze(1)) ** 2,
    "index_sum: index_put, accumulating":
        lambda x, i, s: x.index_put((torch.arange(3)[:, None], places(i)), s, accumulate=True) ** 2,
    "ravel_multi_index: index of two axes": lambda x, i, ids: x[places(i), row_of(ids, i).reshape(1, 3)] ** 2,
    "ravel_multi_index: index of the last axes": lambda x, i, j: x[:, places(i), places(j)] ** 2,
    "ravel_multi_index: index of the outer axes": lambda x, i, j: x[places(i), :, places(j)] ** 2,
}
CUMULATIVE = {
    "cumprod: last axis": lambda x: x.cumprod(-1),
    "cumprod: from the end, with zeros": backwards(lambda x: x.cumprod(1), 1),
    "cumprod: no elements": lambda x: x.cumprod(1),
    "cumprod": lambda x: x.cumprod(0),
    "cummax: middle axis": lambda x: x.cummax(1).values ** 2,
    "cummax: from the end": backwards(lambda x: x.cummax(2).values ** 2, 2),
    "cummax: positions": lambda x: x.cummax(0).indices,
    "cummax": lambda x: x.cummax(0).values,
    "cummax, positions": lambda x: x.cummax(0).indices,
    "cummin: last axis": lambda x: x.cummin(-1).values ** 2,
    "cummin: of one, from the end": lambda x: x ** 2,
    "cummin": lambda x: x.cummin(0).values,
    "cummin, positions": lambda x: x.cummin(0).indices,
    "logcumsumexp: middle axis": lambda x: x.logcumsumexp(1),
    "logcumsumexp: from the end": backwards(lambda x: x.logcumsumexp(-1), -1),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "linear_recurrence: middle axis": lambda a, b: linear_recurrence(a, b, 1) ** 2,
    "linear_recurrence: from the end, one factor for all":
        backwards(lambda a, b: linear_recurrence(a, b, 0), 0),
}
PATCHES = {
    "unfold: image, overlapping, padded": lambda x: F.unfold(x, (3, 2), padding=(1, 2), stride=(2, 1)) ** 2,
    "unfold: sequence, dilated":
        lambda x: F.unfold(x[:, :, None], (1, 3), dilation=(1, 3), stride=(1, 2)),
    "unfold: volume": lambda x: torch.stack([
        y for y in F.pad(x, (1, 1, 1, 1, 1, 1)).unfold(2, 2, 1).unfold(3, 1, 1).unfold(4, 3, 1)]).movedim(
            (5, 6, 7), (2, 3, 4)).flatten(1, 4).flatten(2),
    "unfold: empty batch": lambda x: F.unfold(x, 2),
    "fold: image, overlapping, padded": lambda x: F.fold(x, (5, 4), (3, 2), stride=(2, 1)) ** 2,
    "fold: image, strided, dilated": lambda x: F.fold(x, (5, 6), 2, dilation=2, padding=(0, 1), stride=2),
}
ROWS = SORTING | INDEXING | CUMULATIVE | PATCHES
