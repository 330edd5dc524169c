"""docker-py's adapter for unix sockets, which here closes a socket that cannot be connected."""

from __future__ import annotations

import socket
from typing import Any

from docker.transport import UnixHTTPAdapter
from docker.transport.unixconn import UnixHTTPConnection


class Connection(UnixHTTPConnection):
    def connect(self) -> None:
        # Before it is connected: if that fails, urllib3 closes what is here. docker-py sets it afterwards.
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.unix_socket)


class UnixAdapter(UnixHTTPAdapter):
    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        pool: Any = super().get_connection(url, proxies)
        pool._new_conn = lambda: Connection(url, self.socket_path, self.timeout)
        return pool
