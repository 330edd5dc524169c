#!/usr/bin/env bash
# pytest 9.2.0 with pytest-xdist 3.8.0 (execnet 2.1.2), Python 3.11, Linux.
#
# A run whose workers all die before they have collected anything ends with exit status 5, "no tests collected".
# That is also the status of a selection that matches nothing, which many CI scripts accept. Nothing on standard error
# says that a worker died. xdist replaces each dead worker, up to four for each one asked for, before it gives up.
#
# Seen: with -n 2, ten lines "[gwN] node down: Not properly terminated", then "no tests ran", status 5. The same
# project without -n collects one failing test and ends with status 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pytest==9.2.0 pytest-xdist==3.8.0 execnet==2.1.2
mkdir "$folder/project"
cd "$folder/project"
cat > conftest.py <<'PY'
import os

def pytest_configure(config):
    # As a broken import of a compiled module or a lack of memory would do.
    if hasattr(config, "workerinput"):
        os._exit(3)
PY
echo 'def test_a(): assert False' > test_a.py

status=0
"$folder/venv/bin/pytest" -q -n 2 > out 2> err || status=$?
cat out
alone=0
"$folder/venv/bin/pytest" -q > /dev/null 2>&1 || alone=1
echo "status with workers: $status, without: $alone; lines of dead workers: $(grep -c 'node down' out)"
[ "$status" = 5 ] && [ "$alone" = 1 ] && [ "$(grep -c 'node down' out)" = 10 ] && ! [ -s err ]
