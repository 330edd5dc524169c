import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import InfrastructureError, TaskFileError
from pytest_super.sources import fetch
from pytest_super.sources.index import DEFAULT_INDEX, parse_page, read_pip_settings
from pytest_super.tasks.task import Repository

BORUTA = "06d42882a57a4db912e5b7b0b887427fbb6ee7e331d0c7c1f7c06a6658c99831"


class PackageIndex:
    """A package index on this machine that serves what a test puts into `pages`."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.requests: list[tuple[str, str | None]] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests.append((self.path, self.headers["Authorization"]))
                kind, body = index.pages.get(self.path, ("text/plain", b""))
                status = 500 if kind.startswith("500") else 200
                self.send_response(status if self.path in index.pages else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def put(self, name: str, content: bytes, *, project: str = "p", fragment: str | None = None) -> None:
        """Offer a file; the fragment of its link declares the digest."""
        fragment = f"#sha256={digest(content)}" if fragment is None else fragment
        page = f'<!DOCTYPE html><a href="../../files/{name}{fragment}">{name}</a>'
        self.pages[f"/files/{name}"] = ("application/octet-stream", content)
        self.pages[f"/simple/{project}/"] = ("text/html; charset=utf-8", page.encode())


@pytest.fixture
def no_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, no_pip_settings: None) -> Iterator[PackageIndex]:  # noqa: ARG001
    """The one index that pip is configured for."""
    # Asking pip takes a third of a second; what it says is tested by itself.
    monkeypatch.setattr("pytest_super.sources.index._config_list", dict)
    package_index = PackageIndex()
    monkeypatch.setenv("PIP_INDEX_URL", f"{package_index.url}/simple/")
    thread = threading.Thread(target=package_index.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield package_index
    package_index.server.shutdown()
    package_index.server.server_close()
    thread.join()


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Path]:
    """Fetch for a task file in the folder `tasks`, with a cache of the test's own."""
    (tmp_path / "tasks").mkdir(exist_ok=True)
    return lambda **fields: fetch(Repository(**fields), base=tmp_path / "tasks", cache=tmp_path / "cache")


def tar(files: dict[str, str], *extra: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        for member in extra:
            archive.addfile(member)
    return buffer.getvalue()


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


SETUP = "raise SystemExit('a setup.py was run')"
RELEASE = tar({"My.Project-1.0/setup.py": SETUP, "My.Project-1.0/run.py": "print(1)"})


def first_of(content: bytes, project: str = "p") -> dict[str, Any]:
    """The fields that pin a project's version 1."""
    return {"pypi": project, "version": "1", "sha256": digest(content)}


@pytest.mark.parametrize("fragment", [None, ""], ids=["declared", "undeclared"])
def test_a_release_is_fetched_once_from_the_index(
    index: PackageIndex, get: Callable[..., Path], fragment: str | None
) -> None:
    index.put("My.Project-1.tar.gz", RELEASE, project="my-project", fragment=fragment)
    folder = get(**first_of(RELEASE, "My_Project"))
    assert folder.name == "My.Project-1.0"
    assert (folder / "run.py").read_text() == "print(1)"
    index.pages.clear()
    assert get(**first_of(RELEASE, "My_Project")) == folder


def test_a_zip_is_a_source_distribution_too(index: PackageIndex, get: Callable[..., Path]) -> None:
    content = zipped({"p-1/run.py": "1"})
    index.put("p-1.zip", content)
    assert (get(**first_of(content)) / "run.py").read_text() == "1"


def test_credentials_of_the_index_are_used_and_not_shown(
    index: PackageIndex, get: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = index.url.replace("://", "://me:secret@")
    monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
    index.put("p-1.tar.gz", RELEASE)
    page = index.pages["/simple/p/"][1].replace(b"../../files", f"{index.url}/files".encode())
    index.pages["/simple/p/"] = (index.pages["/simple/p/"][0], page)
    get(**first_of(RELEASE))
    assert [authorization for _, authorization in index.requests] == ["Basic bWU6c2VjcmV0"] * 2
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    with pytest.raises(InfrastructureError) as caught:
        get(**first_of(b""))
    assert "secret" not in str(caught.value)


def test_a_further_index_is_asked_where_the_first_has_it_not(
    index: PackageIndex, get: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "simple" / "p").mkdir(parents=True)
    (tmp_path / "p-1.tar.gz").write_bytes(RELEASE)
    page = f'<a href="../../p-1.tar.gz#sha256={digest(RELEASE)}">p-1.tar.gz</a>'
    (tmp_path / "simple" / "p" / "index.html").write_text(page)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{index.url}/nothing {(tmp_path / 'simple').as_uri()}")
    assert (get(**first_of(RELEASE)) / "run.py").is_file()


@pytest.mark.parametrize(
    "fragment", [None, "", f"#sha256={'0' * 64}"], ids=["declared", "undeclared", "declared wrongly"]
)
def test_another_digest_names_both(
    index: PackageIndex, get: Callable[..., Path], tmp_path: Path, fragment: str | None
) -> None:
    index.put("p-1.tar.gz", RELEASE, fragment=fragment)
    with pytest.raises(InfrastructureError, match=rf"{digest(RELEASE)}.*{'0' * 64}"):
        get(pypi="p", version="1", sha256="0" * 64)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_release_that_is_not_there_is_told_with_what_is(
    index: PackageIndex, get: Callable[..., Path]
) -> None:
    with pytest.raises(InfrastructureError, match="no source distribution"):
        get(**first_of(b""))
    index.put("p-2.tar.gz", RELEASE)
    with pytest.raises(InfrastructureError, match=r"p 1: the package index has no such .* but p-2\.tar\.gz"):
        get(**first_of(b""))
    index.put("p-1-py3-none-any.whl", RELEASE)
    with pytest.raises(InfrastructureError, match="the digest of a wheel"):
        get(**first_of(RELEASE))


def test_an_index_that_does_not_answer_or_refuses_is_told(
    index: PackageIndex, get: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    index.pages["/simple/p/"] = ("500 Server Error", b"")
    with pytest.raises(InfrastructureError, match=r"cannot be read at .*/simple/p/: 500 .*credentials"):
        get(**first_of(b""))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(
        InfrastructureError, match=r"cannot be read at http://127\.0\.0\.1:9/simple/p/.*network"
    ):
        get(**first_of(b""))


def link(name: str, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p-1.tar.gz", tar({"p-1/a": "", "../../evil": ""})),
        ("p-1.tar.gz", tar({"p-1/a": "", "a": ""})),
        ("p-1.tar.gz", tar({"p-1": ""})),
        ("p-1.tar.gz", tar({})),
        ("p-1.tar.gz", b"no archive"),
        ("p-1.tar.gz", RELEASE[:60]),
        ("p-1.zip", zipped({"p-1/a": "", "p-1/../../../evil": ""})),
        ("p-1.zip", zipped({"p-1/a": "", "..\\..\\evil": ""})),
        ("p-1.zip", b"no archive"),
    ],
    ids=["out", "two folders", "no folder", "empty", "no tar", "cut", "zip", "backslashes", "no zip"],
)
def test_an_archive_that_leads_out_or_is_broken_is_refused(
    index: PackageIndex, get: Callable[..., Path], tmp_path: Path, name: str, content: bytes
) -> None:
    index.put(name, content)
    with pytest.raises(InfrastructureError, match=r"p-1\.(tar\.gz|zip) (cannot be unpacked|is not a source)"):
        get(**first_of(content))
    assert not list(tmp_path.rglob("evil"))


def test_links_that_lead_out_are_left_out(index: PackageIndex, get: Callable[..., Path]) -> None:
    content = tar(
        {"p-1/a": "x"}, link("p-1/abs", "/etc/passwd"), link("p-1/up", "../../x"), link("p-1/in", "a")
    )
    index.put("p-1.tar.gz", content)
    folder = get(**first_of(content))
    assert sorted(path.name for path in folder.iterdir()) == ["a", "in"]


def test_many_at_once_get_the_same_whole_folder(
    index: PackageIndex, get: Callable[..., Path], tmp_path: Path
) -> None:
    index.put("p-1.tar.gz", RELEASE)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(get, **first_of(RELEASE)) for _ in range(8)]
    assert len({run.result() for run in runs}) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["pypi"]


def git(*arguments: str, cwd: Path) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A git repository beside the task files, with two commits."""
    folder = tmp_path / "tasks" / "my repo.git"
    folder.mkdir(parents=True)
    git("init", "--quiet", cwd=folder)
    (folder / "run.py").write_text("first")
    (folder / "tests").mkdir()
    (folder / "tests" / "data.txt").write_text("data")
    (folder / ".gitattributes").write_text("tests export-ignore\n")
    (folder / "away").symlink_to("/etc/passwd")
    git("add", ".", cwd=folder)
    git("commit", "--quiet", "-m", "1", cwd=folder)
    (folder / "run.py").write_text("second")
    git("commit", "--quiet", "-am", "2", cwd=folder)
    return folder


def test_the_cache_is_the_user_s_by_default(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    commit = git("rev-parse", "HEAD", cwd=origin)
    folder = fetch(Repository(git=origin.as_uri(), commit=commit), base=tmp_path)
    assert folder.is_relative_to(tmp_path / "user" / "pytest-super" / "sources")


def test_a_commit_is_fetched_once_with_all_its_files(
    origin: Path, get: Callable[..., Path], tmp_path: Path
) -> None:
    first, second = git("rev-parse", "HEAD~", cwd=origin), git("rev-parse", "HEAD", cwd=origin)
    folder = get(git=origin.as_uri(), commit=first)
    assert folder.name == "my_20repo"
    assert (folder / "run.py").read_text() == "first"
    assert sorted(path.name for path in folder.rglob("*")) == [
        ".gitattributes",
        "data.txt",
        "run.py",
        "tests",
    ]
    assert (get(git="my repo.git", commit=second) / "run.py").read_text() == "second"
    origin.rename(tmp_path / "gone")
    assert get(git=origin.as_uri(), commit=first) == folder


def test_no_hook_of_anyone_runs(
    origin: Path, get: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "config").write_text(f"[core]\n\thooksPath = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    get(git=origin.as_uri(), commit=git("-c", "core.hooksPath=", "rev-parse", "HEAD", cwd=origin))
    assert not (tmp_path / "ran").exists()


def test_a_commit_that_is_not_there_is_told(origin: Path, get: Callable[..., Path]) -> None:
    with pytest.raises(InfrastructureError, match=f"no commit {'0' * 39}1"):
        get(git=origin.as_uri(), commit="0" * 39 + "1")


def test_a_repository_that_is_not_there_is_told_without_a_password(
    tmp_path: Path, get: Callable[..., Path]
) -> None:
    with pytest.raises(
        InfrastructureError, match=r"(?s)git failed.*nowhere.*check repository\.git"
    ) as caught:
        get(git=f"file://me:secret@{tmp_path}/nowhere", commit="a" * 40)
    assert "secret" not in str(caught.value)


def test_git_that_is_not_installed_is_told(
    tmp_path: Path, get: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match="git is not installed"):
        get(git="https://example.org/x", commit="a" * 40)


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "project"
    folder.mkdir(parents=True)
    (folder / "demo.ipynb").write_text("{}")
    (tmp_path / "tasks" / "a.task.yaml").write_text(
        "repository: {path: project}\nentrypoint: {path: demo.ipynb}"
    )
    return folder


def test_a_folder_beside_the_task_file_is_taken_as_it_is(beside: Path, get: Callable[..., Path]) -> None:
    assert get(path="project") == beside


def test_a_folder_that_is_missing_or_leads_out_is_refused(
    beside: Path, get: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(TaskFileError, match=r"nothing: repository\.path is not a folder"):
        get(path="nothing")
    (beside.parent / "link").symlink_to(tmp_path)
    with pytest.raises(TaskFileError, match="is outside of"):
        get(path="link")


def test_a_folder_that_holds_tasks_or_solutions_is_refused(beside: Path, get: Callable[..., Path]) -> None:
    (beside.parent / "b.task.yaml").write_text("solution: {notebook: project/demo.ipynb}")
    with pytest.raises(TaskFileError, match=r"project/demo\.ipynb: .* solution"):
        get(path="project")
    (beside / "deep").mkdir()
    (beside / "deep" / "c.task.yaml").write_text("")
    with pytest.raises(TaskFileError, match=r"c\.task\.yaml: a repository must not contain task files"):
        get(path="project")


def test_a_page_of_the_simple_api_is_read() -> None:
    page = f'<base href="https://x.org/"><a href="/f/a%2B1.tar.gz#sha256={"a" * 64}&x=1">a</a><a>b</a>'
    files = parse_page(page, "https://y.org/simple/a/")
    assert [(file.name, file.url, file.sha256) for file in files] == [
        ("a+1.tar.gz", "https://x.org/f/a%2B1.tar.gz", "a" * 64)
    ]


@pytest.mark.usefixtures("no_pip_settings")
def test_pip_s_settings_are_read_in_pip_s_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://g.org/simple\ncert = /g.pem\n"
        "[install]\nextra-index-url = https://e.org/simple\n  https://f.org/simple/\ntimeout = 5\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    settings = read_pip_settings()
    assert settings.indexes == ["https://g.org/simple", "https://e.org/simple", "https://f.org/simple"]
    assert (settings.cert, settings.timeout) == ("/g.pem", 5.0)
    monkeypatch.setenv("PIP_INDEX_URL", "https://env.org/simple")
    monkeypatch.setenv("PIP_TIMEOUT", "soon")
    settings = read_pip_settings()
    assert (settings.indexes[0], settings.timeout) == ("https://env.org/simple", 60.0)
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert read_pip_settings().indexes == ["https://env.org/simple"]
    monkeypatch.delenv("PIP_INDEX_URL")
    assert read_pip_settings().indexes == [DEFAULT_INDEX]


@pytest.mark.network
def test_a_real_release_comes_from_the_configured_index(get: Callable[..., Path]) -> None:
    folder = get(pypi="Boruta", version="0.3", sha256=BORUTA)
    assert (folder / "boruta" / "boruta_py.py").is_file()
