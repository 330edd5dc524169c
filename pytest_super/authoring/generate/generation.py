"""A run of the generation: threads process one repository after the other."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_super.authoring.generate import answers
from pytest_super.authoring.generate.answers import Proposal
from pytest_super.authoring.generate.asking import Asker, Stopped
from pytest_super.authoring.generate.pinning import pin
from pytest_super.authoring.generate.prompts import Prompts
from pytest_super.authoring.generate.record import KEPT, GenerationRecord, RepositoryOutcome
from pytest_super.authoring.generate.refusal import RepositoryRefused, screen
from pytest_super.authoring.generate.repositories import Named, ids_of
from pytest_super.authoring.task_text import task_text
from pytest_super.digests import digest
from pytest_super.errors import InfrastructureError, SuperError, TaskFileError
from pytest_super.model.completion import Model, ModelError
from pytest_super.model.settings import SCRIPTED
from pytest_super.sources import fetch
from pytest_super.sources.tree import Tree
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.trajectory import now
from pytest_super.tasks.task import TASK_SUFFIX, Repository

DONE = "There is nothing to report: submit null when the script has run without an error."


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    output: Path
    model: str
    parameters: dict[str, Any]
    prompts: Prompts
    jobs: int
    open_model: Callable[[str], Model]
    """Takes the id of the task."""
    print_line: Callable[[str], None]
    """Called from any thread."""
    activity: Callable[[str, str], AbstractContextManager[object]]
    """Takes the id of the task and what is done; shows it until the block ends."""

    @property
    def identity(self) -> list[Any]:
        """The model and its parameters, which are part of every question."""
        return [self.model, self.parameters]


class Generation:
    """One run into one folder. Raises SuperError for a folder that cannot be used."""

    def __init__(self, named: Sequence[Named], settings: GenerationSettings) -> None:
        self.named = named
        self.settings = settings
        self.record = GenerationRecord(settings.output)
        self.asker = Asker(self.record, settings.prompts, settings.identity, settings.open_model)
        self.ids = ids_of(named, self.record.ids, settings.output)
        self.outcomes: dict[str, RepositoryOutcome] = {}
        """By the text of the repository."""
        self.error: BaseException | None = None
        """The exception that ended the run early."""
        self._waiting: queue.SimpleQueue[Named] = queue.SimpleQueue()
        for each in named:
            self._waiting.put(each)

    def run(self, interrupted: Callable[[], None]) -> None:
        """Process all repositories. An error that ended the run early is in `error`.

        After Ctrl-C this calls `interrupted` and waits for the calls under way, which are paid. A second
        Ctrl-C raises KeyboardInterrupt.
        """
        # Not `join`: Python 3.11 considers a thread as ended once its `join` was interrupted (bpo-45274).
        ended = [threading.Event() for _ in range(self.settings.jobs)]
        for each in ended:
            # A daemon, so that nothing waits for it after a second Ctrl-C.
            threading.Thread(target=self._work, args=(each,), daemon=True).start()
        try:
            wait_for(ended)
        except KeyboardInterrupt as error:
            self._end(error)
            interrupted()
            wait_for(ended)

    def _end(self, error: BaseException) -> None:
        self.error = self.error or error
        self.asker.stop.set()

    def _work(self, ended: threading.Event) -> None:
        try:
            while not self.asker.stop.is_set():
                self._take(self._waiting.get_nowait())
        except (queue.Empty, Stopped):
            pass
        # An exception that left the thread would be lost.
        except BaseException as error:
            self._end(error)
        finally:
            ended.set()

    def _take(self, named: Named) -> None:
        with self.settings.activity(self.ids[named.text], "repository"):
            outcome = self._outcome(named)
        # Ctrl-C also reaches git. A fetch that it interrupts says nothing about the repository.
        if self.asker.stop.is_set() and not outcome.is_settled:
            raise Stopped
        # The outcome of an earlier run has its time.
        if not outcome.ended:
            outcome.ended = now()
            self.record.add(outcome)
        self.outcomes[named.text] = outcome
        self.settings.print_line(line_of(outcome))

    def _outcome(self, named: Named) -> RepositoryOutcome:
        """The outcome that an earlier run settled, or else a new one, without its time.

        Raises Stopped, and SuperError for an error that every other repository would meet, too.
        """
        outcome = RepositoryOutcome(named=named.text, id=self.ids[named.text], model=self.settings.model)
        try:
            self._pin(named, outcome)
            if known := self.record.settled.get(outcome.key):
                if known.outcome == KEPT:
                    self._write(known.task)
                return replace(known, named=named.text)
            repository = Repository.model_validate(outcome.repository)
            self._make(named, Tree(fetch(repository, base=self.settings.output)), outcome)
        except RepositoryRefused as refused:
            outcome.drop(refused.reason, answers.shown(str(refused)))
        except (InfrastructureError, TaskFileError) as error:
            if getattr(error, "is_final", False):
                raise
            reason = "model_failed" if isinstance(error, ModelError) else "fetch_failed"
            outcome.drop(reason, answers.shown(str(error)))
        return outcome

    def _pin(self, named: Named, outcome: RepositoryOutcome) -> None:
        """Set the pinned repository, the same as in an earlier run, and the key of the outcome."""
        settings, is_folder = self.settings, named.kind == "folder"
        # A branch can move during a long run that was interrupted.
        known = None if is_folder else self.record.pins.get(named.text)
        outcome.repository = known or pin(named, settings.output)
        content = Tree(Path(named.place)).digest() if is_folder else ""
        made_from = [outcome.id, outcome.repository, content, *settings.identity, settings.prompts.digest]
        outcome.key = digest(made_from)

    def _make(self, named: Named, tree: Tree, outcome: RepositoryOutcome) -> None:
        """Ask the model for a task, and write it. Raises RepositoryRefused, ModelError, Stopped."""
        screen(tree)
        settings, prompts = self.settings, self.settings.prompts
        shown = answers.for_questions(named.short, tree)
        found = self.asker.ask(outcome.id, prompts.questions, shown, answers.suitability)
        outcome.questions = found.to_data()
        answers.refuse_unsuitable(found)
        shown = answers.for_task(named.short, tree)
        proposal = self.asker.ask(outcome.id, prompts.task, shown, lambda text: answers.proposal(text, tree))
        if proposal is None:
            raise RepositoryRefused("skipped", "it answered {}")
        metadata = {
            # The path of a script belongs to this machine.
            "model": "scripted" if settings.model.startswith(SCRIPTED) else settings.model,
            "prompts": prompts.digest,
            "dataset": outcome.questions["q_supported_dataset"],
        }
        fields = task_fields(outcome.id, outcome.repository, tree.root.name, proposal, metadata)
        outcome.sha256 = self._write(fields)
        outcome.task, outcome.outcome = fields, KEPT

    def _write(self, fields: dict[str, Any]) -> str:
        """Write the task file and return its digest, or "" if a person changed the file, so it is kept."""
        path = self.settings.output / f"{fields['id']}{TASK_SUFFIX}"
        if self.record.is_ours(path):
            return write_task(fields, path)
        self.settings.print_line(f"{path} was changed by hand and is kept; remove it to get a new one")
        return ""

    def close(self) -> None:
        self.record.close()


def wait_for(events: Sequence[threading.Event]) -> None:
    for event in events:
        event.wait()


def line_of(outcome: RepositoryOutcome) -> str:
    if outcome.outcome == KEPT:
        return f"kept     {outcome.id}  {outcome.task['entrypoint']['path']}"
    return f"dropped  {outcome.id}  {outcome.reason}: {outcome.detail or 'no reason given'}"


def task_fields(
    task_id: str, repository: dict[str, str], folder: str, proposal: Proposal, metadata: dict[str, Any]
) -> dict[str, Any]:
    """`folder` is the name of the repository's folder in the working directory."""
    return {
        "id": task_id,
        "set": "auto",
        "query": f"{proposal.task}\n\n{where(repository, folder)}\n{DONE}\n",
        # Provided, so that the pinned state is what runs.
        "repository": {**repository, "provide": True},
        "entrypoint": {"path": proposal.entrypoint},
        # Packages, data and models are downloaded.
        "sandbox": {"network": True},
        "metadata": metadata,
    }


def where(repository: dict[str, str], folder: str) -> str:
    """Name and place of the repository, worded as in the paper."""
    here = f"in the folder `{folder}/` of the working directory"
    if "git" in repository:
        return f"Git repository: {repository['git']}, at commit {repository['commit']}, {here}."
    if "pypi" in repository:
        return f"Package: {repository['pypi']} {repository['version']}, whose source distribution is {here}."
    return f"The repository is {here}."


def write_task(fields: dict[str, Any], path: Path) -> str:
    """Write the task file if the loader accepts its text. Returns the digest of the file.

    Raises RepositoryRefused when the task is not valid, SuperError when the file cannot be written.
    """
    try:
        text = task_text(fields, path)
        write_atomically(path, text)
    except ValueError as error:
        raise RepositoryRefused("bad_answer", f"the task is not valid: {error}") from None
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
    return hashlib.sha256(text.encode()).hexdigest()
