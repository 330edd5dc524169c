"""Finding the engine and saying what is wrong with it; no engine is needed."""

import contextlib
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pytest_super.errors import EngineError
from pytest_super.kernel.providers.docker import engine
from pytest_super.kernel.providers.registry import find_provider


@pytest.fixture(autouse=True)
def _forget_the_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    engine.connect.cache_clear()
    yield
    engine.connect.cache_clear()


def trouble() -> str | None:
    return find_provider("docker").why_unavailable()


@contextlib.contextmanager
def engine_that_says(path: Path, version: dict[str, str]) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(version).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, *_: object) -> None:
            return

    with socketserver.UnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("unix:///nonexistent", "No such file or directory"),
        ("unix://unheard", "Connection refused"),
        ("tcp://127.0.0.1:9", "Connection refused"),
        ("tcp://engine:http", "Port could not be cast to integer value"),
    ],
)
def test_an_unreachable_engine_is_one_message_with_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", url)
    with socket.socket(socket.AF_UNIX) as without_listener:
        without_listener.bind("unheard")
        with pytest.raises(EngineError) as caught:
            engine.connect()
    text = str(caught.value)
    assert text.startswith(f"no container engine answers at {url} (")
    for words in (reason, "systemctl start docker", "DOCKER_HOST", "--super-sandbox=local"):
        assert words in text
    assert "\n" not in text
    assert trouble() == text


def test_an_engine_elsewhere_or_forbidden_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = str(engine.no_engine(PermissionError(13, "Permission denied")))
    assert text.startswith("no permission")
    assert "usermod -aG docker" in text
    monkeypatch.setenv("DOCKER_HOST", "ssh://away")
    assert str(trouble()).startswith("DOCKER_HOST=ssh://away: ")
    assert "--super-machines=N*ssh://HOST" in str(trouble())


def test_an_old_engine_is_refused_and_another_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
    with (
        engine_that_says(tmp_path / "s", {"ApiVersion": "1.39"}),
        pytest.raises(EngineError, match="too old"),
    ):
        engine.connect()
    (tmp_path / "s").unlink()
    with engine_that_says(tmp_path / "s", {"ApiVersion": "1.41"}):
        assert trouble() is None
    assert trouble() is None
    assert engine.connect() is engine.connect()
    engine.connect().close()


def test_without_an_engine_docker_py_is_not_even_imported() -> None:
    code = (
        "import sys; from pytest_super.kernel.providers.registry import find_provider; "
        "from pytest_super.kernel.sandbox import SandboxSettings; "
        "assert find_provider('docker').why_unavailable(); "
        "assert 'docker' not in sys.modules"
    )
    environment = dict(os.environ, DOCKER_HOST="unix:///nonexistent")
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_the_socket_of_a_rootless_engine_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "podman").mkdir()
    found = tmp_path / "podman" / "podman.sock"
    found.touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths = [path for path in engine.socket_paths() if path != "/var/run/docker.sock"]
    monkeypatch.setattr(engine, "socket_paths", lambda: paths)
    assert engine.engine_url() == f"unix://{found}"


@pytest.mark.parametrize(
    ("is_there", "message"),
    [(True, "the engine failed to dance: gone"), (False, "no container engine answers at .*: start one")],
)
def test_transport_errors_are_the_engines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool, message: str
) -> None:
    """One that is gone ends the run: every further trial would fail alike."""
    import requests

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix://engine")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("engine")
        if is_there:
            listener.listen()
        with pytest.raises(EngineError, match=message) as raised, engine.engine_errors("dance"):
            raise requests.ConnectionError("gone")
    assert raised.value.is_final is not is_there
