"""The harness's own time per trial: ten trivial cells under pytest, and the same without it.

Usage: python benchmarks/trial.py [docker|local] [TRIALS]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox, DockerSettings
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.tasks.task import SandboxSpec

TARGET = 0.050
CELLS = [f"x = {n}" for n in range(9)] + ["x"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def bare(provider: str, trials: int) -> float:
    started = time.perf_counter()
    for _ in range(trials):
        sandbox = LocalSandbox() if provider == "local" else DockerSandbox(SandboxSpec(), DockerSettings())
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
    provider = sys.argv[1] if len(sys.argv) > 1 else "local"
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 20
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
    print(
        f"trial ({provider}): {ours:.3f} s under pytest, {theirs:.3f} s bare: "
        f"{1000 * (ours - theirs):.0f} ms of our own (target {1000 * TARGET:.0f}), ratio {ours / theirs:.2f}"
    )


if __name__ == "__main__":
    main()
