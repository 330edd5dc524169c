"""HTTP from inside a sandbox to the host: through a real bridge, and against one that lies."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from pytest_super.kernel import http_requests as calls
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.http_requests import Answer, HttpChannel, HttpRequest, Reply
from pytest_super.kernel.incoming import Incoming
from pytest_super.kernel.inside import endpoint
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.kernel.schema import MAX_BODIES, PIECE
from tests.waiting import until

MIB = 2**20


def echo(call: HttpRequest) -> Reply:
    """What came, as it came."""
    return Reply(status=200, body=call.body or f"{call.method} {call.path}".encode(), type="text/plain")


class Host:
    """The host's side of an endpoint, whose answers a test sets."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.answer: Answer = echo
        self.url = kernel.serve(lambda call: self.answer(call), ["anthropic-beta"])
        self.place = urlsplit(self.url)

    def connect(self, timeout: float = 30.0) -> http.client.HTTPConnection:
        assert self.place.hostname is not None
        return http.client.HTTPConnection(self.place.hostname, self.place.port, timeout=timeout)

    def ask(
        self, body: bytes = b"", path: str = "/v1/x", method: str = "POST", **headers: str
    ) -> tuple[int, bytes]:
        connection = self.connect()
        try:
            connection.request(method, f"{self.place.path}{path}", body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def raw(self, data: bytes) -> socket.socket:
        """A connection on which so much was sent."""
        connection = socket.create_connection((self.place.hostname, self.place.port), timeout=30)
        connection.sendall(data)
        return connection

    def head(self, size: int, path: str = "/v1/x") -> bytes:
        return f"POST {self.place.path}{path} HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode()


@pytest.fixture(scope="module")
def module_host() -> Iterator[Host]:
    with started(LocalSandbox()) as kernel:
        yield Host(kernel)


@pytest.fixture
def host(module_host: Host) -> Host:
    module_host.answer = echo
    return module_host


class Held:
    """An answer that waits until the test lets it go; `leaves` counts the clients that left meanwhile."""

    def __init__(self) -> None:
        self.calls: list[HttpRequest] = []
        self.leaves = threading.Semaphore(0)
        self._go = threading.Event()

    def __call__(self, call: HttpRequest) -> Reply:
        call.when_gone(self.leaves.release)
        self.calls.append(call)
        self._go.wait(30)
        return Reply(status=200, body=b"held")

    def go(self) -> None:
        self._go.set()


# Through a bridge


def test_a_request_comes_with_its_method_path_and_body_and_nothing_else(host: Host) -> None:
    assert host.ask(method="GET", path="/v1/models?a=b") == (200, b"GET /v1/models?a=b")
    assert host.ask(b"\0\xff body", Authorization="Bearer sk-secret") == (200, b"\0\xff body")


def test_of_the_headers_those_that_were_asked_for_come_with_a_request(host: Host) -> None:
    host.answer = lambda call: Reply(status=200, body=json.dumps(dict(call.headers)).encode())

    def heard(**headers: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(host.ask(b"", **headers)[1])
        return found

    assert heard(**{"X-Other": "x"}) == {}
    assert heard(**{"Anthropic-Beta": "one,two", "X-Other": "x"}) == {"anthropic-beta": "one,two"}
    assert heard(**{"Anthropic-Beta": "x" * 5000}) == {"anthropic-beta": "x" * endpoint.LONGEST_HEADER}


def test_the_events_of_a_stream_arrive_one_by_one_and_the_connection_stays(host: Host) -> None:
    go = threading.Semaphore(0)

    def stream(call: HttpRequest) -> None:
        for number in range(3):
            assert go.acquire(timeout=30)
            call.relay(f"data: {number}\n\n".encode())

    host.answer = stream
    connection = host.connect()
    for _ in range(2):
        connection.request("POST", f"{host.place.path}/v1/x", b"{}")
        for number in range(3):
            go.release()
            if not number:
                response = connection.getresponse()
                assert response.getheader("Content-Type") == "text/event-stream"
            assert response.readline() == f"data: {number}\n".encode()
            assert response.readline() == b"\n"
        assert response.read() == b""
    connection.close()


@pytest.mark.parametrize("size", [1, PIECE, PIECE + 1, 5 * MIB])
def test_an_event_of_any_size_arrives_whole(host: Host, size: int) -> None:
    def stream(call: HttpRequest) -> None:
        call.relay(b"x" * size)
        call.relay(b"end")

    host.answer = stream
    assert host.ask(b"{}") == (200, b"x" * size + b"end")


def test_a_client_that_leaves_a_stream_ends_it(host: Host) -> None:
    ended = threading.Event()

    def stream(call: HttpRequest) -> None:
        call.when_gone(ended.set)
        while True:
            call.relay(b"data: on and on\n\n")

    host.answer = stream
    connection = host.connect()
    connection.request("POST", f"{host.place.path}/v1/x", b"{}")
    assert connection.getresponse().readline() == b"data: on and on\n"
    connection.close()
    assert ended.wait(30)
    host.answer = echo
    assert host.ask(b"next") == (200, b"next")


def test_code_in_a_cell_reaches_the_host(host: Host) -> None:
    code = f"import urllib.request as u; print(u.urlopen({host.url!r} + '/v1/models').read())"
    assert host.kernel.execute(code, timeout=30).text == "b'GET /v1/models'\n"


def test_one_connection_carries_many_requests_whose_status_and_type_are_the_hosts(host: Host) -> None:
    host.answer = lambda call: Reply(status=403, body=call.body, type="application/x")
    connection = host.connect()
    for number in range(20):
        connection.request("POST", f"{host.place.path}/v1/x", f"{number}")
        response = connection.getresponse()
        assert (response.status, response.getheader("Content-Type")) == (403, "application/x")
        assert response.read() == f"{number}".encode()
    connection.close()


@pytest.mark.parametrize("size", [1, endpoint.PIECE, endpoint.PIECE + 1, 10 * 10**6, endpoint.MAX_BODY])
def test_bodies_of_any_size_up_to_the_limit_go_both_ways(host: Host, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    status, answer = host.ask(body)
    assert (status, len(answer)) == (200, size)
    assert answer == body


def test_a_larger_request_is_refused_in_plain_words(host: Host) -> None:
    status, answer = host.ask(b"x" * (endpoint.MAX_BODY + 1))
    assert status == 413
    assert f"{endpoint.MAX_BODY} bytes" in json.loads(answer)["error"]["message"]


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [("/other/v1/x", "Content-Length: 4", 404), ("{secret}/v1/x", "Transfer-Encoding: chunked", 411)],
    ids=["without the secret", "of unknown length"],
)
def test_other_requests_are_refused(host: Host, path: str, header: str, status: int) -> None:
    head = f"POST {path.format(secret=host.place.path)} HTTP/1.1\r\n{header}\r\n\r\n"
    with host.raw(head.encode() + b"body") as connection:
        assert connection.recv(1000).startswith(f"HTTP/1.1 {status} ".encode())


def test_what_is_no_http_harms_nobody(host: Host) -> None:
    for data in (
        b"\0" * 100_000,
        b"GET\r\n\r\n",
        host.head(0).replace(b"Content-Length: 0", b"Content-Length: -1"),
    ):
        host.raw(data).close()
    assert host.ask(b"fine") == (200, b"fine")


def test_no_more_are_answered_at_once_than_the_limit(host: Host) -> None:
    held = host.answer = Held()
    with ThreadPoolExecutor(calls.MAX_ANSWERING + 8) as pool:
        asked = [pool.submit(host.ask) for _ in range(calls.MAX_ANSWERING + 8)]
        until(lambda: len(held.calls) == calls.MAX_ANSWERING)
        held.go()
        assert {future.result() for future in asked} == {(200, b"held")}
    assert len(held.calls) == calls.MAX_ANSWERING + 8


def test_connections_beyond_the_limit_do_not_keep_the_kernel_from_running(host: Host) -> None:
    opened = [host.raw(host.head(10)) for _ in range(endpoint.MAX_CONNECTIONS + 20)]
    assert host.kernel.execute("6 * 7", timeout=30).text == "42\n"
    for connection in opened:
        connection.close()
    # The endpoint notices each close in a thread of its own.
    until(lambda: host.ask(b"fine") == (200, b"fine"))


def test_a_client_that_leaves_while_it_waits_cancels_its_call(host: Host) -> None:
    held = host.answer = Held()
    connection = host.raw(host.head(0))
    until(lambda: held.calls)
    connection.close()
    assert held.leaves.acquire(timeout=30)
    held.go()


def test_a_client_that_reads_slowly_gets_all_and_holds_up_nobody(host: Host) -> None:
    host.answer = lambda call: Reply(status=200, body=b"z" * (10 * MIB if call.body else 1))
    slow = host.raw(host.head(1) + b"x")
    assert slow.recv(1)
    assert host.ask() == (200, b"z")
    assert host.kernel.execute("6 * 7", timeout=30).text == "42\n"
    received = 0
    while received < 10 * MIB:
        received += len(slow.recv(MIB))
    slow.close()


def test_output_files_and_requests_pass_side_by_side(host: Host) -> None:
    body = b"b" * (10 * MIB)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(host.ask, body) for _ in range(4)]
        written = pool.submit(host.kernel.files.write, "big", body)
        result = host.kernel.execute("for _ in range(20): print('o' * 10**6)", timeout=120)
        assert (result.outcome, result.omitted > 0) == ("ok", True)
        written.result()
        assert all(future.result() == (200, body) for future in asked)
    assert host.kernel.files.read("big") == body


def test_requests_are_answered_after_the_kernel_was_restarted(host: Host) -> None:
    host.kernel.restart()
    assert host.ask(b"fine") == (200, b"fine")


def test_nothing_is_answered_after_the_end() -> None:
    with started(LocalSandbox()) as own:
        ended = Host(own)
        held = ended.answer = Held()
        connection = ended.raw(ended.head(0))
        until(lambda: held.calls)
        own.stop_serving()
        assert held.leaves.acquire(timeout=30)
        held.go()
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.close()
        late = ended.connect(timeout=0.5)
        late.request("GET", f"{ended.place.path}/v1/x")
        with pytest.raises(TimeoutError):
            late.getresponse()
        late.close()


# A bridge that lies


class Liar:
    """The sandbox's side, by hand. `told` holds what it was told: what, fields, payload."""

    def __init__(self, answer: Answer = echo) -> None:
        self.told: list[tuple[str, dict[str, Any], bytes]] = []
        self.channel = HttpChannel(self._send_control, lost=lambda: RuntimeError("lost"))
        self.incoming = Incoming()
        self._arrive({"op": "listening", "port": 1}, b"")
        self.channel.listen(answer, [])
        self.told.clear()

    def _send_control(self, op: str, payload: bytes = b"", **fields: Any) -> None:
        self.told.append((fields.get("what", op), fields, payload))

    def _arrive(self, fields: dict[str, Any], payload: bytes) -> None:
        control = self.incoming.control([json.dumps(fields).encode(), payload])
        if control is not None:
            self.channel.receive(*control)

    def say(self, number: Any, what: Any, payload: bytes = b"", **fields: Any) -> None:
        self._arrive({"op": "call", "id": number, "what": what, **fields}, payload)

    def ask(self, number: Any, size: Any = 0, path: Any = "/v1/x") -> None:
        self.say(number, "ask", method="POST", path=path, size=size, headers={})

    def heard(self, what: str, number: int) -> Callable[[], bool]:
        return lambda: any(kind == what and fields["id"] == number for kind, fields, _ in self.told)

    @property
    def is_idle(self) -> bool:
        return not self.channel._requests


def test_a_request_that_is_none_is_dropped() -> None:
    liar = Liar()
    for number, size, path in [
        ("1", 0, "/"),
        (None, 0, "/"),
        (1, -1, "/"),
        (1, MAX_BODIES + 1, "/"),
        (1, 1e300, "/"),
        (1, 0, ["/"]),
        (1, 0, "/" * 10**6),
    ]:
        liar.ask(number, size, path)
    liar.say(1, "body", b"x")
    liar.say(1, {"what": 1})
    assert (liar.told, liar.is_idle) == ([], True)
    assert liar.incoming.take_dropped() == {"call": 7, "unreadable": 1}


def test_a_body_that_nobody_asked_for_ends_its_request() -> None:
    liar = Liar()
    liar.ask(1, size=2 * PIECE)
    until(liar.heard("more", 1))
    liar.say(1, "body", b"x" * (PIECE - 1))
    until(lambda: liar.is_idle)
    assert not liar.heard("answer", 1)()
    liar.ask(2, size=10)
    until(liar.heard("more", 2))
    liar.say(2, "body", b"x" * 10)
    liar.say(2, "body", b"x" * 10)
    until(lambda: liar.is_idle)


def test_requests_without_end_are_not_begun() -> None:
    held = Held()
    liar = Liar(held)
    for number in range(10 * calls.MAX_REQUESTS):
        liar.ask(number)
    assert len(liar.channel._requests) == calls.MAX_REQUESTS
    until(lambda: len(held.calls) == calls.MAX_ANSWERING)
    liar.channel.end()
    held.go()
    until(lambda: liar.is_idle)
    assert len(held.calls) == calls.MAX_ANSWERING


def test_bodies_wait_until_there_is_room_for_them() -> None:
    held = Held()
    liar = Liar(held)
    liar.ask(1, size=MAX_BODIES)
    until(liar.heard("more", 1))
    liar.ask(2, size=1)
    assert not liar.heard("more", 2)()
    liar.say(1, "gone")
    until(liar.heard("more", 2))
    liar.say(2, "body", b"x")
    until(lambda: held.calls)
    held.go()
    until(lambda: liar.is_idle)


def test_an_answer_goes_no_faster_than_it_is_asked_for() -> None:
    liar = Liar(lambda _: Reply(status=200, body=b"a" * (3 * PIECE)))
    liar.ask(1)
    until(liar.heard("answer", 1))
    assert not liar.heard("piece", 1)()
    liar.say(1, "more")
    until(liar.heard("piece", 1))
    assert sum(len(payload) for _, _, payload in liar.told) == 2 * PIECE
    liar.say(1, "gone")
    until(lambda: liar.is_idle)


def test_a_sandbox_that_ends_while_the_endpoint_opens_is_told() -> None:
    channel = HttpChannel(lambda *_, **__: channel.end(), lost=lambda: RuntimeError("lost"))
    with pytest.raises(RuntimeError, match="lost"):
        channel.listen(echo, [])
