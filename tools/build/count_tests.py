"""Counts the test cases of one `bazel test` run.

    count_tests.py EVENTS

EVENTS is what --build_event_json_file wrote. Prints one line for each test target and each target that did not build,
and as the last line `N passed, N failed[, N skipped]`. GoogleTest cases are counted from the test.xml of each target,
cached results included. A target that did not build, crashed, timed out or ran no case is one failure.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections import namedtuple

Counts = namedtuple("Counts", "passed failed skipped")


def add(counts):
    return Counts(*map(sum, zip(Counts(0, 0, 0), *counts)))


def format_counts(counts):
    text = f"{counts.passed} passed, {counts.failed} failed"
    return text + (f", {counts.skipped} skipped" if counts.skipped else "")


def count_case(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return Counts(0, 1, 0)
    if case.get("status") == "notrun":  # a DISABLED_ case, or one that a filter left out
        return Counts(0, 0, 0)
    if case.get("result") == "skipped" or case.find("skipped") is not None:
        return Counts(0, 0, 1)
    return Counts(1, 0, 0)


def count_xml(path):
    try:
        return add(count_case(case) for case in ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):  # a test that was killed can leave half a file
        return Counts(0, 1, 0)


def read_events(path):
    """Returns {test label: status}, {test label: [xml file of each shard and run]}, {label that did not build}."""
    status, files, unbuilt = {}, {}, set()
    with open(path, encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            (kind, ident), = event["id"].items()
            if kind == "testSummary":
                status[ident["label"]] = event["testSummary"]["overallStatus"]
            elif kind == "testResult":
                for output in event["testResult"].get("testActionOutput", ()):
                    if output["name"] == "test.xml":  # of several attempts at one shard the last stays
                        shard = ident.get("run"), ident.get("shard")
                        path = urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
                        files.setdefault(ident["label"], {})[shard] = path
            elif kind == "targetCompleted" and not event.get("completed", {}).get("success"):
                unbuilt.add(ident["label"])
    return status, {label: list(shards.values()) for label, shards in files.items()}, unbuilt


def count_target(status, files):
    """Returns the counts of one test target and a word for what else went wrong, if anything did."""
    counts = add(map(count_xml, files))
    if status not in ("PASSED", "FLAKY"):
        return (counts if counts.failed else counts._replace(failed=1)), status.lower().replace("_", " ")
    if sum(counts) == 0:
        return Counts(0, 1, 0), "ran no case"
    return counts, ""


def main(path):
    status, files, unbuilt = read_events(path)
    results = {label: (Counts(0, 1, 0), "failed to build") for label in unbuilt - status.keys()}
    results.update((label, count_target(status[label], files.get(label, []))) for label in status)
    for label, (counts, trouble) in sorted(results.items()):
        print(f"{format_counts(counts)}  {label}{'  (' + trouble + ')' if trouble else ''}")
    print(format_counts(add(counts for counts, _ in results.values())))


if __name__ == "__main__":
    main(sys.argv[1])
