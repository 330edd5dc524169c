"""How the bridge gets into a sandbox: a short starting program, which the rest follows on standard input.

So that `ps` inside shows some lines and not a wall of source, and the kernel starts before most of it is
compiled.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

STARTER = """
import sys
stream = open(0, "rb", 0, closefd=False)
def take():
    size, text = int(stream.readline() or sys.exit()), b""
    while len(text) < size:
        text += stream.read(size - len(text)) or sys.exit()
    return text.decode()
def load(name):
    name = "pytest_super.kernel.inside." + name
    module = sys.modules[name] = type(sys)(name)
    exec(compile(take(), name, "exec"), module.__dict__)
    return module
sys.modules["pytest_super.kernel.inside"] = type(sys)("pytest_super.kernel.inside")
launcher, processes = take(), load("processes")
folder = processes.private_folder()
kernel = processes.KernelProcess(folder, 1, launcher)
for name in ("frames", "outbox", "message_size", "lookup", "filework", "bridge"):
    module = load(name)
module.main(launcher, folder, kernel)
"""
# In the order in which STARTER takes them.
TEXTS = ("launcher", "processes", "frames", "outbox", "message_size", "lookup", "filework", "bridge")


def bridge_source() -> str:
    """What a provider runs inside: `python3 -u -c SOURCE [FOLDER ...]`; it removes the folders at its end."""
    return STARTER


@cache
def bridge_program() -> bytes:
    """What the kernel's client sends before its first frame: the texts that STARTER takes."""
    texts = [(Path(__file__).parent / "inside" / f"{name}.py").read_bytes() for name in TEXTS]
    return b"".join(b"%d\n%s" % (len(text), text) for text in texts)
