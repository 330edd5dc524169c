"""The harness's own time per trial: ten trivial cells under pytest, and the same cells without pytest.

Usage: python benchmarks/trial.py [--small] [--sandbox local|docker] [--trials 20]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import print_row

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

CELLS = [f"x = {n}" for n in range(9)] + ["x"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def bare(provider: str, trials: int) -> float:
    started = time.perf_counter()
    for _ in range(trials):
        sandbox = LocalSandbox() if provider == "local" else DockerSandbox(SandboxSpec(), SandboxSettings())
        kernel = Kernel(sandbox)
        kernel.start()
        for cell in CELLS:
            kernel.execute(cell)
        kernel.close()
    return time.perf_counter() - started


def under_pytest(folder: Path, provider: str, trials: int) -> float:
    options = ["--super-agent=gold", f"--super-sandbox={provider}", f"--super-epochs={trials}", "-q"]
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=ENVIRONMENT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="one trial")
    parser.add_argument("--sandbox", choices=["local", "docker"], default="local")
    parser.add_argument("--trials", type=int, default=20)
    given = parser.parse_args()
    provider, trials = given.sandbox, 1 if given.small else given.trials
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        cells = "".join(f"    - {cell}\n" for cell in CELLS)
        (folder / "tasks" / "t.task.yaml").write_text(
            f"id: t\nset: expert\nquery: count\nanswer: 8\nsolution:\n  cells:\n{cells}"
        )
        bare(provider, 1)
        start_up = under_pytest(folder, provider, 1)
        ours = (under_pytest(folder, provider, trials + 1) - start_up) / trials
        theirs = bare(provider, trials) / trials
    print(f"{1000 * (ours - theirs):.0f} ms more a trial (wanted: at most 50 ms)")
    print_row(
        f"a trial of ten trivial cells / the same kernel and cells without pytest (`trial.py`, {provider})",
        f"{ours:.3f} s",
        peer=f"{theirs:.3f} s",
        ratio=ours / theirs,
        wanted="50 ms more",
    )


if __name__ == "__main__":
    main()
