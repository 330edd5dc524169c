"""What a task requires of its sandbox."""

from typing import Annotated

from pydantic import Field

from pytest_super.tasks.fields import FieldModel, Package, Size, Text, Variables


class SandboxSpec(FieldModel):
    """The resources and limits of the sandbox. A sandbox that cannot enforce one of them is refused."""

    image: Text | None = None
    cpus: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    memory: Size | None = None
    """Bytes, or text such as 4g."""
    disk: Size | None = None
    pids: Annotated[int, Field(gt=0)] | None = None
    network: bool | None = None
    """true: the task needs the network; false: it must not have one."""
    gpus: Annotated[int, Field(ge=0)] | None = None
    env: Variables = {}
    packages: list[Package] = []
    """The packages that the task's code imports, as pip names them. Images have to contain them."""
