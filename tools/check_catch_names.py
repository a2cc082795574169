#!/usr/bin/env python3
"""Fails on a test that uses a name of Catch2 which version 2 or version 3 lacks.

usage: check_catch_names.py ROOT

Debian 12 has Catch2 2, and Debian 13 has Catch2 3. tests/catch.h hides their differences, so it may use all names, as
may tests/catch_main.cpp, which is compiled for version 2 only.
"""

import pathlib
import re
import sys

exempt = {"tests/catch.h", "tests/catch_main.cpp"}
# Names after Catch:: and Catch::Matchers:: that both versions have, or that tests/catch.h adds.
common = {"Generators", "Matchers"}
common_matchers = {"Contains", "EndsWith", "Equals", "Matches", "Message", "Predicate", "StartsWith", "WithinAbs",
                   "WithinRel", "WithinULP"}
macros_of_one = {"Approx", "SKIP", "STATIC_CHECK", "STATIC_CHECK_FALSE"}


def foreign_names(text):
    """Pairs of an offset and a name that one version lacks."""
    for match in re.finditer(r"\bCatch::(\w+)(?:::(\w+))?", text):
        if match[1] not in common or (match[1] == "Matchers" and match[2] and match[2] not in common_matchers):
            yield match.start(), match[0]
    for match in re.finditer(r"\b(" + "|".join(sorted(macros_of_one)) + r")\b *\(", text):
        yield match.start(), match[1]
    for match in re.finditer(r"#include <(catch2/[^>]+)>", text):
        yield match.start(), match[1]


def problems_in(root):
    for path in sorted((root / "tests").rglob("*")):
        file = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".cpp") or file in exempt:
            continue
        text = path.read_text(encoding="utf-8")
        for offset, name in foreign_names(text):
            line = text.count("\n", 0, offset) + 1
            yield f"{file}:{line}: Catch2 2 or Catch2 3 lacks {name}; use a common name, or hide it in tests/catch.h"


def main():
    problems = list(problems_in(pathlib.Path(sys.argv[1])))
    print("\n".join(problems) if problems else "the tests use names of Catch2 that versions 2 and 3 have")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
