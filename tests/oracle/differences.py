"""What differs from PyTorch on purpose. Every entry names a row of docs/differences-from-pytorch.md."""

import re

import numpy as np
import torch


class Difference:
    """Where a result may differ: in rows whose operation, label, dtype and quantity match the patterns, at the elements
    whose inputs `when` accepts. `heading` and `item` are a heading of the documentation and the first cell of a row under it."""

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
        """The elements it speaks of."""
        if self.when is None:
            return np.ones(shape, bool)
        seen = [torch.broadcast_to(x.to(torch.float64), shape).numpy() for x in inputs]
        return self.when(*seen)

    def is_documented(self, documentation):
        _, _, after = documentation.partition(f"## {self.heading}\n")
        section = after.partition("\n## ")[0]
        return any(line.startswith(f"| {self.item} |") for line in section.splitlines())


DIFFERENCES = []
