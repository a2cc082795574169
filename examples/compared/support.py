"""What the programs of this folder share with those in C++, besides what they compute (see support.h)."""

import atexit
import os
import re
import sys
import time

import numpy as np


def numbers(shape, name, dtype=np.float32):
    """Numbers in [-1, 1). They depend on the name and the position alone, and are exact in float32."""
    return (bits(shape, name) * 2.0**-23 - 1).astype(dtype)


def normals(shape, name):
    """Numbers that are nearly normal, with mean 0 and deviation 1."""
    halves = numbers((*shape, 12), name, np.float64) / 2
    return sum(halves[..., i] for i in range(12))


def classes(shape, name, classes):
    """Integers from 0 to `classes` - 1."""
    return (bits(shape, name) % np.uint64(classes)).astype(np.int64)


def discs(count, size):
    """Images (count, 1, size, size) of a disc in noise, and 1 where the disc is."""
    places = numbers((count, 3), "places", np.float64)[:, :, None, None]
    half = size / 2
    down = np.arange(size)[:, None] - half * (1 + places[:, 0] / 2)
    across = np.arange(size) - half * (1 + places[:, 1] / 2)
    radius = half * (0.5 + places[:, 2] / 4)
    masks = (down * down + across * across < radius * radius).astype(np.float32)[:, None]
    return numbers((count, 1, size, size), "noise") + masks, masks


def first_value(shape, name, dtype=np.float32):
    """The first value of a parameter with several axes. Weights of linear layers are (inputs, outputs)."""
    fan = shape[0] if len(shape) == 2 else np.prod(shape[1:])
    return (numbers(shape, name, np.float64) * np.sqrt(3 / fan)).astype(dtype)


def same_parameters(model):
    """Gives the parameters of a PyTorch module the values that they have in C++."""
    import torch
    from torch import nn

    def set_value(parameter, name, transposed=False):
        shape = tuple(parameter.T.shape if transposed else parameter.shape)
        value = torch.from_numpy(first_value(shape, name.replace(".", "/")))
        parameter.copy_(value.T if transposed else value)

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name.split(".")[-1]:
                parameter.zero_()
        for name, module in model.named_modules():
            if isinstance(module, nn.MultiheadAttention):
                for part, weight in zip(("query", "key", "value"), module.in_proj_weight.chunk(3)):
                    set_value(weight, f"{name}.{part}.weight", transposed=True)
                set_value(module.out_proj.weight, f"{name}.output.weight", transposed=True)
            elif isinstance(module, nn.LSTM):
                set_value(module.weight_ih_l0, f"{name}.input", transposed=True)
                set_value(module.weight_hh_l0, f"{name}.hidden", transposed=True)
                # Only the sum of the two biases matters. In C++ there is one.
                module.bias_hh_l0.requires_grad_(False)
            elif name.endswith(".out_proj"):
                continue
            else:
                for own, parameter in module.named_parameters(recurse=False):
                    if parameter.ndim > 1:
                        set_value(parameter, f"{name}.{own}" if name else own, isinstance(module, nn.Linear))


def bits(shape, name):
    """24 bits for each element: SplitMix64, from the FNV-1a hash of the name."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    place = np.arange(1, np.prod(shape, dtype=np.int64) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + place * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).reshape(shape)


def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


class Meter:
    """Measures as its counterpart in support.cpp does. Stands in for the standard output."""

    def __init__(self):
        self.before = resident("VmRSS")
        self.times = []
        self.output = sys.stdout
        sys.stdout = self
        atexit.register(self.report)

    def write(self, text):
        if match := re.match(r"(?:step|iteration) (\d+)", text):
            self.times.append((int(match[1]), time.process_time()))
        return self.output.write(text)

    def flush(self):
        self.output.flush()

    def report(self):
        (first_step, first_time), *_, (last_step, last_time) = self.times
        print("peak", resident("VmHWM") - self.before, file=sys.stderr)
        print("seconds", (last_time - first_time) / (last_step - first_step), file=sys.stderr)


if "COMPARED_MEASURE" in os.environ:
    meter = Meter()
