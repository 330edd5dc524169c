"""Finding the engine and saying what is wrong with it; no engine is needed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import EngineError
from pytest_super.kernel.providers.docker import engine
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import SandboxSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forget_the_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    engine.client_of.cache_clear()
    engine.gone.clear()
    yield
    engine.client_of.cache_clear()


def trouble() -> str | None:
    return find_provider("docker").why_unavailable(SandboxSettings())


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


def named(*engines: str) -> str | None:
    return find_provider("docker").why_unavailable(SandboxSettings(engines=engines))


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A docker context for the socket `s`."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    folder = tmp_path / "docker/contexts/meta" / hashlib.sha256(b"away").hexdigest()
    folder.mkdir(parents=True)
    endpoints = {"docker": {"Host": f"unix://{tmp_path}/s", "SkipTLSVerify": False}}
    (folder / "meta.json").write_text(json.dumps({"Name": "away", "Metadata": {}, "Endpoints": endpoints}))
    (tmp_path / "docker/config.json").write_text("{}")
    return "away"


def test_an_engine_is_named_by_its_url_or_a_context_of_docker(context: str, tmp_path: Path) -> None:
    with engine_that_says(tmp_path / "s", {"ApiVersion": "1.41"}):
        assert named(context, f"unix://{tmp_path}/s") is None
        engine.connect(context).close()
    for name in ("moon", "http://moon", "away:2375"):
        assert named(name) == (
            f"--super-engine={name} is neither the name of a docker context (`docker context ls`, and a "
            "config.json in its folder) nor a URL that begins with ssh://, unix://, tcp://"
        )


def test_one_of_several_engines_that_does_not_answer_is_named(context: str, tmp_path: Path) -> None:
    with engine_that_says(tmp_path / "s", {"ApiVersion": "1.41"}):
        words = named(context, "unix:///nonexistent")
        engine.connect(context).close()
    assert str(words).startswith("no container engine answers at unix:///nonexistent (No such file or dir")
    assert "leave it out of --super-engine" in str(words)


def test_only_the_loss_of_the_only_engine_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    for name, is_final in {"": True, "unix:///nonexistent": False}.items():
        with pytest.raises(EngineError) as raised, engine.engine_errors("dance", name):
            raise OSError("gone")
        assert raised.value.is_final is is_final


def test_a_forbidden_socket_says_how_to_get_permission() -> None:
    text = str(engine.no_engine("", PermissionError(13, "Permission denied")))
    assert text.startswith("no permission")
    assert "usermod -aG docker" in text


def test_an_old_engine_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
    with (
        engine_that_says(tmp_path / "s", {"ApiVersion": "1.39"}),
        pytest.raises(EngineError, match="too old"),
    ):
        engine.connect()
    with engine_that_says(tmp_path / "t", {"ApiVersion": "1.39"}):
        assert f"unix://{tmp_path}/t is too old" in str(named(f"unix://{tmp_path}/t"))


def test_an_engine_that_answers_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
    with engine_that_says(tmp_path / "s", {"ApiVersion": "1.41"}):
        assert trouble() is None
    assert trouble() is None
    assert engine.connect() is engine.connect()
    engine.connect().close()


def test_without_an_engine_docker_py_is_not_even_imported() -> None:
    code = (
        "import sys; from pytest_super.kernel.providers.registry import find_provider; "
        "from pytest_super.kernel.sandbox import SandboxSettings; "
        "assert find_provider('docker').why_unavailable(SandboxSettings()); "
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
