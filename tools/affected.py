"""Finds the tests that a change can affect, using the build's own dependency graph."""

import functools
import json
import os
import pathlib
import subprocess


def tests_of(folder):
    """Meson's data about every test."""
    return json.loads(subprocess.check_output(["meson", "introspect", "--tests", folder]))


def changed_files(commit):
    """Absolute paths of files that differ from the commit, including untracked files."""
    lines = subprocess.check_output(["git", "diff", "--name-only", commit, "--"], text=True)
    lines += subprocess.check_output(["git", "ls-files", "--others", "--exclude-standard"], text=True)
    return {os.path.realpath(line) for line in lines.splitlines()}


@functools.cache
def files_by_target(folder):
    listed = json.loads(subprocess.check_output(["meson", "introspect", "--targets", folder]))
    return {target["id"]: target["filename"] for target in listed}


def targets_of(folder, test):
    """The programs that a test needs, by their names in ninja."""
    files = files_by_target(folder)
    names = [name for target in test["depends"] for name in files.get(target, [])]
    return tuple(os.path.relpath(name, os.path.abspath(folder)) for name in names)


@functools.cache
def inputs_of(folder, targets):
    """All direct and indirect inputs of the targets in ninja."""
    if not targets:
        return []
    listed = subprocess.check_output(["ninja", "-C", folder, "-t", "inputs", *targets], text=True)
    return [line for line in listed.splitlines() if not line.startswith("ninja: ")]


def headers_by_object(folder):
    """Maps each object to the files that the compiler read for it, from ninja's dependency log."""
    listed = subprocess.check_output(["ninja", "-C", folder, "-t", "deps"], text=True)
    headers, current = {}, None
    for line in listed.splitlines():
        if line.startswith("    "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = headers.setdefault(line.split(": #deps")[0], [])
    return headers


def read_by(folder, test, headers):
    """Absolute paths of every file that the test's programs are built from or that the test receives."""
    inputs = list(inputs_of(folder, targets_of(folder, test)))
    inputs += [header for name in inputs for header in headers.get(name, [])]
    # realpath is slow for thousands of files: it asks the file system about every folder on the
    # way.
    base = os.path.realpath(folder)
    return {os.path.normpath(os.path.join(base, name)) for name in inputs + test["cmd"]}


def affected(folder, tests, commit):
    """The tests that changes since the commit can affect."""
    changed = changed_files(commit)
    if any(pathlib.Path(file).name in ("meson.build", "meson_options.txt", "dev") for file in changed):
        return tests
    root = os.path.realpath(".")
    headers = headers_by_object(folder)
    chosen = []
    for test in tests:
        files = read_by(folder, test, headers)
        # A test that gets the whole tree can read any file of it.
        if changed & files or (changed and root in files):
            chosen.append(test)
    return chosen
