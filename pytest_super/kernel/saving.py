"""Images made of the files of containers: for a person to enter, and for sandboxes to start from."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.engine import connect, engine_errors, engine_url, has_image, make_client
from pytest_super.kernel.image import tar_of
from pytest_super.kernel.sweep import LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT = "pytest-super-kept"
SNAPSHOT = "pytest-super-snapshot"
# Of whose prefix a snapshot is.
OWNER = f"{LABEL}.prefix-of"
# The engine writes some hundred megabytes a second.
COMMIT_SECONDS = 1800
# Another label, or a sweep would take the container of the person who has entered it.
KEPT_CHANGES = [f"LABEL {LABEL}=kept", 'CMD ["bash"]']


def keep_files(container: str, token: str, secret: str | None) -> str:
    """Make an image for a person; gives its name. `secret` as in `commit`. Raises InfrastructureError."""
    image = f"{KEPT}:{token}"
    commit(container, image, KEPT_CHANGES, secret)
    return image


def save_snapshot(container: str, name: str, owner: str, secret: str | None) -> None:
    """Make the snapshot `name`, in place of others of the same owner. Raises InfrastructureError."""
    image = f"{SNAPSHOT}:{name}"
    # Podman takes all of a line for one label.
    commit(container, image, [f"LABEL {LABEL}=snapshot", f"LABEL {OWNER}={owner}"], secret)
    remove_snapshots(owner, but=name)


def has_snapshot(name: str) -> bool:
    """Raises EngineError."""
    return has_image(f"{SNAPSHOT}:{name}")


def commit(container: str, image: str, changes: Sequence[str], secret: str | None) -> None:
    """Make an image of the files of a container whose processes write none meanwhile.

    `secret` is a file inside that is to be empty in the image: it may hold credentials of the index.
    """
    from docker.errors import APIError

    repository, _, tag = image.partition(":")
    with engine_errors("save a container's files"):
        try:
            if secret:
                connect().put_archive(container, "/", tar_of({secret: b""}))
            # Not paused: a sandbox that says nothing for long is given up.
            patient = make_client(engine_url())
            patient.timeout = COMMIT_SECONDS
            patient.commit(container, repository=repository, tag=tag, changes=list(changes), pause=False)
            patient.close()
        except APIError as error:
            # 404: removed. 409: about to be.
            if error.status_code not in (404, 409):
                raise
            raise InfrastructureError("the container is gone, and its files with it") from None


def remove_snapshots(owner: str | None = None, *, but: str = "") -> list[str]:
    """Remove the snapshots that no container uses, or those of one owner; gives their images.

    Raises EngineError.
    """
    from docker.errors import APIError

    api, removed = connect(), []
    with engine_errors("remove snapshots"):
        found = api.images(name=SNAPSHOT)
        ours = [image for image in found if owner is None or (image["Labels"] or {}).get(OWNER) == owner]
        names = [name for image in ours for name in image["RepoTags"] or ()]
        for name in names:
            if name.rpartition(":")[2] != but:
                with suppress(APIError):
                    api.remove_image(name)
                    removed.append(name)
    return removed
