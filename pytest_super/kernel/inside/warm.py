"""Local sandboxes as forks of a process that has imported ipykernel.

Executed by that process (`platform.forks.server`), in a virtual environment like those of trials, before the
first trial. The process reads no stream of a trial, so its forks have nothing of each other.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

PACKAGE = "pytest_super.kernel.inside"
OF_SYS = ("prefix", "exec_prefix", "executable", "path", "orig_argv")
# The source of the bridge's modules, which a sandbox gets like any other, and its code.
compiled: dict[str, Any] = {}
# The variables of modules that name the environment.
naming_environment: list[tuple[dict[str, Any], str]] = []


def prepare(folder: str, modules: tuple[str, ...]) -> None:
    """Import what kernels and bridges import, and compile the modules of the bridge, in this folder."""
    sys.modules["warm"] = module = ModuleType("warm")
    vars(module).update(globals())
    names = {PACKAGE: ModuleType(PACKAGE)}
    for name in modules:
        text = read(f"{folder}/{name}.py")
        compiled[text] = compile(text, f"{PACKAGE}.{name}", "exec")
        names[f"{PACKAGE}.{name}"] = ModuleType(f"{PACKAGE}.{name}")
        sys.modules.update(names)
        exec(compiled[text], vars(names[f"{PACKAGE}.{name}"]))
    inside("launcher").do_without_debugger()
    import ipykernel.kernelapp  # noqa: F401

    # A supervisor that is killed leaves us its orphans, which the server kills.
    inside("supervision").adopt_orphans()
    for name in names:
        del sys.modules[name]
    naming_environment.extend(
        (vars(module), name)
        for module in list(sys.modules.values())
        for name, value in vars(module).items()
        if isinstance(value, str | list) and sys.prefix in str(value) and module is not sys
    )


def inside(name: str) -> Any:
    """A module of the bridge."""
    return sys.modules[f"{PACKAGE}.{name}"]


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def begin() -> tuple[Any, Any]:
    """Be the first process of a sandbox. Returns what its starter uses in place of two functions."""
    os.setsid()
    live_in(os.environ["VIRTUAL_ENV"])
    return compile_once, start_kernel


def live_in(environment: str) -> None:
    """Have another virtual environment than the one that Python was started in."""
    old = sys.prefix

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(each) for each in value]
        is_inside = isinstance(value, str) and (value + "/").startswith(old + "/")
        return environment + value[len(old) :] if is_inside else value

    for variables, name in (*naming_environment, *((vars(sys), name) for name in OF_SYS)):
        variables[name] = moved(variables[name])


def compile_once(text: str, name: str, mode: str) -> Any:
    return compiled.get(text) or compile(text, name, mode)


def start_kernel(command: list[str], stderr: int, folder: str) -> int:
    """Fork the kernel. In the fork, return by SystemExit when it ends."""
    if pid := os.fork():
        return pid
    os.setsid()
    # Else the files of this process in /proc would be root's, as the bridge's are.
    inside("supervision").request(inside("supervision").PR_SET_DUMPABLE, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for place, descriptor in enumerate((nothing, stderr, stderr)):
        os.dup2(descriptor, place)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.update(inside("processes").kernel_variables(os.getppid(), folder))
    program = command[1]
    # ipykernel has read the variable JPY_PARENT_PID when it was imported.
    sys.argv = [*command[1:], f"--IPKernelApp.parent_handle={os.getppid()}"]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path.insert(0, folder)
    for name in [name for name in sys.modules if name == "warm" or name.startswith("pytest_super")]:
        del sys.modules[name]
    sys.modules["__main__"] = main = ModuleType("__main__")
    main.__file__ = program
    exec(compile(read(program), program, "exec"), vars(main))
    raise SystemExit
