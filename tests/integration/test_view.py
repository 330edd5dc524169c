"""The page of a run: written at its end, and served by `pytest-super view`."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pytest_super.report.page.interval  # noqa: F401

# Here, because pytester removes modules that a test imports, and numpy refuses to be imported again.
from pytest_super.store.trajectory import step_to_data
from tests.browser.conftest import served as served_at
from tests.integration.conftest import Project
from tests.stored import a_result, a_run, a_step, add_trial

INTERRUPTED = """
def pytest_runtest_logreport(report):
    if report.when == "call":
        raise KeyboardInterrupt
"""
SUPER = (sys.executable, "-c", "import sys; from pytest_super.cli import main; sys.exit(main(sys.argv[1:]))")


# --super-html


def test_a_run_writes_its_page(project: Project) -> None:
    project.add_task("right", landmarks=["half way", "never"])
    project.add_task("wrong")
    project.run("--super-html=out/page.html")
    page = (project.path / "out/page.html").read_text()
    assert f"<h1>Run {project.latest.resolve().name}</h1>" in page
    assert "not 42" in page
    assert '<mark title="landmark 1">half way</mark>' in page
    assert f"../.super/runs/{project.latest.resolve().name}/trials/wrong/1.0/trajectory.jsonl" in page


@pytest.mark.slow
def test_a_run_that_is_interrupted_writes_its_page(project: Project) -> None:
    project.add_to_conftest(INTERRUPTED)
    project.add_task("a")
    project.add_task("b")
    ran = project.run_in_subprocess("--super-html=page.html")
    assert ran.ret == pytest.ExitCode.INTERRUPTED
    page = (project.path / "page.html").read_text()
    assert page.count('<details class="trial"') == 1


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("file/page.html", "cannot be written: Not a directory"),
        ("link", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("locked/new/page.html", "cannot be written: no permission"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_before_the_run(
    project: Project, page: str, message: str
) -> None:
    # All of them in the project's own folder: code that does not refuse a path replaces what is there.
    (project.path / "locked").mkdir(mode=0o500)
    if page.startswith("locked") and os.access(project.path / "locked", os.W_OK):
        pytest.skip("this user may write anywhere")
    project.add_task("a")
    project.write("file", "")
    (project.path / "folder").mkdir()
    (project.path / "link").symlink_to("folder")
    os.mkfifo(project.path / "pipe")
    ran = project.run(f"--super-html={page}")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"*--super-html: *{message}*"])
    assert not (project.path / ".super").exists()


def test_a_page_goes_where_a_link_leads_and_the_link_stays(project: Project) -> None:
    project.add_task("a")
    (project.path / "page.html").symlink_to(".super/runs/latest/real.html")
    project.run("--super-html=page.html")
    assert (project.path / "page.html").is_symlink()
    assert "<h1>Run " in (project.latest / "real.html").read_text()


# pytest-super view


@contextmanager
def served(*runs: Path) -> Iterator[tuple[str, int]]:
    """The host and the port of a server in this process."""
    with served_at(*runs) as url:
        yield "127.0.0.1", int(url.rstrip("/").rpartition(":")[2])


@contextmanager
def viewing(cwd: Path) -> Iterator[tuple[str, int]]:
    """The host and the port of the command's server."""
    command = [*SUPER, "view"]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0]
            assert url.startswith("http://127.0.0.1:")
            yield "127.0.0.1", int(url.rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


Answer = tuple[int, dict[str, str], str]


def get(
    server: tuple[str, int], path: str, *, method: str = "GET", headers: dict[str, str] | None = None
) -> Answer:
    connection = http.client.HTTPConnection(*server, timeout=20)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    tmp_path = tmp_path_factory.mktemp("viewed")
    run = a_run(tmp_path / ".super")
    add_trial(run, a_result(), [a_step(observation="<seen>")])
    with viewing(cwd=tmp_path) as server:
        yield server


def test_the_newest_run_is_served_with_its_trials(one_run: tuple[str, int]) -> None:
    status, headers, page = get(one_run, "/")
    assert status == 200
    assert "<h1>Run 20261123-101500-ab12</h1>" in page
    assert 'href="/0/trials/mean/1.0"' in page
    _, _, trial = get(one_run, "/0/trials/mean/1.0")
    assert "&lt;seen&gt;" in trial
    status, headers, steps = get(one_run, "/0/trials/mean/1.0/trajectory.jsonl")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert "<seen>" in steps
    for _, headers, _ in (get(one_run, "/"), get(one_run, "/0/trials/mean/1.0/trajectory.jsonl")):
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/1/",
        "/0/trials/mean/2.0",
        "/0/trials/mean/1.0/result.json",
        "/0/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/0/trials/mean/1.0/../../../run.json",
        "/%00",
    ],
)
def test_nothing_but_known_pages_is_served(one_run: tuple[str, int], path: str) -> None:
    status, headers, text = get(one_run, path)
    assert (status, text) == (404, "Not Found\n")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_an_address_that_is_none_is_refused(one_run: tuple[str, int]) -> None:
    with socket.create_connection(one_run, timeout=20) as client:
        client.sendall(f"GET http://[ HTTP/1.0\r\nHost: localhost:{one_run[1]}\r\n\r\n".encode())
        assert client.makefile("rb").readline().split()[1] == b"400"


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """One trial has a folder in place of its steps, the other one is a link out of the run."""
    tmp_path = tmp_path_factory.mktemp("odd")
    run = a_run(tmp_path / ".super")
    folders = {id: add_trial(run, a_result(id)) for id in ("folder", "linked")}
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "trajectory.jsonl").write_text(f"{json.dumps(step_to_data(a_step(observation='secret')))}\n")
    (folders["folder"] / "trajectory.jsonl").unlink()
    (folders["folder"] / "trajectory.jsonl").mkdir()
    shutil.rmtree(folders["linked"])
    folders["linked"].symlink_to(outside)
    with served(run.path) as server:
        yield server


@pytest.mark.parametrize(
    ("id", "reason"), [("folder", "Is a directory"), ("linked", "a link leads out of the run")]
)
def test_what_is_no_file_of_the_run_is_not_served(odd_files: tuple[str, int], id: str, reason: str) -> None:
    status, _, text = get(odd_files, f"/0/trials/{id}/1.0/trajectory.jsonl")
    assert (status, text) == (404, "Not Found\n")
    status, _, page = get(odd_files, f"/0/trials/{id}/1.0")
    assert status == 200
    assert f"trajectory.jsonl cannot be read: {reason}" in page
    assert "secret" not in page


@pytest.mark.parametrize("method", ["POST", "HEAD", "<b>"])
def test_only_get_is_answered(one_run: tuple[str, int], method: str) -> None:
    status, headers, text = get(one_run, "/", method=method)
    assert status == 501
    assert "<" not in text
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("host", ["evil.example:{port}", "127.0.0.1", ""])
def test_a_request_for_another_host_is_refused(one_run: tuple[str, int], host: str) -> None:
    status, _, text = get(one_run, "/", headers={"Host": host.format(port=one_run[1])})
    assert (status, text) == (403, "Forbidden\n")
    assert get(one_run, "/", headers={"Host": f"localhost:{one_run[1]}"})[0] == 200


def test_a_page_is_only_sent_again_when_its_run_has_changed(tmp_path: Path) -> None:
    run = a_run(tmp_path / ".super")
    add_trial(run, a_result("a"))
    with served(run.path) as server:
        _, _, page = get(server, "/")
        version = page.split('data-version="')[1].split('"')[0].replace("&#34;", '"')
        known = {"If-None-Match": version}
        assert get(server, "/", headers=known)[0] == 304
        add_trial(run, a_result("b"))
        status, _, page = get(server, "/", headers=known)
        assert status == 200
        assert "/0/trials/b/1.0" in page


def test_two_runs_are_shown_next_to_each_other(tmp_path: Path) -> None:
    for name, value in (("one", 1.0), ("two", 0.0)):
        run = a_run(tmp_path / ".super", name)
        add_trial(run, a_result(accuracy=value), [a_step(observation=f"of {name}")])
    with served(*(tmp_path / ".super/runs" / name for name in ("one", "two"))) as server:
        _, _, page = get(server, "/")
        assert "<h2>Tasks</h2>" in page
        assert "lost" in page
        for number, name in enumerate(("one", "two")):
            assert f'<a href="/{number}/trials/mean/1.0">{1 - number:.3f}</a>' in page
            assert f"of {name}" in get(server, f"/{number}/trials/mean/1.0")[2]
            assert f"<h1>Run {name}</h1>" in get(server, f"/{number}/")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["n" * 300], "there is no run nnn"), (["a", "b", "c"], "name one run, or two")],
)
def test_a_run_that_is_not_there_is_one_message(tmp_path: Path, arguments: list[str], message: str) -> None:
    command = [*SUPER, "view", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
