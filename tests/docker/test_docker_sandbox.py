"""What a container carries and forbids and how it ends, with small programs in the bridge's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import EngineError, InfrastructureError
from pytest_super.kernel.providers.docker.disk_use import bytes_written
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.docker.containers import IDLE, MakeSandbox, RunInside, end_of, inspect

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

MIB = 2**20


# How it ends


def test_last_words_explain_a_failing_program(make_sandbox: MakeSandbox) -> None:
    assert end_of(make_sandbox("import nothing_there")).endswith("No module named 'nothing_there'")


def test_an_earlier_memory_kill_that_was_survived_does_not_explain_the_end(make_sandbox: MakeSandbox) -> None:
    code = (
        "import subprocess, sys, os\nsubprocess.run([sys.executable, '-c', 'bytearray(2**28)'])\nos._exit(4)"
    )
    assert end_of(make_sandbox(code, SandboxSpec(memory=64 * MIB))) == "ended (exit code 4)"


def test_memory_in_dev_shm_counts(make_sandbox: MakeSandbox) -> None:
    code = "f = open('/dev/shm/f', 'wb')\nwhile f.tell() < 2**25: f.write(bytes(2**20))\nbytearray(2**25)"
    # With control groups v2 an engine under load can lose the event of a container that ran out of memory.
    ends = (cause_of(make_sandbox(code, SandboxSpec(memory=64 * MIB))) for _ in range(3))
    assert "out of memory" in ends


def cause_of(sandbox: DockerSandbox) -> str:
    try:
        return end_of(sandbox)
    except EngineError as error:
        return str(error)


def test_an_image_without_python_is_named(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox("")
    sandbox._command = ["no-such-program"]
    with pytest.raises(InfrastructureError, match="no python3"):
        sandbox.open()


# What it has written

SPARSE = """
import os, sys
with open('/sparse', 'wb') as file:
    file.truncate(2**40)
    file.seek(2**39)
    file.write(bytes(2**22))
os.link('/sparse', '/same')
{more}
print('alive', flush=True)
sys.stdin.read()
"""


def test_the_blocks_of_a_file_count_and_not_its_size(make_sandbox: MakeSandbox, engine: APIClient) -> None:
    sandbox = make_sandbox(SPARSE.format(more=""))
    assert sandbox.open().read(5) == b"alive"
    assert 2**22 <= bytes_written(inspect(engine, sandbox)["Id"], 2**20) < 2**24


LIE = """
import shutil
path = shutil.which('python3')
os.unlink(path)
with open(path, 'w') as file:
    file.write('#!/bin/sh\\necho {answer}\\n')
os.chmod(path, 0o755)
"""


@pytest.mark.parametrize("answer", ["9" * 40, "-5"])
def test_without_a_measurement_of_blocks_sizes_count(
    answer: str, make_sandbox: MakeSandbox, engine: APIClient
) -> None:
    sandbox = make_sandbox(SPARSE.format(more=LIE.format(answer=answer)))
    assert sandbox.open().read(5) == b"alive"
    assert bytes_written(inspect(engine, sandbox)["Id"], 2**20) >= 2**40


# What it forbids


def test_no_network_by_default_and_no_names(run_inside: RunInside) -> None:
    output = run_inside(
        "import os, socket\nprint(os.listdir('/sys/class/net'))\n"
        "try: socket.getaddrinfo('example.org', 80)\nexcept OSError as error: print('no names', error)\n"
        "try: socket.create_connection(('1.1.1.1', 53), 3)\nexcept OSError as error: print('no route', error)"
    )
    assert output.splitlines()[0] == "['lo']"
    assert "no names" in output
    assert "no route" in output


def test_a_task_with_network_has_an_interface(run_inside: RunInside) -> None:
    assert "eth0" in run_inside("import os; print(os.listdir('/sys/class/net'))", SandboxSpec(network=True))


def test_foreign_owners_work_as_tar_and_apt_need_them(run_inside: RunInside) -> None:
    output = run_inside(
        "import os, subprocess\nrun = lambda text: print(subprocess.run(text, shell=True).returncode)\n"
        "run('mkdir /a && touch /a/f && chown 1234:1234 /a/f && chmod 600 /a/f && cat /a/f')\n"
        "run('tar -C / -cf /a.tar a && rm -r /a && tar -C / --same-owner -xf /a.tar')\n"
        "print(os.stat('/a/f').st_uid)\n"
        "pid = os.fork()\nif not pid: os.setgid(1234); os.setuid(1234); os._exit(os.getuid() != 1234)\n"
        "print(os.waitpid(pid, 0)[1])"
    )
    assert output.split() == ["0", "0", "1234", "0"]


ATTEMPTS = (
    "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
    "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "import subprocess; subprocess.run(['mount', '-t', 'tmpfs', 'x', '/mnt'], check=True)",
    "import os; os.mknod('/disk', 0o60600, os.makedev(8, 0)); open('/disk').read(1)",
    "import os; os.chroot('/tmp')",
    "open('/proc/sys/kernel/hostname', 'w').write('x')",
    "open('/proc/self/oom_score_adj', 'w', 1).write('-1000\\n')",
)


def test_what_needs_another_capability_is_refused_and_none_is_gained(run_inside: RunInside) -> None:
    code = "".join(
        f"try:\n    {attempt}\n    print({attempt!r})\nexcept Exception: pass\n" for attempt in ATTEMPTS
    )
    code += "print([line for line in open('/proc/self/status') if line.startswith('NoNewPrivs')])"
    assert run_inside(code).startswith("['NoNewPrivs:\\t1\\n']\n")


def test_the_container_is_locked_down_as_documented(make_sandbox: MakeSandbox, engine: APIClient) -> None:
    sandbox = make_sandbox(IDLE, SandboxSpec(cpus=0.5, memory=64 * MIB, pids=50))
    sandbox.open()
    config = inspect(engine, sandbox)["HostConfig"]
    assert config["NetworkMode"] == "none"
    assert config["CapDrop"] == ["ALL"]
    assert sorted(config["CapAdd"]) == ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
    assert config["SecurityOpt"] == ["no-new-privileges"]
    assert config["LogConfig"]["Type"] == "none"
    assert config["AutoRemove"] is True
    assert config["Init"] is False
    assert config["NanoCpus"] == 500_000_000
    assert config["Memory"] == 64 * MIB
    assert config["PidsLimit"] == 50
    assert not config["Privileged"]
