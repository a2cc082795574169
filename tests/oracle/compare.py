#!/usr/bin/env python3
"""compare.py FOLDER: compares the rows that write_rows wrote to FOLDER with PyTorch's.

Prints a line for each value or derivative that differs, then `N cases, N complaints`. The exit status is non-zero if there
are complaints. The rules:

- PyTorch in f64, at the same inputs, is the reference of f32 and 16-bit results. Our error may be 4 times PyTorch's in the
  same dtype. No error of PyTorch's counts as less than half a unit in the last place, which a correctly rounded value may
  have, so ours may always be 2 units. A gradient is a product at least, and has two roundings; a second derivative has
  four. These may be 4 and 8 units, and twice that where they are sums: in all but elementwise functions.
- Elementwise functions are measured in units of each element, everything else in units of the largest element of the
  result.
- f64 has no wider reference. There the difference from PyTorch's may be 8 times the error, in units, that PyTorch makes of
  f32 in the same row, and always 4 times what f32 may have at least: both may have such an error. Where PyTorch's f32 has
  no digit right, f64 is not compared.
- NaN, infinities and, in values of elementwise functions, the sign of zeros are PyTorch's in the same dtype or those of the
  f64 reference, rounded.
- Integers and bools are equal.
- differences.py lists what differs on purpose. An entry that matches nothing, or names no row of the documentation, is a
  complaint. So is an operation without a counterpart and without a reason in counterparts.py.
"""

import json
import math
import pathlib
import sys
import warnings

import numpy as np
import torch

from counterparts import WITHOUT_COUNTERPART, WITHOUT_SECOND, counterpart, find
from differences import DIFFERENCES
from function_counterparts import VIEWS

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "bool": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
DIGITS = {"f64": (53, -1021), "f32": (24, -125), "f16": (11, -13), "bf16": (8, -125)}  # and the least exponent
FACTOR = 4
LEAST_ERROR = {"value": 0.5, "gradient": 1.0, "second": 2.0}  # of PyTorch's that counts, in units; doubled for sums
SATURATED = 2.0 ** 22  # an error of f32, in units, that leaves no digit
ORDINARY = "ordinary numbers"


def read(tensors, place):
    """A tensor from the file."""
    dtype = DTYPES[place["dtype"]]
    count = math.prod(place["shape"])
    flat = torch.frombuffer(tensors, dtype=dtype, count=count, offset=place["offset"]) if count else torch.zeros(0, dtype=dtype)
    return flat.reshape(place["shape"])


class Results:
    """The results of a function at its inputs: value, gradients and second derivatives, or the error raised."""

    def __init__(self, function, inputs, seeds, directions, second):
        self.value, self.gradients, self.second, self.error, self.second_error = None, [], [], None, None
        xs = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        floating = [x for x in xs if x.is_floating_point()]
        try:
            y = function(*xs)
            self.value = y.detach()
            if seeds:
                slopes = self.differentiate([y], floating, [seeds[0].to(y.dtype)])
                self.gradients = [slope.detach() for slope in slopes]
        except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError) as error:
            self.error = " ".join(str(error).split())[:120]
            return
        if not second:
            return
        try:
            for slope, direction in zip(slopes, directions):
                self.second += [x.detach() for x in self.differentiate([slope], floating, [direction.to(slope.dtype)])]
        except (RuntimeError, NotImplementedError) as error:
            self.second_error = " ".join(str(error).split())[:120]

    @staticmethod
    def differentiate(ys, xs, seeds):
        pairs = [(y, seed) for y, seed in zip(ys, seeds) if y.requires_grad]
        if not pairs:
            return [torch.zeros_like(x) for x in xs]
        ys, seeds = zip(*pairs)
        slopes = torch.autograd.grad(ys, xs, seeds, create_graph=True, allow_unused=True)
        return [torch.zeros_like(x) if slope is None else slope for x, slope in zip(xs, slopes)]

    def quantities(self):
        return named(self.value, self.gradients, self.second)


def named(value, gradients, second):
    quantities = {"value": value}
    quantities |= {f"gradient {i}": x for i, x in enumerate(gradients)}
    quantities |= {f"second derivative {i // len(gradients)} {i % len(gradients)}": x for i, x in enumerate(second)}
    return quantities


def converted(tensors, dtype):
    return [x.to(dtype) if x.is_floating_point() else x for x in tensors]


def theirs(function, dtype, inputs, seeds, directions, second):
    """PyTorch's result in the inputs' dtype. Uses f32 and rounds at the end if PyTorch has no 16-bit function."""
    results = Results(function, converted(inputs, DTYPES.get(dtype, torch.float32)) if dtype in DTYPES else inputs,
                      seeds, directions, second)
    if dtype not in ("f16", "bf16") or not (results.error or results.second_error):
        return results
    wide = Results(function, converted(inputs, torch.float32), seeds, directions, second)
    for name, value in vars(wide).items():
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
            setattr(wide, name, value.to(DTYPES[dtype]))
        elif isinstance(value, list):
            setattr(wide, name, [x.to(DTYPES[dtype]) for x in value])
    return wide


def unit_of(exact, dtype):
    """The spacing of numbers around `exact`; for subnormal numbers, the spacing of the smallest ones."""
    digits, least = DIGITS[dtype]
    exponent = np.frexp(np.where(np.isfinite(exact), exact, 0))[1]
    return np.ldexp(1.0, np.maximum(exponent, least) - digits)


def as_doubles(tensor):
    return tensor.to(torch.float64).numpy(force=True)


class Measured:
    """The places where one result differs from PyTorch's."""

    def __init__(self, ours, theirs, exact, by_element, is_value):
        dtype = NAMES[ours.dtype]
        self.ours, self.theirs, self.exact = as_doubles(ours), as_doubles(theirs), as_doubles(exact)
        rounded = as_doubles(exact.to(ours.dtype))
        finite = np.isfinite(self.exact)
        scale = self.exact if by_element or not finite.any() else np.abs(self.exact[finite]).max()
        with np.errstate(all="ignore"):
            # An infinity is as far away as the first number that is too large.
            reach = 2.0 * 2.0 ** (15 if dtype == "f16" else 127) if dtype != "f64" else math.inf
            near = np.where(np.isinf(self.ours), np.copysign(reach, self.ours), self.ours)
            # Where the exact result is not finite, and PyTorch's is, that is what ours is compared with.
            aim = np.where(finite, self.exact, self.theirs)
            unit = unit_of(scale if finite.all() else np.where(finite, scale, self.theirs), dtype)
            self.error = np.abs(near - aim) / unit
            self.their_error = np.where(finite & np.isfinite(self.theirs), np.abs(self.theirs - self.exact) / unit, 0.0)
        same = np.zeros(self.ours.shape, bool)
        for other in (self.theirs, rounded):
            special = ~np.isfinite(other)
            same |= special & ((self.ours == other) | (np.isnan(self.ours) & np.isnan(other)))
        self.same = same
        self.error = np.where(same, 0.0, self.error)
        self.wrong_sign = np.zeros(self.ours.shape, bool)
        if by_element and is_value:
            zeros = (self.ours == 0) & (self.theirs == 0)
            sign = np.signbit(self.ours)
            self.wrong_sign = zeros & (sign != np.signbit(self.theirs)) & (sign != np.signbit(rounded))

    def differing(self, limit):
        """The places where the error is NaN or above the limit, or a zero has the other sign."""
        return ~(self.error <= limit) | self.wrong_sign


def around(x, errors, reach=8):
    """The largest error at an input and its neighbours, because PyTorch may be accurate by chance at one input."""
    order = np.argsort(as_doubles(x))
    padded = np.pad(errors[order], reach)
    largest = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(-1)
    result = np.empty_like(errors)
    result[order] = largest
    return result


def text_of(number):
    return f"{number:.9g}"


class Comparison:
    def __init__(self, folder, documentation):
        self.tensors = bytearray((folder / "tensors.bin").read_bytes())
        *self.rows, last = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        self.never_recorded = last["never_recorded"]
        self.documentation = documentation
        self.errors_of_f32 = {}  # by operation, label and quantity: PyTorch's, in units
        self.complaints = 0
        self.used = set()

    def complain(self, line):
        print(line)
        self.complaints += 1

    def run(self):
        # f32 first: its errors tell what those of f64 may be. Ordinary numbers before special ones.
        order = {"f32": 0, "f64": 1, "f16": 2, "bf16": 3}
        self.rows.sort(key=lambda row: (order.get(row["dtype"], 4), row["label"] != ORDINARY))
        cases = 0
        for row in self.rows:
            if find(WITHOUT_COUNTERPART, row["operation"], row["label"]):
                continue
            cases += 1
            self.compare(row)
        self.check_tables()
        print(f"{cases} cases, {self.complaints} complaints")
        return self.complaints == 0

    def name_of(self, row):
        shapes = " ".join(f"{x['dtype']}{tuple(x['shape'])}" for x in row["inputs"])
        label = f" [{row['label']}]" if row["label"] else ""
        return f"{row['operation']}{label} {row['dtype']}, inputs {shapes}"

    def compare(self, row):
        found = counterpart(row["operation"], row["label"])
        if found is None:
            self.complain(f"{self.name_of(row)}: has no counterpart; write one, or say why there is none, in counterparts.py")
            return
        function, by_element = found
        if row["family"] == "oracle" and row["label"] in VIEWS and by_element:
            view, of_views = VIEWS[row["label"]], function
            function = lambda *xs: of_views(*(view(x) for x in xs))  # noqa: E731
        lists = {name: [read(self.tensors, x) for x in row.get(name, [])]
                 for name in ("inputs", "seeds", "gradients", "directions", "second")}
        inputs, seeds, directions = lists["inputs"], lists["seeds"], lists["directions"]
        second = "second" in row and not find(WITHOUT_SECOND, row["operation"], row["label"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same = theirs(function, row["dtype"], inputs, seeds, directions, second)
            exact = same if row["dtype"] not in ("f32", "f16", "bf16") else Results(
                function, converted(inputs, torch.float64), converted(seeds, torch.float64),
                converted(directions, torch.float64), second)
        if "error" in row or same.error:
            ours = row.get("error", "computed")
            if not ("error" in row and same.error) and not self.is_known(row, "error"):
                self.complain(f"{self.name_of(row)}: ours: {ours}; PyTorch: {same.error or 'computed'}")
            return
        if same.second_error:
            self.complain(f"{self.name_of(row)}: second derivatives: PyTorch: {same.second_error}")
        ours = named(read(self.tensors, row["value"]), lists["gradients"],
                     lists["second"] if second and not same.second_error else [])
        theirs_named, exact_named = same.quantities(), exact.quantities()
        for quantity, made in ours.items():
            self.compare_quantity(row, quantity, made, theirs_named[quantity], exact_named[quantity], by_element, inputs)

    def compare_quantity(self, row, quantity, ours, theirs, exact, by_element, inputs):
        where = f"{self.name_of(row)}, {quantity}"
        if ours.shape != theirs.shape or (quantity == "value" and ours.dtype != theirs.dtype):
            if not self.is_known(row, "type"):
                self.complain(f"{where}: ours is {NAMES[ours.dtype]}{tuple(ours.shape)}, "
                              f"PyTorch's {NAMES[theirs.dtype]}{tuple(theirs.shape)}")
            return
        if not ours.is_floating_point():
            differing = (ours != theirs).numpy(force=True)
            if (differing := self.unknown(row, quantity, inputs, differing)).any():
                place = tuple(int(i) for i in np.argwhere(differing)[0])
                self.complain(f"{where}, element {place}: {self.inputs_at(inputs, place, ours.shape)}: "
                              f"ours {ours[place].item()}, PyTorch {theirs[place].item()}")
            return
        # A sum over a broadcast axis is no function of one element.
        by_element = by_element and all(x.shape == ours.shape for x in inputs)
        measured = Measured(ours, theirs.to(ours.dtype), exact, by_element, quantity == "value")
        limit = self.limit_of(row, quantity, measured, by_element, inputs)
        differing = self.unknown(row, quantity, inputs, measured.differing(limit))
        if not differing.any():
            return
        limits = np.broadcast_to(limit, differing.shape)
        with np.errstate(all="ignore"):
            excess = np.where(differing, np.nan_to_num(measured.error / limits, nan=math.inf), -1.0)
        place = np.unravel_index(int(np.argmax(excess)), differing.shape) if differing.ndim else ()
        place = tuple(int(i) for i in place)
        self.complain(
            f"{where}, element {place}, {int(differing.sum())} of {differing.size}: {self.inputs_at(inputs, place, ours.shape)}: "
            f"ours {text_of(measured.ours[place])} ({measured.error[place]:.3g} ulp), "
            f"PyTorch {text_of(measured.theirs[place])} ({measured.their_error[place]:.3g} ulp, at most "
            f"{limits[place] / FACTOR:.3g}), f64 {text_of(measured.exact[place])}")

    def limit_of(self, row, quantity, measured, by_element, inputs):
        """The largest error allowed for our result, in units: one number, or one per element."""
        key = (row["operation"], row["label"], quantity)
        least = LEAST_ERROR[quantity.split()[0]] * (1 if by_element or quantity == "value" else 2)
        if row["dtype"] == "f64":
            errors = np.maximum(2 * least, self.errors_of_f32.get(key, 0.0))
            return np.where(errors >= SATURATED, math.inf, 2 * FACTOR * errors)
        errors = measured.their_error
        if not by_element or row["family"] != "oracle":
            errors = errors.max(initial=0.0)
        elif row["label"] == ORDINARY:
            errors = around(inputs[0], errors) if len(inputs) == 1 else np.maximum(errors, np.quantile(errors, 0.99))
        if by_element and row["label"] != ORDINARY:
            ordinary = self.errors_of_f32.get((row["operation"], ORDINARY, quantity), 0.0)
            errors = np.maximum(errors, np.quantile(ordinary, 0.75))
        if row["dtype"] == "f32":
            self.errors_of_f32[key] = errors
        return FACTOR * np.maximum(least, errors)

    @staticmethod
    def inputs_at(inputs, place, shape):
        """The elements that one element of the result depends on, or the first ones of short inputs."""
        try:
            elements = [torch.broadcast_to(x, shape)[place].item() for x in inputs]
            return "inputs " + ", ".join(text_of(x) for x in elements)
        except RuntimeError:
            short = [x.flatten()[:6].tolist() for x in inputs[:2]]
            return "inputs " + "; ".join("(" + ", ".join(text_of(x) for x in xs) + (", …)" if len(xs) == 6 else ")") for xs in short)

    def matching(self, row, quantity):
        return [entry for entry in DIFFERENCES if entry.matches(row, quantity)]

    def is_known(self, row, quantity):
        """Whether an entry covers exactly that, an error or a type, rather than some elements."""
        known = [entry for entry in DIFFERENCES if entry.quantity == quantity and entry.matches(row, quantity)]
        self.used.update(id(entry) for entry in known)
        return bool(known)

    def unknown(self, row, quantity, inputs, differing):
        """`differing` without the entries of the table of differences."""
        for entry in self.matching(row, quantity) if differing.any() else []:
            here = differing & entry.places(inputs, differing.shape)
            if here.any():
                self.used.add(id(entry))
                differing = differing & ~here
        return differing

    def check_tables(self):
        for operation in self.never_recorded:
            if operation not in WITHOUT_COUNTERPART:
                self.complain(f"{operation}: no row records it")
        for entry in DIFFERENCES:
            if id(entry) not in self.used:
                self.complain(f"differences.py: {entry}: nothing differs")
            if not entry.is_documented(self.documentation):
                self.complain(f"differences.py: {entry}: the documentation has no heading {entry.heading!r} with a row of {entry.item!r}")


def main():
    folder = pathlib.Path(sys.argv[1])
    root = pathlib.Path(__file__).resolve().parents[2]
    documentation = (root / "docs/differences-from-pytorch.md").read_text()
    torch.set_num_threads(1)
    return 0 if Comparison(folder, documentation).run() else 1


if __name__ == "__main__":
    sys.exit(main())
