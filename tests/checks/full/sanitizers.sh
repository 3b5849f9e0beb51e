#!/usr/bin/env bash
# Every test that can run under the address and undefined-behaviour sanitizers, those of tools/test --full included.
set -uo pipefail
source tools/build/test_totals.sh
bazel_tests 'address and undefined-behaviour sanitizers' --config=asan --test_tag_filters=-no_asan //...
finish
