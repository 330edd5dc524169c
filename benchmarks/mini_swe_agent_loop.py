"""Runs many tasks with mini-swe-agent's own loop, in threads. Started by `agents_peer.py`.

Usage: python mini_swe_agent_loop.py TASKS THREADS FOLDER    (trajectories are stored in the folder)
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any


def run_one(name: str, folder: Path, templates: dict[str, Any]) -> str:
    """Run one task with a model that answers in text, and return the agent's exit status."""
    from minisweagent.agents.default import DefaultAgent  # type: ignore[import-not-found]
    from minisweagent.environments.local import LocalEnvironment  # type: ignore[import-not-found]
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel  # type: ignore[import-not-found]

    model = LitellmTextbasedModel(
        model_name="openai/benchmark",
        model_kwargs={"api_base": os.environ["OPENAI_BASE_URL"], "temperature": 0.2, "max_tokens": 1500},
        cost_tracking="ignore_errors",
    )
    path = folder / f"{name}.traj.json"
    agent = DefaultAgent(model, LocalEnvironment(cwd=str(folder)), output_path=path, **templates)
    status: str = agent.run(f"This is {name}.")["exit_status"]
    return status


def shipped_templates() -> dict[str, Any]:
    """The prompts that mini-swe-agent ships for models that answer in text."""
    import minisweagent  # type: ignore[import-not-found]
    import yaml

    config = yaml.safe_load(Path(minisweagent.package_dir, "config", "mini_textbased.yaml").read_text())
    return {name: config["agent"][name] for name in ("system_template", "instance_template")}


def main() -> None:
    tasks, threads, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    began = perf_counter()
    templates = shipped_templates()
    import minisweagent.models.litellm_textbased_model  # type: ignore[import-not-found]  # noqa: F401

    imported = perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        names = [f"conversation-{number}" for number in range(tasks)]
        ended = list(pool.map(lambda name: run_one(name, folder, templates), names))
    assert ended == ["Submitted"] * tasks, ended
    print(json.dumps({"import_seconds": imported - began, "loop_seconds": perf_counter() - imported}))


if __name__ == "__main__":
    main()
