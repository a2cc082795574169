#!/usr/bin/env python3
"""Compares the functions and objects that the shared library exports with a list.

usage: check_exports.py [--write] LIST LIBRARY

Templates and inline functions, which every program compiles for itself, are not in the list. With --write, writes it.
"""

import difflib
import pathlib
import subprocess
import sys


def exports_of(library):
    """The demangled names of strong symbols, in order."""
    listed = subprocess.check_output(["nm", "-D", "--defined-only", "-C", library], text=True)
    symbols = [line.split(" ", 2)[1:] for line in listed.splitlines()]
    return sorted({name for kind, name in symbols if kind in "TDBR"})


def main():
    write = sys.argv[1] == "--write"
    path, library = sys.argv[1 + write:]
    found = exports_of(library)
    if write:
        pathlib.Path(path).write_text("".join(name + "\n" for name in found), encoding="utf-8")
        return 0
    listed = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    differences = list(difflib.unified_diff(listed, found, "listed", "exported", lineterm="", n=0))
    print(*differences, sep="\n")
    print(f"{len(found)} exported symbols; `./dev docs` writes the list")
    return bool(differences) or not found


if __name__ == "__main__":
    sys.exit(main())
