#!/usr/bin/env python3
"""build.py FOLDER [TARGET...]: runs ninja and shows its current step, progress and remaining time in one line.

Without a terminal it prints a line after each fifth of the work. It prints the full output of a failed step. The exit status is ninja's.
"""

import os
import re
import shutil
import subprocess
import sys
import time

STATUS = re.compile(r"^@(\d+)/(\d+)@ (.*)$")
# Time per step, relative to compiling a small program. The compile time was measured on the library's own units.
WEIGHTS = [
    (re.compile(r"Compiling .*kernels_(base|v3|v4)\.a"), 7),
    (re.compile(r"Compiling .*operations"), 6),
    (re.compile(r"Compiling .*unity"), 3),
    (re.compile(r"Compiling"), 1),
]


def weight_of(step):
    return next((weight for pattern, weight in WEIGHTS if pattern.search(step)), 0.05)


def in_words(step):
    """`Compiling C++ object libautodiff.a.p/meson-generated_autodiff-unity0.cpp.o` as `compiling autodiff`."""
    match = re.match(r"Compiling C\+\+ object (?:.*/)?(?:lib)?([\w.-]+?)(?:\.a|\.so[\d.]*)?\.p/", step)
    return f"compiling {match[1]}" if match else step[:1].lower() + step[1:]


def in_time(seconds):
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


class Line:
    """The line on the terminal, or the lines that replace it."""

    def __init__(self):
        self.on_terminal = sys.stdout.isatty()
        self.fifth = -1

    def show(self, text, share):
        if self.on_terminal:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", flush=True)
        elif int(5 * share) != self.fifth:
            self.fifth = int(5 * share)
            print(text, flush=True)

    def end(self):
        if self.on_terminal:
            print()


def steps_to_do(command):
    """The descriptions of ninja's pending steps; empty if it must reconfigure first."""
    listed = subprocess.run([*command, "-n"], env=environment(), stdout=subprocess.PIPE, text=True)
    return [match[3] for line in listed.stdout.splitlines() if (match := STATUS.match(line))]


def environment():
    return {**os.environ, "NINJA_STATUS": "@%f/%t@ "}


def build(folder, targets=()):
    """Runs ninja and returns its exit status."""
    command = ["ninja", "-C", folder, *targets]
    # The steps are known only after reconfiguring, if that is necessary.
    subprocess.run(["ninja", "-C", folder, "build.ninja"], stdout=subprocess.DEVNULL)
    to_do = sum(map(weight_of, steps_to_do(command)))
    line = Line()
    begin = time.monotonic()
    done = 0
    output = []
    ninja = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
    for text in ninja.stdout:
        match = STATUS.match(text.rstrip("\n"))
        if not match:
            output.append(text)
            continue
        done += weight_of(match[3])
        seconds = time.monotonic() - begin
        share = min(done / to_do if to_do else int(match[1]) / int(match[2]), 1)
        left = "about " + in_time(seconds * (1 / share - 1)) if share > 0.02 else "some minutes"
        line.show(f"building: {100 * share:3.0f} %, {left} left, {in_words(match[3])}", share)
    status = ninja.wait()
    if to_do:
        line.show(f"built in {in_time(time.monotonic() - begin)}" if status == 0 else "the build failed", 2)
        line.end()
    if status:
        sys.stdout.writelines(text for text in output if not text.startswith("ninja: Entering"))
    return status


if __name__ == "__main__":
    sys.exit(build(sys.argv[1], sys.argv[2:]))
