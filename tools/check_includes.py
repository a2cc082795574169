#!/usr/bin/env python3
"""Fails on an #include that points upwards, and on folders that include each other.

usage: check_includes.py ROOT

Folders are listed from the lowest one to the highest one. A file may include files of its own folder and of folders
below it. Pairs of folders in `circles` include each other for a reason that is named there.
"""

import collections
import pathlib
import re
import sys

layers = {
    "autodiff": ["autodiff", "autodiff/operations/functions", "autodiff/kernels", "autodiff/operations"],
    "checkpoint": ["checkpoint/stores", "checkpoint", "checkpoint/chains", "checkpoint/planners", "checkpoint/reverse"],
    "strategy": [
        "strategy/base",
        "strategy/compile/fusion",
        "strategy/explain",
        "strategy/compile",
        "strategy/compile/native",
        "strategy/run",
        "strategy/loops",
        "strategy/evaluators",
        "strategy/execution/precision",
        "strategy",
        "strategy/training",
        "strategy/export",
        "strategy/parallel/partition",
        "strategy/parallel/pipeline",
        "strategy/parallel/devices",
        "strategy/execution/layer_checkpointing",
        "strategy/execution",
        "strategy/execution/choice",
        "strategy/mpi",
    ],
    "data": ["data"],
    "nn": ["nn"],
}
circles = {
    ("autodiff", "autodiff/operations"): "differentiating a tape records sums, products and constants",
    ("autodiff", "autodiff/kernels"): "16-bit operands are converted by the kernels of the processor",
}
order = [folder for layer in layers.values() for folder in layer]


def includes_of(root):
    """Pairs of a file and a file of the library that it includes."""
    for layer in layers:
        for path in sorted((root / layer).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                text = path.read_text(encoding="utf-8")
                for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
                    assert name.startswith(tuple(layers)), f"{path} includes {name} by another path than from the root"
                for name in re.findall(r'^#include "((?:autodiff|checkpoint|strategy|data|nn)/[^"]+)"', text, re.MULTILINE):
                    yield path.relative_to(root).as_posix(), name


def folder_of(file):
    return file.rpartition("/")[0]


def problems_in(includes):
    unused = collections.Counter({circle: 0 for circle in circles})
    for file, included in includes:
        source, target = folder_of(file), folder_of(included)
        for folder in (source, target):
            if folder not in order:
                yield f"{file}: {folder} is in no list of tools/check_includes.py"
                break
        else:
            if order.index(target) <= order.index(source):
                continue
            if (source, target) in circles:
                unused[source, target] += 1
            else:
                yield f"{file} includes {included}, which is above it"
    for circle, count in unused.items():
        if count == 0:
            yield f"{circle[0]} no longer includes {circle[1]}: take the pair off the list"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(includes_of(root))
    problems = list(problems_in(found))
    print(*problems, sep="\n")
    print(f"{len(found)} includes in {len(order)} folders, {len(problems)} problems")
    return bool(problems) or not found


if __name__ == "__main__":
    sys.exit(main())
