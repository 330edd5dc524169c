"""A kernel in a local sandbox, for a test or for several."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.local import LocalSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def started_kernel() -> Iterator[Kernel]:
    kernel = Kernel(LocalSandbox())
    try:
        kernel.start()
        yield kernel
    finally:
        kernel.close()
