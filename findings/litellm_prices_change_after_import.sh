#!/usr/bin/env bash
# litellm 1.110.2, Python 3.11, Linux.
#
# `import litellm` asks a server for the current prices. If that does not answer (here: status 503 once), the import goes
# on with the prices in the package, and a daemon thread asks twice more: after some seconds, or after what Retry-After
# says. What it gets replaces the prices of the running process. So one process can price the same usage in two ways, by
# when it asks. LITELLM_LOCAL_MODEL_COST_MAP=True prevents it.
#
# Seen: right after the import 1,000 prompt tokens of gpt-4o cost $0.0025; once the thread has its answer, in which the
# price is ten times that, $0.025.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2> /dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile litellm==1.110.2
cd "$folder"
cat > server.py <<'PY'
import http.server, json, pathlib, sys
prices = json.loads(pathlib.Path(sys.argv[1]).read_text())
prices["gpt-4o"]["input_cost_per_token"] *= 10
answers = [(503, b""), (200, json.dumps(prices).encode())]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        # Longer than the import takes on a busy machine.
        self.send_header("Retry-After", "12")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
pathlib.Path("port").write_text(str(server.server_port))
server.serve_forever()
PY
cat > asks.py <<'PY'
import threading

import litellm

def cost():
    return round(litellm.cost_per_token("gpt-4o", prompt_tokens=1000, completion_tokens=0)[0], 6)

first = cost()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(30)
print(first, cost())
PY
package=$("$folder/venv/bin/python" -c 'import importlib.util as u; print(u.find_spec("litellm").submodule_search_locations[0])')
"$folder/venv/bin/python" server.py "$package/model_prices_and_context_window_backup.json" &
server=$!
until [ -s port ]; do sleep 0.1; done
export LITELLM_MODEL_COST_MAP_URL=http://127.0.0.1:$(cat port)/prices.json no_proxy=127.0.0.1
asked=$("$folder/venv/bin/python" asks.py 2> /dev/null)
local=$(LITELLM_LOCAL_MODEL_COST_MAP=True "$folder/venv/bin/python" asks.py 2> /dev/null)
echo "asked: $asked; with the package's prices alone: $local"
[ "$asked" = "0.0025 0.025" ] && [ "$local" = "0.0025 0.0025" ]
