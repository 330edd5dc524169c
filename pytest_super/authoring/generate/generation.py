"""The run: repositories taken one after the other by several threads, each to its outcome."""

from __future__ import annotations

import hashlib
import queue
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.generate import answers, material
from pytest_super.authoring.generate.asking import Asker, Stopped
from pytest_super.authoring.generate.pinning import pin
from pytest_super.authoring.generate.record import DROPPED, KEPT, Outcome, Record, digest
from pytest_super.authoring.generate.refusal import Refused
from pytest_super.authoring.generate.repositories import ids_of
from pytest_super.authoring.generate.screening import screen
from pytest_super.authoring.generate.tasks import task_fields, write_task
from pytest_super.errors import InfrastructureError, TaskFileError
from pytest_super.model.completion import ModelError
from pytest_super.model.settings import SCRIPTED
from pytest_super.sources import fetch
from pytest_super.sources.tree import Tree
from pytest_super.store.trajectory import now
from pytest_super.tasks.task import TASK_SUFFIX, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_super.authoring.generate.prompts import Prompts
    from pytest_super.authoring.generate.repositories import Named
    from pytest_super.model.completion import Model


@dataclass(frozen=True, kw_only=True)
class Settings:
    output: Path
    model: str
    parameters: dict[str, Any]
    prompts: Prompts
    jobs: int
    open_model: Callable[[str], Model]
    """By the id of the task."""
    tell: Callable[[str], None]
    """Given one line at a time, by any thread."""


@dataclass(kw_only=True)
class Draft:
    """What is known of a repository so far."""

    named: Named
    id: str
    repository: dict[str, str] = field(default_factory=dict)
    key: str = ""
    questions: dict[str, Any] = field(default_factory=dict)

    def outcome(self, outcome: str, model: str, **others: Any) -> Outcome:
        return Outcome(
            named=self.named.text,
            id=self.id,
            outcome=outcome,
            repository=self.repository,
            questions=self.questions,
            model=model,
            key=self.key,
            ended=now(),
            **others,
        )


class Generation:
    """One run into one folder. Making it raises SuperError for a folder that cannot be used."""

    def __init__(self, named: Sequence[Named], settings: Settings) -> None:
        self.named = named
        self.settings = settings
        self.record = Record(settings.output)
        identity = [settings.model, settings.parameters]
        self.asker = Asker(self.record, settings.prompts, identity, settings.open_model)
        self.ids = ids_of(named, self.record.ids, settings.output)
        self.outcomes: dict[str, Outcome] = {}
        """By the text of the repository."""
        self.error: BaseException | None = None
        """What ended the run early."""
        self._waiting: queue.SimpleQueue[Named] = queue.SimpleQueue()
        for each in named:
            self._waiting.put(each)

    def run(self, interrupted: Callable[[], None]) -> None:
        """Take all to their outcome; what ends it early is in `error`.

        At a Ctrl-C `interrupted` is called, and the calls under way are waited for, since they are paid;
        at the second KeyboardInterrupt is raised.
        """
        # Python 3.11 takes a thread for ended once its `join` was interrupted (bpo-45274).
        ended = [threading.Event() for _ in range(self.settings.jobs)]
        for each in ended:
            # A daemon: after a second Ctrl-C nobody waits for it.
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
        except BaseException as error:
            self._end(error)
        finally:
            ended.set()

    def _take(self, named: Named) -> None:
        draft = Draft(named=named, id=self.ids[named.text])
        outcome = self._outcome(draft)
        # What is interrupted on its way fails in odd ways.
        if self.asker.stop.is_set() and not outcome.is_settled:
            raise Stopped
        if self.record.settled(outcome.key) is None:
            self.record.add(outcome)
        self.outcomes[named.text] = outcome
        self.settings.tell(line_of(outcome))

    def _outcome(self, draft: Draft) -> Outcome:
        """Raises Stopped, SuperError when no other repository would do better."""
        try:
            tree = self._pinned_tree(draft)
            if known := self.record.settled(draft.key):
                return self._again(known, draft)
            return self._kept(draft, tree())
        except Refused as refused:
            return self._dropped(draft, refused.reason, str(refused))
        except ModelError as error:
            if error.is_final:
                raise
            return self._dropped(draft, "model_failed", str(error))

    def _dropped(self, draft: Draft, reason: str, detail: str) -> Outcome:
        return draft.outcome(DROPPED, self.settings.model, reason=reason, detail=answers.shown(detail))

    def _pinned_tree(self, draft: Draft) -> Callable[[], Tree]:
        """Pin it, as an earlier run did, and give what fetches it. Raises Refused."""
        output, named = self.settings.output, draft.named
        with fetch_errors():
            # A branch may have moved in the middle of a long run that was interrupted.
            known = None if named.kind == "folder" else self.record.pins.get(named.text)
            draft.repository = known or pin(named, output)
            content = Tree(Path(named.place)).digest() if named.kind == "folder" else ""
        settings = self.settings
        made_from = [draft.repository, content, settings.model, settings.parameters, settings.prompts.digest]
        draft.key = digest([draft.id, *made_from])

        def tree() -> Tree:
            with fetch_errors():
                return Tree(fetch(Repository.model_validate(draft.repository), base=output))

        return tree

    def _again(self, known: Outcome, draft: Draft) -> Outcome:
        """As an earlier run settled it; its file is written again where it is gone, or another run's."""
        if known.outcome == KEPT:
            self._write(known.task)
        return replace(known, named=draft.named.text)

    def _kept(self, draft: Draft, tree: Tree) -> Outcome:
        """Raises Refused, ModelError, Stopped."""
        screen(tree)
        prompts, name = self.settings.prompts, draft.named.short
        shown = material.for_questions(name, tree)
        found = self.asker.ask(draft.id, prompts.questions, shown, answers.suitability)
        draft.questions = found.to_data()
        answers.refuse_unsuitable(found)
        shown = material.for_task(name, tree)
        proposal = self.asker.ask(draft.id, prompts.task, shown, lambda text: answers.proposal(text, tree))
        if proposal is None:
            raise Refused("skipped", "it answered {}")
        metadata = {
            # A script's path is of this machine.
            "model": "scripted" if self.settings.model.startswith(SCRIPTED) else self.settings.model,
            "prompts": prompts.digest,
            "dataset": draft.questions["q_supported_dataset"],
        }
        fields = task_fields(draft.id, draft.repository, tree.root.name, proposal, metadata)
        return draft.outcome(KEPT, self.settings.model, task=fields, sha256=self._write(fields))

    def _write(self, fields: dict[str, Any]) -> str:
        path = self.settings.output / f"{fields['id']}{TASK_SUFFIX}"
        if not self.record.is_ours(path):
            self.settings.tell(f"{path} was changed by hand and stays as it is; remove it to have it anew")
            return ""
        return hashlib.sha256(write_task(fields, self.settings.output)).hexdigest()

    def close(self) -> None:
        self.record.close()


class fetch_errors:
    """Turns what goes wrong with the source of one repository into Refused."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InfrastructureError | TaskFileError) and not getattr(error, "is_final", False):
            raise Refused("fetch_failed", str(error)) from None


def wait_for(events: Sequence[threading.Event]) -> None:
    for event in events:
        event.wait()


def line_of(outcome: Outcome) -> str:
    if outcome.outcome == KEPT:
        return f"kept     {outcome.id}  {outcome.task['entrypoint']['path']}"
    return f"dropped  {outcome.id}  {outcome.reason}: {outcome.detail or 'no reason given'}"
