"""Sends the bridge into a sandbox: a short starter program reads the other modules from standard input.

This keeps the command line in `ps` short, and the kernel starts before most of the source is compiled.
"""

from functools import cache
from pathlib import Path

INSIDE = Path(__file__).parent / "inside"
# Each imports only modules before it.
FIRST = ("launcher", "processes", "supervision")
MODULES = (
    *("frames", "outbox", "message_size", "lookup", "filework"),
    *("kernel_connection", "program_run"),
    *("processor_time", "process_image", "expected_script", "observer", "bridge"),
)
# It removes the empty entry of `sys.path`, the working directory, because code inside writes there.
STARTER = f"""
import sys
sys.path[:] = filter(None, sys.path)
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
load("supervision").supervise([folder, *sys.argv[1:]])
start = globals().get("start_kernel")
kernel = processes.KernelProcess(folder, 1, launcher, start) if launcher else None
for name in {MODULES}:
    module = load(name)
processes.import_from_standard_library()
module.main(folder, kernel)
"""


def bridge_source() -> str:
    """The source that a provider runs inside: `python3 -u -c SOURCE [FOLDER ...]`.

    The folders are removed when the bridge has ended.
    """
    return STARTER


@cache
def bridge_program(*, with_kernel: bool = True) -> bytes:
    """The client's bytes before its first frame: the modules of STARTER, and a kernel's launcher or none."""
    modules = [(INSIDE / f"{name}.py").read_bytes() for name in (*FIRST[1:], *MODULES)]
    texts = [launcher() if with_kernel else b"", *modules]
    return b"".join(b"%d\n%s" % (len(text), text) for text in texts)


@cache
def launcher() -> bytes:
    """The program of the kernel's process."""
    return (INSIDE / f"{FIRST[0]}.py").read_bytes()
