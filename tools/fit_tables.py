#!/usr/bin/env python3
"""Writes the headers pack_*tables.h of autodiff/kernels. Needs mpmath and clang-format-19.

usage: fit_tables.py FOLDER

A table divides arguments into 32 intervals (8 for AVX2): x is in interval round(x·(square·|x| + linear)) modulo their
number. In each, the function is a polynomial in the distance from a center. Its coefficients are a least-squares fit of
the relative error at Chebyshev points, which is close to the minimax polynomial. They are rounded to f32 one after
the other, from the constant up, and the rest is fitted again after each.

The center is in the middle of the interval, or closer to the end with the smaller values if these differ much: then
all terms have one sign. Of 121 numbers around that place, it is the one whose function value is closest to an f32
number. If the function has a root in the interval, the center is the root.
"""

import pathlib
import struct
import subprocess
import sys

from mpmath import cos, erf, erfc, exp, findroot, floor, inf, log, log1p, lu_solve, matrix, mp, mpf, pi, sign, sqrt
from mpmath import tanh

mp.prec = 100
COUNT = 32


def rounded(x):
    """x rounded to f32."""
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def normal(x):
    return erfc(-x / sqrt(2)) / 2


def density(x):
    return exp(-x * x / 2) / sqrt(2 * pi)


def logistic(x):
    return 1 / (1 + exp(-x))


def cubic(x):
    """The argument of the logistic function in gelu_tanh, and its derivative."""
    factor = 2 * sqrt(2 / pi)
    return factor * (x + mpf("0.044715") * x**3), factor * (1 + 3 * mpf("0.044715") * x * x)


def gelu_tanh_slope(a):
    value, slope = cubic(a)
    return logistic(-value) * (1 - a * slope * logistic(value))


def mish_factor(x):
    n = exp(x) * (exp(x) + 2)
    return n / (n + 2)


def mish_slope(x):
    e = exp(x)
    m = e * (e + 2) + 2
    return e * (e + 2) / m + 4 * x * e * (e + 1) / m**2


def fitted(f, center, low, high, degree, known, slope=0):
    """Coefficients in powers of x - center for x from low to high; `known` are the first ones. All are f32 numbers, the
    second one after `slope` is subtracted."""
    count = 4 * (degree + 1)
    points = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values = [f(x) for x in points]
    scale = max(high - center, center - low)
    coefficients = list(known)
    while len(coefficients) <= degree:
        first = len(coefficients)
        size = degree + 1 - first
        squares, right = matrix(size, size), matrix(size, 1)
        for x, y in zip(points, values):
            powers = [((x - center) / scale) ** k / y for k in range(first, degree + 1)]
            rest = 1 - sum(c * (x - center) ** k for k, c in enumerate(coefficients)) / y
            for i in range(size):
                right[i] += powers[i] * rest
                for j in range(size):
                    squares[i, j] += powers[i] * powers[j]
        kept = slope if first == 1 else 0
        coefficients.append(kept + rounded(lu_solve(squares, right)[0] / scale**first - kept))
    return coefficients, max(
        abs(1 - sum(c * (x - center) ** k for k, c in enumerate(coefficients)) / y) for x, y in zip(points, values)
    )


def boundary(value, square, linear):
    """The x for which x·(square·|x| + linear) is `value`."""
    if square == 0:
        return value / linear
    inside = linear * linear + 4 * square * abs(value)
    return sign(value) * (sqrt(inside) - linear) / (2 * square) if inside >= 0 else sign(value) * inf


def best_center(f, middle):
    step = mpf(2) ** (floor(log(max(abs(middle), mpf("0.01")), 2)) - 23)
    candidates = [rounded(middle) + k * step for k in range(-60, 61)]
    return min(candidates, key=lambda x: abs(rounded(f(x)) / f(x) - 1))


class Table:
    def __init__(self, name, comment, f, degree, square, linear, end, first, least=0, root=None, slope=0,
                 count=COUNT, place=0.5):
        square, linear, end, least = (rounded(mpf(x)) for x in (square, linear, end, least))
        worst = 0
        rows = [None] * count
        lowest = int(floor(least * (square * -least + linear) + mpf("0.5")))
        highest = int(floor(end * (square * end + linear) + mpf("0.5")))
        assert highest - lowest < count, (name, lowest, highest)
        for i in range(lowest, lowest + count):
            if i > highest:
                rows[i % count] = rows[highest % count]
                continue
            # Sums near a boundary are rounded either way.
            low = max(boundary(i - mpf("0.501"), square, linear), least)
            high = min(boundary(i + mpf("0.501"), square, linear), end)
            if i == 0 and first:
                center, known = mpf(0), first
            else:
                is_near_root = root is not None and low < root < high
                center = rounded(root) if is_near_root else best_center(f, low + mpf(place) * (high - low))
                known = [rounded(f(center))]
            coefficients, error = fitted(f, center, low, high, degree, known, slope)
            worst = max(worst, error)
            rows[i % count] = center, coefficients
        print(f"{name}: relative error {float(worst * 2**24):.2f}·2⁻²⁴")
        for _, coefficients in {id(row): row for row in rows}.values():
            coefficients[1] = rounded(coefficients[1] - slope)
        bounds = f"least = {text(least)}, " if least else ""
        self.lines = [
            f"/// {comment}",
            f"struct {name} {{",
            f"static constexpr float {bounds}end = {text(end)}, square = {text(square)}, linear = {text(linear)};",
            f"static constexpr float slope = {text(slope)};",
            f"static constexpr TableRow centers = {{{bits(row[0] for row in rows)}}};",
            "static constexpr TableRow coefficients[] = {",
            ",".join(f"{{{bits(row[1][k] for row in rows)}}}" for k in range(degree + 1)),
            "};};\n",
        ]


def text(x):
    if x == int(x):
        return str(int(x))
    mantissa, exponent = float(x).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{int(exponent)}F"


def bits(numbers):
    return ", ".join(f"{struct.unpack('I', struct.pack('f', float(x)))[0]:#010x}" for x in numbers)


def tail(f):
    coefficients, error = fitted(lambda z: f(1 / sqrt(z)), mpf(0), 1 / mpf("15.5") ** 2, 1 / mpf("5.5") ** 2, 5, [])
    print(f"tail: relative error {float(error * 2**24):.2f}·2⁻²⁴")
    return ", ".join(text(x) for x in coefficients)


def exponential_table():
    high = rounded(log(2))
    r = log(2) / 64
    square, cubic = fitted(lambda x: (exp(x) - 1 - x) / x**2, mpf(0), -r, r, 1, [])[0]
    return [
        "/// exp(x) = 2ⁿ·exp(x − n·log 2) for multiples n of 1/32",
        "struct ExponentialTable {",
        "/// log 2 in two parts, and (exp(r) − 1 − r)/r² for |r| ≤ log(2)/64",
        f"static constexpr float high = {text(high)}, low = {text(rounded(log(2) - high))},",
        f"square = {text(square)}, cubic = {text(cubic)};",
        "/// 2 to the power i/32",
        f"static constexpr TableRow powers = {{{bits(mpf(2) ** (mpf(i) / COUNT) for i in range(COUNT))}}};",
        "};\n",
    ]


def tables():
    yield Table("TanhTable", "tanh(a)", tanh, 5, "-0.2", "5.26", "9.2", [0, 1])
    yield Table("ErfTable", "erf(a)", erf, 4, "-0.6", "10.37", "3.93", [0], slope=1)
    half = [mpf(1) / 2]
    yield Table("SigmoidTable", "sigmoid(−a)", lambda a: logistic(-a), 6, "-0.02", "2.06", "18.5", half)
    first = [rounded(log(2)), -half[0]]
    yield Table("SoftplusTable", "softplus(−a)", lambda a: log1p(exp(-a)), 6, "-0.02", "2.06", "18.5", first)


def activation_tables():
    half = mpf(1) / 2
    f = lambda a: a * normal(-a)
    yield Table("GeluTable", "a·Φ(−a)", f, 6, "0.4", "1.69", 7, [0, half])
    f = lambda a: normal(-a) - a * density(a)
    yield Table("GeluSlopeTable", "Φ(−a) − a·φ(a)", f, 6, "0.35", "2.4", "6.6", [half], root=findroot(f, 0.75))
    f = lambda a: a * logistic(-cubic(a)[0])
    yield Table("GeluTanhTable", "−gelu_tanh(−a)", f, 6, "0.6", "1.64", 6, [0, half])
    f = gelu_tanh_slope
    yield Table("GeluTanhSlopeTable", "the derivative of gelu_tanh at −a", f, 6, "0.35", "3.64", "5.6", [half],
                root=findroot(f, 0.75))
    f = lambda a: a * logistic(-a)
    yield Table("SiluTable", "−silu(−a)", f, 6, "-0.02", "2.06", "18.5", [0, half])
    f = lambda a: logistic(-a) * (1 - a * logistic(a))
    yield Table("SiluSlopeTable", "the derivative of silu at −a", f, 6, "-0.04", "2.37", "20", [half],
                root=findroot(f, 1.28))
    yield Table("MishTable", "mish(x)/x", mish_factor, 7, "-0.02", "1.43", "9.4", None, least="-17", place=0.2)
    yield Table("MishSlopeTable", "the derivative of mish", mish_slope, 7, "-0.03", "1.55", 11, [rounded(mpf("0.6"))],
                least="-17", root=findroot(mish_slope, -1.19))


def short_tables():
    """Tables of 8 intervals."""
    half = mpf(1) / 2
    yield Table("TanhTable", "tanh(a)", tanh, 7, "-0.08", "1.54", "9.2", [0, 1], count=8)
    yield Table("ErfTable", "erf(a)", erf, 6, "-0.25", "2.89", "3.93", [0], slope=1, count=8)
    yield Table("SigmoidTable", "sigmoid(−a)", lambda a: logistic(-a), 9, "-0.005", "0.5175", "17.4", [half], count=8,
                place=0.9)
    first = [rounded(log(2)), -half]
    yield Table("SoftplusTable", "softplus(−a)", lambda a: log1p(exp(-a)), 9, "-0.005", "0.52", "17.2", first,
                count=8, place=0.9)
    f = lambda a: a * normal(-a)
    yield Table("GeluTable", "a·Φ(−a)", f, 8, "0.12", "0.66", "5.6", [0, half], count=8, place=0.9)
    f = lambda a: normal(-a) - a * density(a)
    yield Table("GeluSlopeTable", "Φ(−a) − a·φ(a)", f, 10, "0.03", "0.98", "6.3", [half],
                root=findroot(f, 0.75), count=8, place=0.8)
    f = lambda a: a * logistic(-cubic(a)[0])
    yield Table("GeluTanhTable", "−gelu_tanh(−a)", f, 9, "0.16", "0.56", "5.3", [0, half], count=8, place=0.8)
    f = gelu_tanh_slope
    yield Table("GeluTanhSlopeTable", "the derivative of gelu_tanh at −a", f, 10, "0.07", "0.93", "5.6", [half],
                root=findroot(f, 0.75), count=8, place=0.8)
    f = lambda a: a * logistic(-a)
    yield Table("SiluTable", "−silu(−a)", f, 9, "-0.01", "0.61", "17", [0, half], count=8, place=0.9)
    f = lambda a: logistic(-a) * (1 - a * logistic(a))
    yield Table("SiluSlopeTable", "the derivative of silu at −a", f, 11, "-0.0095", "0.56", "20", [half],
                root=findroot(f, 1.28), count=8, place=0.8)
    yield Table("MishTable", "mish(x)/x", mish_factor, 10, "-0.035", "0.76", "9.4", None, least="-6", count=8,
                place=0.1)
    yield Table("MishSlopeTable", "the derivative of mish", mish_slope, 11, "-0.03", "0.7", 11, [rounded(mpf("0.6"))],
                least="-6", root=findroot(mish_slope, -1.19), count=8, place=0.2)


def print_tails():
    """Polynomials of GeluTail and GeluSlopeTail in pack_tabulated.h."""
    factor = lambda a: exp(a * a / 2)
    print("GeluTail:", tail(lambda a: a * normal(-a) * factor(a)))
    print("GeluSlopeTail:", tail(lambda a: (density(a) - normal(-a) / a) * factor(a)))


def write(path, include, lines):
    lines = ["#pragma once", "", include, "", "/// Written by tools/fit_tables.py, which explains the method.",
             "namespace palimpsest::PALIMPSEST_LEVEL {", "", *lines, "}  // namespace palimpsest::PALIMPSEST_LEVEL", ""]
    done = subprocess.run(["clang-format-19", f"--assume-filename={path}"], input="\n".join(lines), text=True,
                          capture_output=True, check=True)
    path.write_text(done.stdout, encoding="utf-8")


def row_type(count):
    return ["/// The bits of an f32 number for each interval.", f"using TableRow = std::uint32_t[{count}];", ""]


def main():
    folder = pathlib.Path(sys.argv[1])
    lines = [line for table in tables() for line in table.lines]
    write(folder / "pack_tables.h", "#include <cstdint>", row_type(COUNT) + exponential_table() + lines)
    lines = [line for table in activation_tables() for line in table.lines]
    write(folder / "pack_activation_tables.h", '#include "autodiff/kernels/pack_tables.h"', lines)
    lines = [line for table in short_tables() for line in table.lines]
    write(folder / "pack_short_tables.h", "#include <cstdint>", row_type(8) + lines)
    print_tails()


if __name__ == "__main__":
    main()
