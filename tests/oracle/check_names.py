#!/usr/bin/env python3
"""check_names.py ROOT: compares docs/missing_functions.h with PyTorch and jax.numpy.

Every differentiable operator that PyTorch's tests know on a CPU, and every function of jax.numpy, must be a function of
a public header or have a row with a reason. Rows must name functions that exist there and not here. Prints what is
wrong, and exits non-zero.
"""
import fnmatch
import pathlib
import re
import sys
import types
import unittest

DECLARED = re.compile(r"^\w[^\n=]*[\w>&] ([a-z]\w*)\(", re.MULTILINE)
ROW = re.compile(r'\{((?:"[^"]*"\s*)+),\s*(?:"[^"]*"\s*)+\}')


def functions_here(root):
    texts = [path.read_text(encoding="utf-8") for folder in ("autodiff", "nn", "strategy", "data")
             for path in (root / folder).rglob("*.h")]
    return {name for text in texts if "PALIMPSEST_EXPORT" in text
            for name in DECLARED.findall(re.sub(r"//.*", "", text))}


def rows(root, table):
    text = (root / "docs/missing_functions.h").read_text(encoding="utf-8").partition(f"{table}[]")[2].partition("};")[0]
    return [name for row in ROW.findall(text) for name in "".join(re.findall(r'"([^"]*)"', row)).split()]


def functions_of_pytorch():
    # The module with PyTorch's operators imports a package for tests of which it uses one class.
    sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase, assert_expected_inline=None))
    from torch.testing._internal.common_methods_invocations import op_db
    return {operator.name for operator in op_db if operator.supports_autograd}


def functions_of_jax():
    import jax.numpy
    return {name for name, value in vars(jax.numpy).items()
            if name[0].islower() and callable(value) and not isinstance(value, type)}


def wrong_rows(here, there, named):
    own = {name for name in there if name.rpartition(".")[2] in here}
    for name in sorted(there - own):
        if not any(fnmatch.fnmatch(name, pattern) for pattern in named):
            yield f"{name} exists there only, and has no row"
    for name in named:
        found = {other for other in there if fnmatch.fnmatch(other, name)}
        if not found:
            yield f"{name} has a row and does not exist there"
        elif found <= own:
            yield f"{name} has a row and exists here"


def main():
    root = pathlib.Path(sys.argv[1])
    here = functions_here(root)
    wrong = [*wrong_rows(here, functions_of_pytorch(), rows(root, "missing_of_pytorch")),
             *wrong_rows(here, functions_of_jax(), rows(root, "missing_of_jax"))]
    print(*wrong, sep="\n")
    print(f"names: {len(wrong)} complaints")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
