"""PyTorch's counterparts of products, factorisations and sparse matrices."""

import torch
from shared import slope

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
    """Applies a function to the symmetric matrix given by the lower triangle."""
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


ROWS = {
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
    ROWS |= of_pair("qr", label, qr)
for label in ["one matrix", "batch"]:
    ROWS |= of_pair("eigh", label, eigh)
