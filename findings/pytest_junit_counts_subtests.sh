#!/usr/bin/env bash
# pytest 9.2.0, Python 3.11, Linux.
#
# In pytest's JUnit XML, the counts of a suite are not counts of its testcases once a test uses the fixture `subtests`.
# Each subtest is counted in `tests` and `failures`, also one that passes, but all of them share the one <testcase> of
# their test. So `failures` can be larger than the number of testcases, and tests - failures is not the number of
# testcases that passed: a reader that trusts the attributes and one that counts elements disagree.
#
# Seen, for a file with one test and three subtests, of which two fail: <testsuite failures="3" tests="4"> with a
# single <testcase> that has three <failure> elements.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pytest==9.2.0
cd "$folder"
cat > test_a.py <<'PY'
def test_a(subtests):
    for n in range(3):
        with subtests.test(n=n):
            assert n == 1
PY

venv/bin/pytest -q --junitxml=report.xml test_a.py > /dev/null || true
suite=$(grep -o '<testsuite [^>]*>' report.xml)
cases=$(grep -o '<testcase ' report.xml | wc -l)
failures=$(grep -o '<failure ' report.xml | wc -l)
echo "$suite has $cases testcase with $failures failures"
[[ $suite == *'failures="3"'* && $suite == *'tests="4"'* ]] && [ "$cases" = 1 ] && [ "$failures" = 3 ]
