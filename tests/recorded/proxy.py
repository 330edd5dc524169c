"""Runs a command in the sandbox, and writes down what it asks its model door: each request as a line of JSON.

python3 proxy.py FILE COMMAND...

Requires nothing but Python: tests.recorded.record sends it into a container.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

DOOR = urlsplit(os.environ.get("ANTHROPIC_BASE_URL", ""))
# Of one connection, or chosen anew by whoever sends it on.
OWN = ("connection", "transfer-encoding")


class Handler(BaseHTTPRequestHandler):
    """Writes down a request, then lets the door answer it."""

    protocol_version = "HTTP/1.1"

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        # Whatever the method.
        setattr(self, f"do_{self.command}", self.relay)
        return True

    def log_message(self, *_: object) -> None:
        """Print nothing: the program's output is read."""

    def relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.removeprefix(DOOR.path)
        asked = {"method": self.command, "path": path, "headers": self.headers.items(), "body": body.decode()}
        with LOCK, open(FILE, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asked)}\n")
        door = HTTPConnection(str(DOOR.hostname), DOOR.port or 80)
        door.request(self.command, self.path, body, dict(self.headers.items()))
        answer = door.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OWN:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := answer.read1(2**16):
            self.wfile.write(piece)
        self.close_connection = True


FILE, *COMMAND = sys.argv[1:]
LOCK = threading.Lock()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
here = f"127.0.0.1:{server.server_address[1]}"
environment = {name: value.replace(DOOR.netloc, here) for name, value in os.environ.items()}
sys.exit(subprocess.run(COMMAND, env=environment).returncode)
