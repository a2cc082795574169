#!/usr/bin/env python3
"""Compares the programs of examples/compared/ with the same ones in Python.

compare_programs.py check PROGRAM SOURCE PYTHON EXPECTED DOCUMENT
    runs the compiled PROGRAM and compares its numbers with those in the file EXPECTED, which the program in Python
    printed. Compares the lines of SOURCE and PYTHON too: there may be at most 1.2 times as many. DOCUMENT has a table
    with their numbers.
compare_programs.py python FOLDER [NAME...] [--write]
    runs the programs in Python, by this Python, and compares their numbers with the expected ones, or writes these.
compare_programs.py table FOLDER PROGRAMS DOCUMENT [NAME...]
    measures the programs in the folders PROGRAMS (C++) and FOLDER (Python, by this Python), and writes the table in
    DOCUMENT, or those rows of it.

The first line of EXPECTED states the dtype and the tolerance. Lines that begin with `iteration` are not compared, since
two implementations of a method may take different ones.
"""

import argparse
import io
import os
import pathlib
import re
import subprocess
import sys
import tokenize

MOST_LINES = 1.2
COLUMNS = 100
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf")
HEADER = re.compile(r"# (\w+), relative tolerance (\S+)")
RUNS = 3
TABLE = "| program | compared with |"
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def lines_of_cpp(text):
    """Lines without blank ones and comments."""
    if "/*" in text:
        sys.exit("write comments with //, so that lines can be counted")
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("//"))


def lines_of_python(text):
    """Lines without blank ones, comments and texts that are statements of their own, such as docstrings."""
    lines, begins = set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in SKIPPED:
            begins = begins or token.type == tokenize.NEWLINE
            continue
        if not (begins and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
        begins = False
    return len(lines)


def count(source, python):
    """Lines in C++ and in Python."""
    texts = [pathlib.Path(file).read_text(encoding="utf-8") for file in (source, python)]
    for file, text in zip((source, python), texts):
        if any(len(line) > COLUMNS for line in text.splitlines()):
            sys.exit(f"{file} has lines of more than {COLUMNS} columns")
    return lines_of_cpp(texts[0]), lines_of_python(texts[1])


def compared(output):
    return [line for line in output.splitlines() if line and not line.startswith("iteration")]


def difference(expected, output):
    """The largest relative difference of two lists of lines. Exits if their words differ."""
    if len(expected) != len(output):
        sys.exit(f"{len(output)} lines of output instead of {len(expected)}:\n" + "\n".join(output))
    largest = 0
    for wanted, line in zip(expected, output):
        if NUMBER.sub("", wanted) != NUMBER.sub("", line):
            sys.exit(f"printed `{line}` instead of `{wanted}`")
        for a, b in zip(map(float, NUMBER.findall(wanted)), map(float, NUMBER.findall(line))):
            relative = 0 if a == b else abs(a - b) / max(abs(a), abs(b))
            # This is true for NaN too.
            if not relative <= largest:
                largest = relative
    return largest


def compare(name, header, expected, output):
    """Returns a text that says how large the differences are. Exits if they are too large."""
    dtype, tolerance = HEADER.fullmatch(header).groups()
    largest = difference(expected, output)
    if not largest <= float(tolerance):
        sys.exit(f"{name}: numbers differ by {largest:.2g} of their size, more than {tolerance}:\n" + "\n".join(output))
    return f"numbers in {dtype} differ by at most {largest:.1g} of their size"


def check(program, source, python, expected, document):
    name = pathlib.Path(source).stem
    ours, theirs = count(source, python)
    header, *lines = pathlib.Path(expected).read_text(encoding="utf-8").splitlines()
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    print(f"{name}: {ours} lines, {theirs} in Python;", compare(name, header, lines, compared(output)))
    if ours > MOST_LINES * theirs:
        sys.exit(f"{name} has {ours / theirs:.2f} times the lines of the program in Python, more than {MOST_LINES}")
    table = pathlib.Path(document).read_text(encoding="utf-8").partition(TABLE)[2]
    if not re.search(rf"^\| `{name}` \|.*\| {ours} / {theirs} \|", table, re.MULTILINE):
        sys.exit(f"the table in {document} does not say that {name} has {ours} / {theirs} lines")


def run_in_python(folder, write, names):
    for name in names or names_in(folder):
        file = folder / f"{name}.expected"
        header, *lines = file.read_text(encoding="utf-8").splitlines()
        output = compared(run([sys.executable, "-B", folder / f"{name}.py"]).stdout)
        if write:
            file.write_text("\n".join([header, *output, ""]), encoding="utf-8")
        else:
            print(f"{name}:", compare(name, header, lines, output))


def names_in(folder):
    return sorted(file.stem for file in folder.glob("*.expected"))


def run(command, **environment):
    """Runs a command on one processor, and so on one thread."""
    processor = min(os.sched_getaffinity(0))
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {processor}),
                          env={**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", **environment})


def measure(*commands):
    """The least peak and the least time of a step of each program in several runs: (bytes, seconds). The programs run
    in turns, so that other load on the machine affects all of them."""
    runs = [[dict(line.split() for line in run(command, COMPARED_MEASURE="1").stderr.splitlines()
                  if line.startswith(("peak ", "seconds "))) for command in commands] for _ in range(RUNS)]
    return [(min(int(each["peak"]) for each in own), min(float(each["seconds"]) for each in own)) for own in zip(*runs)]


def shown_time(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def row(folder, programs, name):
    source, python = folder / f"{name}.cpp", folder / f"{name}.py"
    ours, theirs = measure([programs / name], [sys.executable, "-B", python])
    package = "PyTorch" if "import torch" in python.read_text(encoding="utf-8") else "JAX"
    dtype = HEADER.match((folder / f"{name}.expected").read_text(encoding="utf-8"))[1]
    lines = count(source, python)
    peaks = f"{ours[0] / 2**20:.0f} / {theirs[0] / 2**20:.0f}"
    times = f"{shown_time(ours[1])} / {shown_time(theirs[1])}"
    cells = [f"`{name}`", package, dtype, f"{lines[0]} / {lines[1]}", peaks, times]
    return "| " + " | ".join(cells) + " |"


def write_table(folder, programs, document, names):
    before, heading, text = document.read_text(encoding="utf-8").partition(TABLE)
    for name in names or names_in(folder):
        text, found = re.subn(rf"^\| `{name}` \|.*$", lambda _: row(folder, programs, name), text, flags=re.MULTILINE)
        if found != 1:
            sys.exit(f"the table in {document} has no row for {name}, or several")
        document.write_text(before + heading + text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("check")
    for argument in ("program", "source", "python", "expected", "document"):
        command.add_argument(argument)
    command = commands.add_parser("python")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--write", action="store_true")
    command.add_argument("names", nargs="*")
    command = commands.add_parser("table")
    for argument in ("folder", "programs", "document"):
        command.add_argument(argument, type=pathlib.Path)
    command.add_argument("names", nargs="*")
    arguments = vars(parser.parse_args())
    {"check": check, "python": run_in_python, "table": write_table}[arguments.pop("command")](**arguments)


if __name__ == "__main__":
    main()
