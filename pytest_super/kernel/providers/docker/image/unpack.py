"""Writes the files of an image into a folder, so that sandboxes can start without an engine."""

import json
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.inside.filework import Incoming
from pytest_super.kernel.providers.docker.engine import connect, engine_errors
from pytest_super.kernel.providers.docker.image import software_of_image
from pytest_super.kernel.providers.docker.image.agent import facts_of
from pytest_super.kernel.providers.docker.sweep import LABEL, container_name, remove
from pytest_super.kernel.providers.host_environment import Interpreter
from pytest_super.kernel.providers.sandbox_folder import owner_label
from pytest_super.kernel.providers.unpacked_image import COVERED, RECORD, UnpackedImage, image_in

# Runs in the image.
PYTHON = """
import json, os, site, sys
library = os.path.basename(os.path.dirname(os.__file__))
print(json.dumps([os.path.realpath(sys.executable), library, site.getsitepackages()]))
"""


def unpack(image: str, folder: Path) -> UnpackedImage:
    """Write the image's files, unless the folder has them. Raises EngineError and InfrastructureError."""
    facts = facts_of(image)
    if (folder / RECORD).exists():
        found = image_in(str(folder))
        # Trials that run can be using the other image.
        if found.id != facts["Id"]:
            raise InfrastructureError(
                f"{folder} has the image {found}: name another folder, or remove this one"
            )
        return found
    part = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Next to it, so that it gets its name only when it is whole.
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        part.chmod(0o755)
        written = write(image, facts, part)
        # Refused for a folder that is not empty.
        part.rename(folder)
    except (OSError, tarfile.TarError) as error:
        raise InfrastructureError(f"{folder} cannot be written: {error}") from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
    return written


def write(image: str, facts: dict[str, Any], folder: Path) -> UnpackedImage:
    api = connect()
    labels = {LABEL: "1", f"{LABEL}.owner": owner_label()}
    with engine_errors("copy the image's files", image=image):
        container = api.create_container(
            image,
            ["python3", "-I", "-c", PYTHON],
            entrypoint=[""],
            name=container_name(secrets.token_hex(6)),
            labels=labels,
            network_disabled=True,
            use_config_proxy=False,
        )["Id"]
        try:
            api.start(container)
            api.wait(container)
            executable, library, packages = json.loads(api.logs(container, stderr=False))
            extract(api.export(container), folder)
        finally:
            remove(container)
    for name in COVERED:
        (folder / name).parent.mkdir(exist_ok=True)
        # A link could lead out of the folder.
        (folder / name).unlink(missing_ok=True)
        (folder / name).touch()
    written = UnpackedImage(
        name=image,
        software=software_of_image(image, facts),
        id=facts["Id"],
        environment=dict(variable.split("=", 1) for variable in facts["Config"]["Env"] or ()),
        python=Interpreter(executable=executable, library=library, packages=tuple(packages)),
    )
    written.write(folder)
    return written


def extract(chunks: Iterable[bytes], folder: Path) -> None:
    """Unpack a tar archive, without devices. None of its links can lead a later file out of the folder."""
    stream: Any = Incoming(iter(chunks))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        members = (one for one in archive if not one.name.startswith(("dev/", "proc/", "sys/")))
        archive.extractall(folder, members, filter="tar")
