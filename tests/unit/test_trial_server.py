"""The trial's actions by HTTP: what is answered to whom, and what becomes a step."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.kernel.conformance.support import until
from pytest_super.kernel.http_requests import HttpRequest, Reply
from pytest_super.kernel.inside import endpoint
from pytest_super.programs.trial_endpoint import FIELDS, TrialEndpoint, read_fields
from pytest_super.programs.trial_server import TrialServer
from pytest_super.store.trajectory import Action, Step
from pytest_super.trial.observation import ONLY_SUBMIT
from tests.unit.test_trial import TrialBench

ASK = {"messages": [{"role": "user", "content": "go on"}]}
Answer = tuple[int, Any]


class Hello:
    """A model behind the gateway."""

    def forward(self, *_: Any) -> dict[str, Any]:
        used = {"prompt_tokens": 8, "completion_tokens": 2, "cost_usd": None}
        body = {"choices": [{"message": {"content": "hello"}}]}
        return {"body": body, "removed": [], "exchange": {}, "seconds": 0.0, "started": "", **used}


class Beside:
    """A program's side of a trial on a fake kernel. The test's own thread takes the actions."""

    def __init__(self, bench: TrialBench) -> None:
        self.bench = bench
        self.endpoint = TrialEndpoint(bench.trial)
        self.server = TrialServer(self.answer)
        self.heard: list[HttpRequest] = []

    def answer(self, call: HttpRequest) -> Reply | None:
        self.heard.append(call)
        return self.endpoint.answer(call)

    def together(self, *requests: Callable[[], Answer]) -> list[Answer]:
        """The answers to requests that are under way at once."""
        with ThreadPoolExecutor() as pool:
            asked = [pool.submit(request) for request in requests]
            while not all(future.done() for future in asked):
                self.endpoint.take(0.01)
            return [future.result() for future in asked]

    def send(self, path: str, body: bytes | None = None, *, method: str = "", **headers: str) -> Answer:
        connection = self.connect()
        headers = {"Authorization": f"Bearer {self.server.token}"} | headers
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPConnection:
        place = urlsplit(self.server.url)
        assert place.hostname is not None
        return http.client.HTTPConnection(place.hostname, place.port, timeout=30)

    def ask(self, path: str, body: bytes | None = None, **options: str) -> Answer:
        (answer,) = self.together(lambda: self.send(path, body, **options))
        return answer

    def act(self, name: str, **fields: Any) -> Answer:
        return self.ask(f"/trial/{name}", json.dumps(fields).encode())


@contextmanager
def beside(**options: Any) -> Iterator[Beside]:
    program = Beside(TrialBench(**options))
    with program.server:
        yield program
        program.endpoint.close()


@pytest.fixture
def program() -> Iterator[Beside]:
    with beside() as one:
        yield one


@pytest.fixture
def asking() -> Iterator[Beside]:
    """A program with a model."""
    with beside(model=Hello()) as one:
        yield one


def test_each_action_is_a_step_and_the_answer_tells_it(program: Beside) -> None:
    program.bench.kernel.files.write("a.txt", b"x\n")
    assert program.act("execute", code="n = 6", thought="set") == (
        200,
        {"number": 1, "observation": "", "outcome": "ok", "stop_reason": None},
    )
    assert program.act("edit", path="a.txt", before="x", after="y")[1]["outcome"] == "ok"
    assert program.act("continue_wait")[1]["observation"] == "No cell is running."
    assert program.ask("/trial/interrupt", b"")[1]["outcome"] == "error"
    status, last = program.act("submit", answer={"n": 42}, thought="done")
    assert (status, last["number"], last["stop_reason"]) == (200, 5, "submitted")
    taken = [step.action.type for step in program.bench.recorded]
    assert taken == ["execute", "edit", "continue_wait", "interrupt", "submit"]
    assert [step.thought for step in program.bench.recorded] == ["set", "", "", "", "done"]
    assert program.bench.kernel.files.read("a.txt") == b"y\n"
    assert program.bench.trial.submission == {"n": 42}


def test_a_file_is_read_up_to_a_size(program: Beside) -> None:
    files = {"a.txt": b"caf\xc3\xa9 \xff\n", "whole": b"x" * 100_000, "large": b"x" * 100_001}
    for name, data in files.items():
        program.bench.kernel.files.write(name, data)
    assert program.act("read", path="a.txt")[1]["observation"] == "café \ufffd\n"
    assert program.act("read", path="whole")[1]["observation"] == "x" * 100_000
    for path, why in {"large": "has more than 100,000 bytes", "none": "No such file"}.items():
        step = program.act("read", path=path)[1]
        assert (step["outcome"], why in step["observation"]) == ("error", True)
    assert program.bench.recorded[0].action == Action(type="read", content="a.txt")


def test_the_task_is_told_and_nothing_gold(program: Beside) -> None:
    status, task = program.ask("/trial")
    assert status == 200
    assert (task["id"], task["query"], task["limits"]["cell"]) == ("t", "do it", 300.0)
    told = {"id", "set", "category", "query", "repository", "folder", "limits"}
    assert task.keys() == told | {"missing", "experiments", "paper"}


def test_the_history_holds_what_was_pre_executed(program: Beside) -> None:
    first = Step(number=1, origin="pre_execute", action=Action(type="execute", content="x = 1"))
    program.bench.trial.add_pre_executed(first)
    program.act("execute", code="x")
    steps = program.ask("/trial/history")[1]["steps"]
    told = [(step["origin"], step["action"]["content"]) for step in steps]
    assert told == [("pre_execute", "x = 1"), ("agent", "x")]


@pytest.mark.parametrize(
    "header", ["", "Bearer ", "Bearer wrong", "Bearer OTHER", "Basic TOKEN", "TOKEN", "Bearer TOKENx"]
)
@pytest.mark.parametrize("path", ["/trial", "/trial/execute", "/v1/models", "/nowhere"])
def test_nobody_without_the_trials_own_token_gets_anything(program: Beside, path: str, header: str) -> None:
    with beside() as other:
        told = header.replace("TOKEN", program.server.token).replace("OTHER", other.server.token)
    assert program.ask(path, b'{"code": "1"}', Authorization=told)[0] == 401
    assert not program.bench.recorded


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("execute", b"", "`code` is missing"),
        ("execute", b"{", "not JSON"),
        ("execute", b"[" * 100_000, "not JSON"),
        ("execute", b"\xff", "not JSON"),
        ("execute", b"[1]", "a JSON object"),
        ("execute", b'{"code": 1}', "`code` must be a string"),
        ("execute", b'{"code": "1", "thought": null}', "`thought` must be a string"),
        ("execute", b'{"code": "1", "cod": "2"}', "unknown field `cod`: use code, thought"),
        ("edit", b'{"path": "a", "before": "x"}', "`after` is missing"),
        ("submit", b"{}", "`answer` is missing"),
        ("continue_wait", b'{"code": "1"}', "unknown field `code`"),
    ],
)
def test_a_body_that_is_wrong_is_told_so_and_is_no_step(
    program: Beside, name: str, body: bytes, words: str
) -> None:
    status, answer = program.ask(f"/trial/{name}", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert words in answer["error"]["message"]
    assert not program.bench.recorded


def test_what_is_no_action_is_told_what_there_is(program: Beside) -> None:
    status, answer = program.ask("/trial/dance", b"{}")
    assert status == 404
    assert all(f"/trial/{name}" in answer["error"]["message"] for name in FIELDS)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/trial/execute"), ("POST", "/trial"), ("PUT", "/trial/submit"), ("DELETE", "/trial")],
)
def test_a_wrong_method_is_refused(program: Beside, method: str, path: str) -> None:
    assert program.ask(path, b"{}", method=method)[0] == 405


def test_a_body_has_a_bound(program: Beside) -> None:
    body = json.dumps({"code": "x" * 16 * 2**20}).encode()
    assert program.ask("/trial/execute", body)[0] == 413
    assert not program.bench.recorded


def test_after_the_trials_end_everything_is_gone(program: Beside) -> None:
    program.act("submit", answer=1)
    for path, body in [("/trial", None), ("/trial/submit", b'{"answer": 2}'), ("/v1/models", None)]:
        status, answer = program.ask(path, body)
        assert (status, answer["error"]["code"], answer["stop_reason"]) == (410, "trial_ended", "submitted")
    assert program.bench.trial.submission == 1


def test_an_action_that_spends_the_budget_is_a_step_and_the_end() -> None:
    with beside(compute=30.0) as program:
        status, answer = program.act("execute", code="sleep(60)")
        assert (status, answer["stop_reason"]) == (410, "compute")
    assert [step.outcome for step in program.bench.recorded] == ["timed_out"]


def test_a_failure_under_the_trial_ends_it_for_the_program_too(program: Beside) -> None:
    status, answer = program.act("execute", code="fail_engine()")
    assert (status, answer["stop_reason"]) == (410, "error")
    assert program.bench.trial.failure is not None


def test_the_model_is_asked_and_charged(asking: Beside) -> None:
    status, answer = asking.ask("/v1/chat/completions", json.dumps(ASK).encode())
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "hello")
    assert asking.bench.budget.prompt_tokens > 0


def test_a_program_can_ask_and_submit_after_compute_ran_out_between_actions() -> None:
    with beside(model=Hello(), compute=100) as program:
        program.bench.kernel.work(100, 100)
        assert not program.endpoint.is_over()
        assert program.act("execute", code="1")[1]["observation"] == ONLY_SUBMIT
        assert program.ask("/v1/chat/completions", json.dumps(ASK).encode())[0] == 200
        assert program.act("submit", answer=42)[1]["stop_reason"] == "submitted"


def test_a_spent_budget_ends_the_trial_whoever_spent_it() -> None:
    with beside(tokens=2, model=Hello()) as program:
        assert program.ask("/v1/chat/completions", json.dumps(ASK).encode())[0] == 403
        assert program.endpoint.is_over()
        assert program.act("execute", code="1")[1]["stop_reason"] == "tokens"


def test_without_a_model_the_answer_says_how_to_name_one(program: Beside) -> None:
    status, answer = program.ask("/v1/chat/completions", json.dumps(ASK).encode())
    assert (status, answer["error"]["code"]) == (404, "no_model")
    assert "--super-model" in answer["error"]["message"]


def test_an_action_whose_client_has_left_before_its_turn_is_not_done(program: Beside) -> None:
    body = json.dumps({"code": "x = 1"})
    head = f"POST /trial/execute HTTP/1.1\r\nAuthorization: Bearer {program.server.token}\r\n"
    place = urlsplit(program.server.url)
    with socket.create_connection((place.hostname, place.port)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert until(lambda: bool(program.heard), 30)
    assert until(lambda: program.heard[0].is_gone, 30)
    program.endpoint.take(0)
    assert not program.bench.recorded


SLOW = [b"", b"GET", b"GET /trial HTTP/1.1\r\nAuthor", b"GET /trial HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]


@contextmanager
def strangers(program: Beside) -> Iterator[None]:
    """More connections than are served at once, none of which has shown the token."""
    place = urlsplit(program.server.url)
    with ExitStack() as stack:
        for number in range(2 * endpoint.MAX_UNAUTHENTICATED):
            client = stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=30))
            client.sendall(SLOW[number % len(SLOW)])
        yield


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection is closed for being idle."""
    monkeypatch.setattr(endpoint.EndpointHandler, "timeout", 600.0)
    monkeypatch.setattr(endpoint, "IDLE_SECONDS", 600.0)


@pytest.mark.usefixtures("patient")
def test_connections_without_the_token_keep_nobody_waiting(program: Beside) -> None:
    with strangers(program):
        assert program.ask("/trial")[0] == 200
        assert program.act("execute", code="1")[1]["outcome"] == "ok"


@pytest.mark.usefixtures("patient")
def test_the_server_ends_whoever_is_connected() -> None:
    program = Beside(TrialBench())
    others, ended = threading.active_count(), threading.Event()

    def run() -> None:
        with program.server, strangers(program):
            until(lambda: threading.active_count() - others >= endpoint.MAX_UNAUTHENTICATED, 30)
            program.server.__exit__(None, None, None)
            ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert ended.wait(30)


def test_what_waits_when_the_door_closes_is_answered(program: Beside) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(program.send, "/trial/execute", b'{"code": "1"}') for _ in range(4)]
        assert until(lambda: len(program.heard) == 4, 30)
        program.endpoint.close()
        assert [future.result()[0] for future in waiting] == [410] * 4
    assert not program.bench.recorded


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["code", "thought", "answer", "path", "before", "after", "x"])


@given(st.sampled_from(sorted(FIELDS)), st.dictionaries(NAMES, JSON) | JSON)
def test_a_body_is_taken_as_it_is_or_not_at_all(name: str, value: Any) -> None:
    wanted = FIELDS[name]
    is_whole = isinstance(value, dict) and wanted.keys() <= value.keys() <= {*wanted, "thought"}
    is_right = is_whole and all(isinstance(value[key], str) for key in value if key != "answer")
    with nullcontext() if is_right else pytest.raises(ValueError):  # noqa: PT011
        assert read_fields(json.dumps(value).encode(), wanted) == value
