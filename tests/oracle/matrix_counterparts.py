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


def svd(a):
    u, values, vh = torch.linalg.svd(a, full_matrices=False)
    if not u.numel():
        return u, values, vh
    large = u.abs() >= 0.9 * u.abs().amax(-2, keepdim=True)
    signs = u.gather(-2, large.int().argmax(-2, keepdim=True)).detach().sign()
    return u * signs, values, vh * signs.mT


def least_squares(a, b):
    return torch.linalg.pinv(a) @ b


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
    "gap_quotients: in eigh's adjoint": lambda a: slope(eigh(a)[1], a),
    "svd: one element": lambda a: svd(a)[0] * svd(a)[1],
    "svd: no rows": torch.linalg.svdvals,
    "svd: nuclear norm": lambda a: torch.linalg.matrix_norm(a, "nuc"),
    "svd: spectral norm": lambda a: torch.linalg.matrix_norm(a, 2, keepdim=True),
    "pinv": torch.linalg.pinv,
    "pinv: of rank two": lambda a, b: torch.linalg.pinv(a @ b, rtol=0.05),
    "matrix_exp: batch": lambda a: torch.linalg.matrix_exp(a * 0.5),
    "matrix_exp: small": lambda a: torch.linalg.matrix_exp(a * 1e-3),
    "matrix_exp: halved often": lambda a: torch.linalg.matrix_exp(a * 6),
    "matrix_exp": torch.linalg.matrix_exp,
    "matrix_exp: blocked": lambda a: torch.linalg.matrix_exp(a * 0.2),
    "qr: lstsq, tall": least_squares,
    "qr: lstsq, wide, a vector": least_squares,
    "qr: lstsq, many for one": least_squares,
    "matmul: power 5": lambda a: torch.linalg.matrix_power(a, 5),
    "inverse: power -2":
        lambda a: torch.linalg.matrix_power(a * 0.5 + 3 * torch.eye(3, dtype=a.dtype), -2),
    "triangle: power 0": lambda a: torch.linalg.matrix_power(a, 0) * a,
    "matmul: tensordot": torch.tensordot,
    "matmul: tensordot over no axes": lambda a, b: torch.tensordot(a, b, 0),
    "matmul: tensordot of pairs": lambda a, b: torch.tensordot(a, b, ([2, 0], [0, -2])),
    "matmul: multi_dot": lambda *xs: torch.linalg.multi_dot(xs),
    "matmul: multi_dot of vectors": lambda *xs: torch.linalg.multi_dot(xs),
    "sum: vecdot": lambda a, b: torch.linalg.vecdot(a, b, dim=1),
    "norm: Frobenius norm": torch.linalg.matrix_norm,
    "norm: largest column sum": lambda a: torch.linalg.matrix_norm(a, 1),
    "norm: largest row sum": lambda a: torch.linalg.matrix_norm(a, float("inf"), keepdim=True),
    "sparse_matmul": lambda v, x: sparse(v) @ x,
    "sparse_matmul: transposed": lambda v, x: sparse(v).mT @ x,
    "sparse_matmul: no entries": lambda v, x: torch.zeros(2, 3, dtype=v.dtype) @ x + v.sum(),
    "sampled_matmul": sampled,
    "sampled_matmul: no entries": lambda a, b: (a @ b.mT).flatten()[:0],
}
for label in ["square", "tall, batch", "wide, batch"]:
    ROWS |= of_pair("qr", label, qr)
for label in ["square", "tall, batch", "wide, batch"]:
    ROWS |= {
        f"svd: {label}, values": torch.linalg.svdvals,
        f"svd: {label}, left vectors": lambda a: svd(a)[0],
        f"svd: {label}, right vectors": lambda a: svd(a)[2],
        f"svd: {label}, all":
            lambda a: (lambda u, s, vh: (u**3).sum() + (s**2).sum() + (vh**3).sum())(*svd(a)),
    }
for label in ["one matrix", "batch"]:
    ROWS |= of_pair("eigh", label, eigh)
