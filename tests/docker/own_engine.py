"""A container engine of a test's own, so that no other is disturbed, and an ssh server."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.docker.conftest import unavailable
from tests.waiting import until


class OwnEngine:
    """A second `dockerd` on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """Its folder; a short path, because sockets are in it."""
        self.url = f"unix://{root}/s"

    def start(self) -> None:
        root = self.root
        # In a network of its own: an engine that starts without a bridge removes the bridge of every other.
        command = f"unshare --net dockerd --data-root {root}/data --exec-root {root}/exec"
        command += f" --pidfile {root}/pid --bridge none --iptables=false --ip6tables=false -H {self.url}"
        with open(root / "log", "ab") as log:
            self.process = subprocess.Popen(command.split(), stdout=log, stderr=log)
        # A client takes a tenth of a second of processor time, so none asks before there is a socket.
        until(lambda: (root / "s").exists() and self.client("version").returncode == 0, 60)

    def client(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["docker", "-H", self.url, *arguments], capture_output=True, text=True)

    def end(self) -> None:
        """The engine, its containerd and the shims that survive them."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.kill()
        self.process.wait()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{self.root}/".encode() in (folder / "cmdline").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)

    def make_tiny_image(self) -> None:
        """`tiny:1`, an image with `cat` alone and the libraries it is linked with."""
        cat, tree = shutil.which("cat") or "/bin/cat", self.root / "tree"
        linked = subprocess.run(["ldd", cat], capture_output=True, text=True, check=True).stdout
        for source in re.findall(r"(/\S+) \(", linked):
            target = tree / source.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        (tree / "bin").mkdir(exist_ok=True)
        shutil.copy(cat, tree / "bin" / "cat")
        subprocess.run(["tar", "-C", tree, "-cf", f"{tree}.tar", "."], check=True)
        imported = self.client("import", f"{tree}.tar", "tiny:1")
        assert imported.returncode == 0, imported.stderr


@contextlib.contextmanager
def engine_of_its_own() -> Iterator[OwnEngine]:
    if os.geteuid() or not (shutil.which("dockerd") and shutil.which("unshare")):
        unavailable("needs root, dockerd and unshare, to start an engine of its own")
    engine = OwnEngine(Path(tempfile.mkdtemp(prefix="eng", dir="/tmp")))
    try:
        engine.start()
        yield engine
    finally:
        engine.end()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((path for path in mounts if path.startswith(f"{engine.root}/")), reverse=True):
            subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(engine.root, ignore_errors=True)


SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
PidFile {folder}/pid
UsePAM no
"""
# Of three names for the server, one has no key, and one is that of a host that nobody knows.
CLIENT = """
Host away nokey stranger
  HostName 127.0.0.1
  Port {port}
  User root
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
Host stranger
  HostKeyAlias stranger
Host away stranger
  IdentityFile {folder}/user
Host nokey
  IdentityFile {folder}/none
"""


@contextlib.contextmanager
def ssh_server(folder: Path) -> Iterator[Path]:
    """A server, and a folder with an `ssh` that knows it as `away`. The user's own settings are not read."""
    server, client = shutil.which("sshd"), shutil.which("ssh")
    if os.geteuid() or server is None or client is None:
        unavailable("needs root and an ssh server (Debian's package openssh-server)")
    assert server is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        given = {"port": probe.getsockname()[1], "folder": folder}
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "known").write_text(f"[127.0.0.1]:{given['port']} {(folder / 'host.pub').read_text()}")
    (folder / "server").write_text(SERVER.format(**given))
    (folder / "client").write_text(CLIENT.format(**given))
    (folder / "bin").mkdir()
    script = folder / "bin" / "ssh"
    script.write_text(f'#!/bin/sh\nexec {client} -F {folder}/client "$@"\n')
    script.chmod(0o700)
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen([server, "-D", "-e", "-f", folder / "server"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: subprocess.run([script, "away", "true"], capture_output=True).returncode == 0)
        yield script.parent
    finally:
        process.terminate()
        process.wait()
