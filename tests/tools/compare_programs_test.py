"""Runs tools/compare_programs.py on small programs: what it counts, compares and refuses."""

import pathlib
import subprocess
import sys
import tempfile

SOURCE = """// A comment.
#include <cstdio>

int main() {
  std::puts("loss 1.5");  // a comment
}
"""
PYTHON = '''"""A docstring
of two lines."""

import sys

# A comment.
print(
    "loss 1.5",
)
'''
PROGRAM = "#!/bin/sh\nprintf 'iteration 7 x\\nloss 1.50001\\n'\n"
TABLE = """| `name` | 5 / 4 |

| program | compared with | dtype | lines |
|---|---|---|---|
| `name` | JAX | f32 | 4 / 4 |
"""


def main():
    tool = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        files = {name: root / name for name in ("program", "name.cpp", "name.py", "name.expected", "table.md")}

        def check(**texts):
            texts = {"program": PROGRAM, "source": SOURCE, "python": PYTHON,
                     "expected": "# f32, relative tolerance 1e-5\nloss 1.5\n", "table": TABLE, **texts}
            for file, text in zip(files.values(), texts.values()):
                file.write_text(text, encoding="utf-8")
            files["program"].chmod(0o755)
            run = subprocess.run([sys.executable, tool, "check", *files.values()], capture_output=True, text=True)
            return run.returncode, run.stdout + run.stderr

        code, text = check()
        assert code == 0 and "name: 4 lines, 4 in Python; numbers in f32 differ by at most 7e-06" in text, text
        code, text = check(source=SOURCE + "int x;\n")
        assert code == 1 and "name has 1.25 times the lines of the program in Python, more than 1.2" in text, text
        code, text = check(table=TABLE.replace("4 / 4", "4 / 5"))
        assert code == 1 and "does not say that name has 4 / 4 lines" in text, text
        code, text = check(source=SOURCE + "/* many lines */")
        assert code == 1 and "write comments with //" in text, text
        code, text = check(python=PYTHON + "#" * 101)
        assert code == 1 and "more than 100 columns" in text, text
        code, text = check(expected="# f32, relative tolerance 1e-6\nloss 1.5\n")
        assert code == 1 and "numbers differ by 6.7e-06 of their size, more than 1e-6" in text, text
        code, text = check(program="#!/bin/sh\necho loss nan\n")
        assert code == 1 and "numbers differ by nan" in text, text
        code, text = check(program="#!/bin/sh\necho less 1.5\n")
        assert code == 1 and "printed `less 1.5` instead of `loss 1.5`" in text, text
        code, text = check(program="#!/bin/sh\n")
        assert code == 1 and "0 lines of output instead of 1" in text, text
        code, text = check(program="#!/bin/sh\nexit 1\n")
        assert code == 1, text


main()
