#!/usr/bin/env bash
# ipykernel 7.4.0 (IPython 9.18.1, tornado 6.6.1, jupyter_client 8.10.0), Python 3.11, Linux.
#
# An interrupt of a cell that awaits at top level takes effect only when the kernel receives another request, of
# whatever kind. The handler of SIGINT schedules the cancellation by IOLoop.add_callback in the event loop of its
# own thread (call_soon), which does not wake the loop. Front ends that send requests all the time hide this.
#
# Seen: five seconds after the interrupt of `await asyncio.sleep(60)` there is no reply. One kernel_info_request
# later, the cell ends at once with CancelledError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q ipykernel==7.4.0 ipython==9.18.1 tornado==6.6.1 jupyter_client==8.10.0
cat > "$folder/interrupt.py" <<'PY'
import queue
import time

from jupyter_client.manager import start_new_kernel


def reply_of(client, request, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            message = client.get_shell_msg(timeout=0.2)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") == request:
            return message["content"]
    return None


manager, client = start_new_kernel(kernel_name="python3")
try:
    request = client.execute("import asyncio; await asyncio.sleep(60)")
    time.sleep(2)
    manager.interrupt_kernel()
    first = reply_of(client, request, 5)
    client.kernel_info()
    second = reply_of(client, request, 20)
    print("after the interrupt:", first, "| after another request:", second and second.get("ename"))
    assert first is None and second and second["ename"] == "CancelledError"
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
PY
# The kernel that this environment installed, not one of the user.
export JUPYTER_PATH="$folder/venv/share/jupyter" IPYTHONDIR="$folder/ipython"
"$folder/venv/bin/python" "$folder/interrupt.py"
