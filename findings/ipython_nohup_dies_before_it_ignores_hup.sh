#!/usr/bin/env bash
# ipykernel 7.4.0, IPython 9.18.1, pexpect 4.9.0, jupyter_client 8.10.0, Python 3.11, Linux, /bin/sh is dash.
#
# In a notebook, `!nohup COMMAND > log 2>&1 & echo started $!` prints "started PID", but mostly the command never runs.
# IPython runs each `!` line in a terminal of its own. When the line's shell ends, the system sends SIGHUP to what the
# line has left, mostly before `nohup` has had the time to ignore it. With `sleep 0.5` in place of the `echo` the same
# command survives. (IPython refuses only lines that end in `&`.)
#
# Seen: of 10 such lines, 0 to 4 write their file; of 3 that wait for half a second, all do.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q ipykernel==7.4.0 ipython==9.18.1 pexpect==4.9.0 jupyter_client==8.10.0
cd "$folder"
cat > count.py <<'PY'
import time
from pathlib import Path

from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3")
started = "!nohup sh -c 'sleep 1; touch {}' > /dev/null 2>&1 & {}"
for number in range(10):
    client.execute_interactive(started.format(f"at_once_{number}", "echo started $!"), timeout=30)
for number in range(3):
    client.execute_interactive(started.format(f"later_{number}", "sleep 0.5"), timeout=30)
time.sleep(3)
found = [len(list(Path().glob(f"{name}_*"))) for name in ("at_once", "later")]
manager.shutdown_kernel(now=True)
print("of 10 lines that end at once, and of 3 that wait, so many ran on:", found)
raise SystemExit(not (found[0] < 10 and found[1] == 3))
PY
PATH="$folder/venv/bin:$PATH" venv/bin/python count.py
