"""Runs `pytest-super generate`: opens the gateway, processes the repositories, prints a report."""

import secrets
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pytest_super.authoring.generate.generation import RepositoryReport, generate_task
from pytest_super.authoring.generate.repositories import Named, ids_of, parse
from pytest_super.authoring.generate.screening import REASONS, TEMPORARY
from pytest_super.errors import SuperError
from pytest_super.model.client import GatewayModel
from pytest_super.model.completion import Model
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.settings import SCRIPTED, ModelSettings
from pytest_super.report.live import LiveCommand
from pytest_super.store.activity import Activity
from pytest_super.store.json_lines import UNREADABLE, append, damage, disk_errors, read_lines, to_line
from pytest_super.store.run_folder import new_run_id
from pytest_super.words import one_line

# The first has a line for the report of each repository, the second, by the gateway, one for each call.
REPORT, CALLS = "repositories.jsonl", "calls.jsonl"
# The gateway needs a limit of tokens for each task. Prompts are bounded, so this one is never reached.
TOKENS = 10_000_000


def generate(arguments: Namespace) -> int:
    """The exit status, 1 when the model failed on a repository. Raises SuperError for what all would meet."""
    named = [parse(text) for text in dict.fromkeys(arguments.repositories)]
    run = Run(named, arguments.output, model_settings(arguments))
    try:
        with run.live:
            try:
                run.process(min(arguments.jobs, len(named)))
            finally:
                for line in run.report_lines():
                    run.live.print_line(line)
    except SuperError as error:
        # Runs of pytest have longer names of our options.
        message = str(error).replace("--super-dir", "--output").replace("--super-", "--")
        raise SuperError(f"stopped: {message}") from None
    finally:
        run.gateway.close()
        # A gateway removes its folder when it ends, but none has run if nothing was asked.
        with suppress(OSError):
            run.gateway.folder.rmdir()
    return int("model_failed" in run.reasons.values())


class Run:
    """One run into one folder. Raises SuperError for a folder that cannot be used."""

    def __init__(self, named: list[Named], output: Path, model: ModelSettings) -> None:
        self.output = output
        self.live = LiveCommand(self._progress)
        texts = {each.text for each in named}
        try:
            output.mkdir(parents=True, exist_ok=True)
            lines = [RepositoryReport(**line) for line in read_lines(output / REPORT)]
        except UNREADABLE as error:
            raise SuperError(f"{output} cannot be used for generated tasks: {damage(error)}") from None
        settled = {line.named: line for line in lines if line.reason not in TEMPORARY}
        self.reasons = {text: line.reason for text, line in settled.items() if text in texts}
        """The reason of each repository that is settled, or "" if it was kept, by its text."""
        self._left = [each for each in named if each.text not in settled]
        self._number = len(named)
        self._ids = ids_of(self._left, {line.id for line in settled.values()}, output)
        self.gateway = Gateway(new_run_id(), model, secrets.token_hex(32))

    def process(self, jobs: int) -> None:
        """Process all that are left. An error or Ctrl-C ends it after the repositories under way."""
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for future in as_completed([pool.submit(self._process, each) for each in self._left]):
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.live.print_line("waiting for the repositories under way, whose calls are paid")
                raise

    def _process(self, named: Named) -> None:
        name = self._ids[named.text]
        report = RepositoryReport(named=named.text, id=name, model=self.gateway.settings.name)
        with self.live.activity(name, "repository") as activity:
            generate_task(named, report, self.output, lambda: self._open_model(name, activity))
        with disk_errors(self.output, "--output"):
            append(self.output / REPORT, to_line(asdict(report)))
        self.reasons[named.text] = report.reason
        self.live.print_line(one_line(str(report)))

    def _open_model(self, task: str, activity: Activity) -> Model:
        activity.begin("model")
        return GatewayModel(
            self.gateway,
            task=task,
            epoch=1,
            rerun=0,
            token_limit=lambda: TOKENS,
            cost_limit=None,
            waits_for=activity.waits_for,
        )

    def _progress(self) -> str:
        reasons = list(self.reasons.values())
        return f"{len(reasons)}/{self._number} repositories, {reasons.count('')} kept{self._cost()}"

    def _cost(self) -> str:
        costs = [line.get("cost_usd") for line in read_lines(self.output / CALLS)]
        known = [cost for cost in costs if cost is not None]
        return f"; all runs into {self.output} have cost ${sum(known):.4f}" if known else ""

    def report_lines(self) -> Iterator[str]:
        """The numbers of repositories that were kept and dropped, by reason."""
        numbers = Counter(self.reasons.values())
        yield ""
        yield f"{numbers['']} of {self._number} repositories kept{self._cost()}"
        for reason, meaning in REASONS.items():
            if numbers[reason]:
                yield f"{numbers[reason]:>6}  {reason:<22}{meaning}"
        if left := self._number - len(self.reasons):
            yield f"{left:>6}  not looked at"


def model_settings(arguments: Namespace) -> ModelSettings:
    """Raises SuperError."""
    name = arguments.model
    if name.startswith(SCRIPTED):
        from pytest_super.model.scripted import model_of_script

        name = model_of_script(Path(name.removeprefix(SCRIPTED)).absolute())
    return ModelSettings(
        name=name,
        parameters=dict(arguments.model_arg),
        max_cost=arguments.max_cost,
        calls=str((arguments.output / CALLS).absolute()),
        record=None,
    )
