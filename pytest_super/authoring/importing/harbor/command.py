"""Imports a folder of Harbor tasks, builds their images, and prints what could not be used."""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Container, Iterable
from pathlib import Path
from subprocess import PIPE, STDOUT

from pytest_super.authoring.importing.harbor.environment import DOCKERFILE, HarborImage, Unusable
from pytest_super.authoring.importing.harbor.task import SETTINGS, HarborTask, place_of, read_task
from pytest_super.authoring.importing.store import changes_of, write_files
from pytest_super.authoring.task_text import task_text
from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.kernel.providers.docker.engine import connect, engine_url, inspect
from pytest_super.kernel.providers.docker.image import LAYER, build, proxies, run_build
from pytest_super.kernel.terminal_text import shown_lines
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.words import counted, printable_line

RECORD = "harbor.import.json"
LAST_LINES = 10
# Here-documents, options and a first line that only BuildKit, or podman, knows.
BUILDKIT = re.compile(
    r"""(?im)\A\s*\#\s*syntax\s*=|^(?!\s*\#).*\s<<-?["']?[a-z_]"""
    r"|^\s*(?:RUN|COPY|ADD)\s+(?:--\S+\s+)*--(?:mount|network|security|chmod|link|parents|exclude|checksum)\b"
)
# What the engine itself says about a build.
ENGINE_LINE = re.compile(r"Step \d+/|\s*--->|Removing intermediate container|Successfully ")


class ImageBuilder:
    """Builds on the engine, with these certificates, pip settings and network."""

    def __init__(self, *, ca_bundle: Path | None, pip_config: Path | None, network: str | None) -> None:
        self._options = {"ca_bundle": ca_bundle, "pip_config": pip_config}
        self._network = network
        self._failures: dict[str, str] = {}

    def build(self, images: Iterable[HarborImage]) -> str:
        """Why an image cannot be built, "" if all are there. Raises EngineError without an engine."""
        for image in images:
            if image.name not in self._failures:
                self._failures[image.name] = self._build(image) if inspect(image.name) is None else ""
            if why := self._failures[image.name]:
                return why
        return ""

    def workdir(self, image: HarborImage) -> str:
        """Build an image, and return its working directory. Raises EngineError and Unusable."""
        if why := self.build([image]):
            raise Unusable(f"its image cannot be built: {why}")
        return (inspect(image.name) or {}).get("Config", {}).get("WorkingDir") or "/"

    def _build(self, image: HarborImage) -> str:
        said: list[str] = []
        print(f"building {image.name} of {image.folder or image.base}", flush=True)
        try:
            base = image.base
            if image.folder is not None:
                base = f"{image.name}-base"
                text = (image.folder / DOCKERFILE).read_text(encoding="utf-8", errors="replace")
                if BUILDKIT.search(text) and "Podman" not in str(connect().version()):
                    run_buildkit(base, image.folder, self._network, said)
                else:
                    run_build(base, {}, self._network, said.append, path=str(image.folder))
            build(
                profile=LAYER,
                base=base,
                tag=image.name,
                packages=None,
                requirements=None,
                network=self._network,
                print_line=said.append,
                **self._options,
            )
        except InfrastructureError as error:
            # Of the step that failed.
            begin = max((place for place, line in enumerate(said) if line.startswith("Step ")), default=0)
            own = [line for line in said[begin:] if not ENGINE_LINE.match(line)]
            return "\n".join([str(error), *shown_lines("\n".join(own))[-LAST_LINES:]])
        return ""


def run_buildkit(tag: str, folder: Path, network: str | None, said: list[str]) -> None:
    """Build an image by `docker build`. Raises InfrastructureError."""
    command = ["docker", "build", "--progress=plain", f"--tag={tag}", str(folder)]
    command += [f"--network={network}"] if network else []
    command += [f"--build-arg={name}={value}" for name, value in proxies().items()]
    variables = {**os.environ, "DOCKER_BUILDKIT": "1", "DOCKER_HOST": engine_url()}
    # By a shell, which also says that the program is missing.
    ran = subprocess.run(
        shlex.join(command), shell=True, env=variables, stdout=PIPE, stderr=STDOUT, errors="replace"
    )
    said += ran.stdout.splitlines()
    if ran.returncode:
        raise InfrastructureError(
            f"`docker build` ended with status {ran.returncode}; the Dockerfile needs BuildKit, which is in "
            "Docker's command line or its plugin buildx"
        )


def import_harbor(source: Path, output: Path, *, builder: ImageBuilder | None, force: bool) -> int:
    """Import the tasks whose images can be built; the exit status is 1 if one was left out."""
    folders = task_folders(source)
    files: dict[str, str | Path] = {}
    left_out = 0
    for folder in folders:
        shown = str(source / folder.relative_to(source.resolve()))
        try:
            task = read_task(folder, shown, builder.workdir if builder else lambda _: None)
            files |= files_of(task, files, builder)
        except (Unusable, ValueError) as error:
            left_out += 1
            lines = [f"{shown}: left out", *(f"  {line}" for line in str(error).splitlines())]
        else:
            lines = task.remarks
        for line in lines:
            print(printable_line(line))
    if not files:
        raise SuperError(f"{source}: none of its {counted(len(folders), 'task')} can be used")
    written = write_files(output, files, {"dataset": "harbor"}, record=RECORD, force=force)
    lost = f"; {left_out} left out" if left_out else ""
    print(f"{counted(len(folders) - left_out, 'task')} in {output} (files: {changes_of(written)}){lost}")
    if builder is None:
        print("the images of the tasks were not built")
    return 1 if left_out else 0


def task_folders(source: Path) -> list[Path]:
    """The folder itself, or those below it that are tasks. Raises SuperError if there is none."""
    source = source.resolve()
    found = sorted(
        path
        for path in source.rglob(SETTINGS)
        if not any(part.startswith(".") for part in path.relative_to(source).parts)
    )
    if not found:
        raise SuperError(f"{source}: there is no {SETTINGS} in it")
    return [path.parent for path in found]


def files_of(task: HarborTask, others: Container[str], builder: ImageBuilder | None) -> dict[str, str | Path]:
    """The files of a task whose images are built. Raises Unusable and ValueError."""
    name = f"{task.fields['id']}{TASK_SUFFIX}"
    if name in others:
        raise Unusable(f"an earlier folder has the name {task.fields['id']}")
    text = checked_text(task, name)
    if builder is not None and (why := builder.build(task.images)):
        raise Unusable(f"its image cannot be built: {why}")
    return {name: text, **task.copied}


def checked_text(task: HarborTask, name: str) -> str:
    """The text of the task's file, checked next to its other files. Raises ValueError."""
    with tempfile.TemporaryDirectory() as folder:
        if task.tests is not None:
            place = Path(folder) / place_of(task.fields["id"])
            place.parent.mkdir()
            place.symlink_to(task.tests)
        return task_text(task.fields, Path(folder) / name)
