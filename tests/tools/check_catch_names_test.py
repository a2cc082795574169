"""Runs tools/check_catch_names.py on small trees, and on the library."""

import pathlib
import subprocess
import sys
import tempfile

refused = ["Catch::Contains", "Catch::Matchers::ContainsSubstring", "Catch::StringRef", "SKIP", "Approx", "STATIC_CHECK",
           "catch2/catch.hpp"]
accepted = ["auto m = Catch::Matchers::Contains(\"a\");", "using Catch::Matchers::WithinAbs;", "x.isApprox(y);",
            "using namespace Catch::Matchers;"]


def run(tool, root):
    found = subprocess.run([sys.executable, tool, root], capture_output=True, text=True, check=False)
    return found.returncode, found.stdout


def main():
    tool, library = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "tests").mkdir()
        for name in refused:
            line = f"#include <{name}>" if "/" in name else f"  {name}(x);"
            (root / "tests/a_test.cpp").write_text(f"\n{line}\n", encoding="utf-8")
            code, text = run(tool, root)
            assert code == 1 and f"tests/a_test.cpp:2: Catch2 2 or Catch2 3 lacks {name};" in text, text
        (root / "tests/a_test.cpp").write_text("\n".join(accepted), encoding="utf-8")
        (root / "tests/catch.h").write_text("#include <catch2/catch.hpp>\nCatch::StringRef", encoding="utf-8")
        assert run(tool, root)[0] == 0, run(tool, root)
    code, text = run(tool, library)
    assert code == 0, text


main()
