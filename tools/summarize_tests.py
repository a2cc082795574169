#!/usr/bin/env python3
"""Adds up a `meson test` run: summarize_tests.py BUILD_FOLDER [--no-suite NAME].

Counts Catch2's test cases where a program printed Catch2's totals, else one per program. Whatever
crashed, hung, failed or left no record counts as failed. The last line is `N passed, N failed`, with
`, N skipped` where something was; the exit status says whether anything failed.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}
ALL_PASSED = re.compile(r"^All tests passed \(.* in (\d+) test cases?\)$", re.MULTILINE)
SOME_FAILED = re.compile(r"^test cases: +(\d+) \|(.*)$", re.MULTILINE)


def catch_cases(output):
    """(passed, failed, skipped) of Catch2's closing lines, or None where there are none."""
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


def expected_names(folder, left_out):
    tests = json.loads(subprocess.check_output(["meson", "introspect", "--tests", folder]))
    suites = lambda test: {suite.split(":")[-1] for suite in test["suite"]}
    return [test["name"] for test in tests if not suites(test) & set(left_out)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--no-suite", action="append", default=[])
    arguments = parser.parse_args()

    log = pathlib.Path(arguments.folder, "meson-logs", "testlog.json")
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if not records:
        print("the tests did not run")
    # Names in the log carry the project and suite in front: `palimpsest:examples / 01_first_gradient`.
    seen = {record["name"].split(" / ")[-1] for record in records}
    missing = [name for name in expected_names(arguments.folder, arguments.no_suite) if name not in seen]
    for name in missing:
        print("no record of", name)

    passed, failed, skipped = map(sum, zip((0, len(missing), 0), *map(count, records)))
    failed = failed or int(not records)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


sys.exit(main())
