"""run_document.py [--write] DOCUMENT PROGRAM [EXAMPLE]: checks the outputs of PROGRAM in the document.

Runs EXAMPLE, which writes files into a given folder. Runs the commands of the document's `console` blocks in that
folder. A command may begin with `mpirun -n N`, which gets further arguments from the variable MPIRUN_ARGUMENTS. It may
end with `2>/dev/null`. Exits non-zero if an output differs in more than its numbers. With --write, writes the outputs of this
run into the document.
"""
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def masked(text):
    """The text with numbers, byte units, kernel levels and empty table cells masked, and without spaces."""
    text = re.sub(r"\((base|v3|v4|v4_bf16)\)", "(level)", text)  # of the kernels of this processor
    text = re.sub(r"^(auto|quick):", "plan:", text, flags=re.MULTILINE)  # depends on how long planning took
    text = re.sub(r"(?<=weights )[0-9a-f]{16}", "#", text)  # a hash
    text = re.sub(r"(?<!\w)\d[\d.]*(e[-+]?\d+)?( [KMGT]?i?B\b)?", "#", text).replace("# threads", "# thread")
    return [re.sub(r"(?<= )-(?= |$)", "#", " ".join(line.split())) for line in text.splitlines()]


def run(block, program, folder):
    text = ""
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        command = shlex.split(line[2:])
        errors = subprocess.STDOUT
        if command[-1] == "2>/dev/null":
            command.pop()
            errors = subprocess.DEVNULL
        name = command.index("-n") + 2 if command[0] == "mpirun" else 0
        assert command[name] == pathlib.Path(program).name, line
        command[name] = program
        if name > 0:
            command[1:1] = os.environ.get("MPIRUN_ARGUMENTS", "").split()
        done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=errors)
        text += line + "\n" + done.stdout
    return text


def main():
    write = sys.argv[1] == "--write"
    document, program, *examples = map(pathlib.Path, sys.argv[1 + write:])
    text = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for example in examples:
            subprocess.run([example.resolve(), folder], check=True, stdout=subprocess.DEVNULL)
        true = BLOCK.sub(lambda block: run(block[0], program.resolve(), folder), text)
    if write:
        document.write_text(true, encoding="utf-8")
        return 0
    print(*difflib.unified_diff(text.splitlines(), true.splitlines(), "document", "run", lineterm=""), sep="\n")
    return "$ " not in true or masked(text) != masked(true)


if __name__ == "__main__":
    sys.exit(main())
