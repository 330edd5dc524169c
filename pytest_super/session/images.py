"""The images of a run's tasks, and how they get to its engines before the first trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.session.expected import once_in_a_run
from pytest_super.store.json_lines import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_super.session.run import Run
    from pytest_super.tasks.task import Task

NOTE = "images.json"


def note_images(tasks: Iterable[Task], run: Run) -> None:
    """For the controller, which has no items if there are workers. Later calls change nothing."""
    once_in_a_run(run.path / NOTE, lambda: {"images": list(set(images_of(tasks)))})


def images_of(tasks: Iterable[Task]) -> Iterator[str | None]:
    """Of their sandboxes and of their graders'; None for the run's."""
    for task in tasks:
        yield task.sandbox.image
        if task.grade and task.grade.sandbox and task.grade.sandbox.image:
            yield task.grade.sandbox.image


def send_images(run: Run, print_line: Callable[[str], None]) -> None:
    """Raises InfrastructureError."""
    from pytest_super.kernel.providers.docker.image.agent import image_for
    from pytest_super.kernel.providers.docker.image.sending import send_image

    settings, images = run.settings.for_sandboxes, read_json(run.path / NOTE)["images"]
    for name in sorted({image_for(own, settings) for own in images}):
        send_image(name, settings.engines, print_line)
