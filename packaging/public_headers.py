#!/usr/bin/env python3
"""Prints the headers to install: those that the given ones include, directly or not, one per line.

usage: public_headers.py ROOT HEADER...

The umbrella headers name the public headers. What these include besides is installed too, but users do not include it.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "((?:autodiff|checkpoint|strategy|data|nn)/[^"]+)"', re.MULTILINE)


def main():
    root = pathlib.Path(sys.argv[1])
    found, waiting = set(), list(sys.argv[2:])
    while waiting:
        header = waiting.pop()
        if header not in found:
            found.add(header)
            waiting += INCLUDE.findall((root / header).read_text(encoding="utf-8"))
    print(*sorted(found - {"palimpsest.h"}), sep="\n")


if __name__ == "__main__":
    main()
