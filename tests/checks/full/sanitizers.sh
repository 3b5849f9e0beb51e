#!/usr/bin/env bash
# Every test that can run under the address and undefined-behaviour sanitizers, the tests of tools/test --full included;
# and tests that start threads under the thread sanitizer.
set -uo pipefail
source tools/build/test_totals.sh
bazel_tests 'address and undefined-behaviour sanitizers' --config=asan --test_tag_filters=-no_asan \
    --build_tag_filters=-no_asan //...
bazel_tests 'thread sanitizer' --config=tsan //...
finish
