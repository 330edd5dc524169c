"""What a container is given, whose it is and what stays of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import InfrastructureError, UnsupportedError
from pytest_super.kernel.providers.docker.engine import connect
from pytest_super.kernel.providers.docker.sweep import LEASE, deadline_of, remove, sweep
from pytest_super.kernel.providers.sandbox_folder import owner_label
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.docker.containers import IDLE, MakeSandbox, RunInside, containers, end_of, inspect
from tests.waiting import until

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

# Without waiting, one or two removals in ten are still under way.
ENDS = 10


# What it is given


def test_labels_say_whose_it_is(make_sandbox: MakeSandbox, engine: APIClient) -> None:
    sandbox = make_sandbox(IDLE)
    sandbox.open()
    labels = inspect(engine, sandbox)["Config"]["Labels"]
    expected = {"pytest-super": "1", "pytest-super.owner": owner_label()}
    given = {"pytest-super.run": "tests", "pytest-super.task": "t", "pytest-super.worker": "main"}
    assert labels.items() >= (expected | given).items()


def test_proxies_of_the_docker_client_stay_outside(
    run_inside: RunInside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies = {"default": {"httpProxy": "http://user:password@proxy.invalid:3128"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    connect.cache_clear()
    try:
        code = "import os; print(sorted(os.environ))"
        assert "PATH" in (output := run_inside(code))
        assert "proxy" not in output.lower()
    finally:
        connect.cache_clear()


def test_pip_settings_are_handed_in_and_with_a_network_certificates(
    run_inside: RunInside, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("certificates")
    (tmp_path / "pip.conf").write_text("[global]\ntimeout = 77\n")
    given: dict[str, Any] = {"ca_bundle": tmp_path / "ca.pem", "pip_config": tmp_path / "pip.conf"}
    code = (
        "import os, subprocess\nprint(open(os.environ['PIP_CERT']).read(), flush=True)\n"
        "subprocess.run(['python3', '-m', 'pip', 'config', 'list'])"
    )
    output = run_inside(code, SandboxSpec(network=True), **given)
    assert output.startswith("certificates\n")
    assert "global.timeout='77'" in output
    code = "import os; print(os.environ.get('PIP_CERT'), os.path.exists('/etc/pytest-super/ca.pem'))"
    assert run_inside(code, **given).startswith("None False\n")


def test_shared_caches_are_read_only_and_a_missing_one_is_named(
    run_inside: RunInside, make_sandbox: MakeSandbox, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("weights")
    code = "print(open('/cache/f').read())\ntry: open('/cache/f', 'w')\nexcept OSError: print('read-only')"
    assert run_inside(code, mounts={str(tmp_path): "/cache"}).split() == ["weights", "read-only"]
    with pytest.raises(InfrastructureError, match="/no/such/folder"):
        make_sandbox(IDLE, mounts={"/no/such/folder": "/cache"}).open()


def test_more_gpus_or_cpus_than_there_are_is_refused(make_sandbox: MakeSandbox, engine: APIClient) -> None:
    with pytest.raises(UnsupportedError, match="CPUs"):
        make_sandbox(IDLE, SandboxSpec(cpus=4096.0)).open()
    if "nvidia" not in engine.info()["Runtimes"]:
        with pytest.raises(UnsupportedError, match="GPUs"):
            make_sandbox(IDLE, SandboxSpec(gpus=1)).open()


# What stays


def test_a_kept_container_is_entered_as_an_image_without_credentials_of_the_index(
    make_sandbox: MakeSandbox, engine: APIClient, tmp_path: Path
) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://user:secret@index.invalid/simple\n")
    code = "open('/workspace/found', 'w').write('it'); " + IDLE
    sandbox = make_sandbox(code, pip_config=tmp_path / "pip.conf")
    stream = sandbox.open()
    assert stream.read(5) == b"alive"
    text = sandbox.keep()
    sandbox.close()
    until(lambda: not containers(engine, sandbox._token))
    kept = f"pytest-super-kept:{sandbox._token}"
    try:
        assert f"docker run --rm -it {kept}" in text
        config = engine.inspect_image(kept)["Config"]  # type: ignore[no-untyped-call]
        assert config["Cmd"] == ["bash"]
        assert config["Labels"]["pytest-super"] == "kept"
        show = ["docker", "run", "--rm", kept, "cat", "found", "/etc/pytest-super/pip.conf"]
        assert subprocess.run(show, capture_output=True, check=True).stdout == b"it"
    finally:
        engine.remove_image(kept, force=True)


def test_a_container_that_is_gone_cannot_be_kept(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox("")
    end_of(sandbox)
    with pytest.raises(InfrastructureError, match="the container is gone"):
        sandbox.keep()


def test_holes_that_would_fill_the_host_are_not_kept(make_sandbox: MakeSandbox) -> None:
    code = f"open('/workspace/sparse', 'wb').truncate(2**27); {IDLE}"
    sandbox = make_sandbox(code, SandboxSpec(disk=2**26))
    assert sandbox.open().read(5) == b"alive"
    with pytest.raises(InfrastructureError, match="holes included, are larger"):
        sandbox.keep()


# Is killed before its container starts; one that runs would end with it.
OWNER = """
import os, sys
from pytest_super.kernel.providers.docker.engine import connect
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
sandbox = DockerSandbox(SandboxSpec(), SandboxSettings(image=sys.argv[1]))
sandbox._create(connect())
print(sandbox._token, flush=True)
sys.stdin.read()
os._exit(1)
"""


def test_sweep_removes_what_a_dead_owner_left_and_nothing_else(
    image: str, engine: APIClient, make_sandbox: MakeSandbox
) -> None:
    living = make_sandbox(IDLE)
    living.open()
    foreign = engine.create_container(image, ["true"])["Id"]
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, image], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    token = owner.stdout.readline().strip()
    try:
        sweep()
        assert containers(engine, token)
        owner.communicate("")
        sweep()
        assert not containers(engine, token)
        assert containers(engine, living._token)
        assert engine.inspect_container(foreign)
    finally:
        engine.remove_container(foreign)


def test_a_container_that_the_engine_is_removing_is_gone_afterwards(image: str, engine: APIClient) -> None:
    for _ in range(ENDS):
        ends_by_itself = engine.create_host_config(auto_remove=True)
        container = engine.create_container(image, ["sleep", "60"], host_config=ends_by_itself)["Id"]
        engine.start(container)
        engine.kill(container)
        remove(container)
        assert not engine.containers(all=True, filters={"id": container})


def test_a_deadline_is_renewed(
    make_sandbox: MakeSandbox, engine: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = make_sandbox(IDLE)
    sandbox.open()
    [before] = containers(engine, sandbox._token)
    monkeypatch.setattr("pytest_super.kernel.providers.docker.sweep.LEASE", 2 * LEASE)
    sandbox._renew()
    [after] = containers(engine, sandbox._token)
    assert LEASE <= deadline_of(after) - deadline_of(before) < LEASE + 60
