"""Runs tools/check_includes.py on small trees, and on the library."""

import pathlib
import subprocess
import sys
import tempfile


def run(tool, root):
    found = subprocess.run([sys.executable, tool, root], capture_output=True, text=True, check=False)
    return found.returncode, found.stdout


def write(root, file, *includes):
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'#include "{name}"\n' for name in includes), encoding="utf-8")


def main():
    tool, library = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, "autodiff/tape.cpp", "autodiff/tape.h", "autodiff/operations/leaf.h")
        write(root, "autodiff/convert.cpp", "autodiff/kernels/kernels.h")
        write(root, "strategy/run/runner.cpp", "strategy/compile/program.h", "checkpoint/plan.h")
        assert run(tool, root)[0] == 0, run(tool, root)

        write(root, "strategy/compile/program.h", "strategy/run/runner.h")
        code, text = run(tool, root)
        assert code == 1 and "strategy/compile/program.h includes strategy/run/runner.h, which is above it" in text, text

        write(root, "strategy/compile/program.h")
        write(root, "checkpoint/plan.h", "strategy/base/options.h")
        code, text = run(tool, root)
        assert code == 1 and "checkpoint/plan.h includes strategy/base/options.h" in text, text

        write(root, "checkpoint/plan.h")
        write(root, "strategy/other/file.h", "strategy/base/options.h")
        code, text = run(tool, root)
        assert code == 1 and "strategy/other is in no list" in text, text

        write(root, "strategy/other/file.h")
        write(root, "autodiff/tape.cpp", "autodiff/tape.h")
        code, text = run(tool, root)
        assert code == 1 and "take the pair off the list" in text, text

    code, text = run(tool, library)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
