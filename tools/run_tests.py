#!/usr/bin/env python3
"""run_tests.py FOLDER [--no-suite NAME] [--suite NAME] [--since COMMIT] [--patience N] [TEST...]: builds and runs tests with `meson test`.

Prints a line for each test program with its time, and the output of failed programs. Then prints the total processor time,
the programs that take more than 90 s of it, and last `N passed, N failed`, with `, N skipped` if tests were skipped. Counts
the test cases of programs that print Catch2's totals, and any other program as one. A program that crashes, hangs, fails or
leaves no record counts as failed. The exit status is non-zero if anything failed.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys

import affected
import build

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}
ALL_PASSED = re.compile(r"^All tests passed \(.* in (\d+) test cases?\)$", re.MULTILINE)
SOME_FAILED = re.compile(r"^test cases: +(\d+) \|(.*)$", re.MULTILINE)
MUCH = 90  # seconds of processor time


def catch_cases(output):
    """(passed, failed, skipped) from Catch2's closing lines, or None without such lines."""
    if match := ALL_PASSED.search(output):
        return int(match[1]), 0, 0
    if match := SOME_FAILED.search(output):
        total = int(match[1])
        counts = {kind: int(n) for n, kind in re.findall(r"(\d+) ([a-z]+)", match[2])}
        passed, skipped = counts.get("passed", 0), counts.get("skipped", 0)
        return passed, total - passed - skipped, skipped
    return None


def count(record):
    """(passed, failed, skipped) of one record of the log."""
    result = record.get("result")
    if result in SKIPPED:
        return 0, 0, 1
    passed, failed, skipped = catch_cases(record.get("stdout") or "") or (int(result in PASSED), 0, 0)
    if result not in PASSED:
        failed = max(failed, 1)
    return passed, failed, skipped


def suites_of(test):
    return {suite.split(":")[-1] for suite in test["suite"]}


def choose(arguments):
    """The tests to run and the skipped tests."""
    tests = affected.tests_of(arguments.folder)
    if not arguments.tests:
        tests = [test for test in tests if not suites_of(test) & set(arguments.no_suite)]
    if arguments.suite:
        tests = [test for test in tests if suites_of(test) & set(arguments.suite)]
    unknown = set(arguments.tests) - {test["name"] for test in tests}
    if unknown:
        sys.exit(f"unknown tests {', '.join(sorted(unknown))}; the tests are "
                 + ", ".join(sorted(test["name"] for test in tests)))
    chosen = [test for test in tests if test["name"] in arguments.tests] if arguments.tests else tests
    if arguments.since:
        chosen = affected.affected(arguments.folder, chosen, arguments.since)
    return chosen, [test for test in tests if test not in chosen]


def listed(names):
    """The names of tests; for header tests, which are many, only their number."""
    headers = [name for name in names if name.endswith(".h")]
    if len(headers) > 10:
        names = [name for name in names if name not in headers] + [f"{len(headers)} header files by themselves"]
    return ", ".join(names)


def run(folder, tests, patience):
    """Runs tests and prints a line for each. Returns the records of meson's log, and processor seconds by command and level of kernels."""
    logs = pathlib.Path(folder, "meson-logs").resolve()
    times = logs / "processor_time.json"
    for old in [times, *logs.glob("testlog*.json")]:
        old.unlink(missing_ok=True)
    measure = pathlib.Path(__file__).resolve().with_name("measure.py")
    command = ["meson", "test", "-C", folder, "--no-rebuild", "--timeout-multiplier", patience,
               "--wrapper", shlex.join([sys.executable, str(measure), str(times)]), *(test["name"] for test in tests)]
    meson = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")
    for line in meson.stdout:
        if re.match(r" *\d+/\d+ ", line):
            print(line, end="", flush=True)
    meson.wait()
    # Meson names the log after the wrapper.
    records = [json.loads(line) for log in logs.glob("testlog*.json") for line in log.read_text().splitlines()]
    measured = [json.loads(line) for line in times.read_text().splitlines()] if times.exists() else []
    return records, {(*each["command"], each["kernels"]): each["seconds"] for each in measured}


def name_of(record):
    # The log prefixes project and suite: `palimpsest:examples / 01_first_gradient`.
    return record["name"].split(" / ")[-1]


def print_failures(records):
    for record in records:
        if record.get("result") in PASSED | SKIPPED:
            continue
        print(f"\n==== {name_of(record)}: {record.get('result')} ====")
        print(record.get("stdout") or "", record.get("stderr") or "", sep="\n")


def print_times(tests, seconds):
    total = sum(seconds.values())
    if not total:
        return
    print(f"processor time of the tests: {total:.0f} s")
    for test in tests:
        own = seconds.get((*test["cmd"], test["env"].get("PALIMPSEST_KERNELS")), 0)
        if own > MUCH:
            print(f"  more than {MUCH} s: {test['name']}, {own:.0f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    parser.add_argument("--since")
    parser.add_argument("--patience", default="5", help="how many times longer than stated a test may take")
    arguments = parser.parse_args()
    # Affected tests are known only when everything is built that the change leads to.
    everything = not arguments.tests and not arguments.suite
    if everything and build.build(arguments.folder):
        print("the build failed, no test ran\n0 passed, 1 failed")
        return 1
    tests, left_out = choose(arguments)
    if left_out:
        print("skipped:", listed([test["name"] for test in left_out]))
    if not tests:
        print("0 passed, 0 failed" if arguments.since else "there are no tests\n0 passed, 1 failed")
        return 0 if arguments.since else 1
    if not everything:
        targets = sorted({target for test in tests for target in affected.targets_of(arguments.folder, test)})
        if targets and build.build(arguments.folder, targets):
            print("the build failed, no test ran\n0 passed, 1 failed")
            return 1

    records, seconds = run(arguments.folder, tests, arguments.patience)
    print_failures(records)
    print()
    print_times(tests, seconds)
    if not records:
        print("the tests did not run")
    seen = {name_of(record) for record in records}
    missing = [test["name"] for test in tests if test["name"] not in seen]
    for name in missing:
        print("no record of", name)
    passed, failed, skipped = map(sum, zip((0, len(missing), 0), *map(count, records)))
    failed = failed or int(not records)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
