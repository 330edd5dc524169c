"""What every sandbox must do, as tests. In a test module of a provider:

    from pytest_super.kernel.conformance import *

    @pytest.fixture
    def sandbox_factory():
        return lambda spec: MySandbox(spec)

    @pytest.fixture
    def remains():
        return lambda sandbox: [...]

The first makes a fresh sandbox that enforces what a SandboxSpec says. The second names what is left of a
sandbox that was closed: processes, containers, folders. Tests of a limit are skipped where the provider does
not claim it; those marked `slow` take more than seconds.
"""

from __future__ import annotations

from pytest_super.kernel.conformance.cells import *  # noqa: F403
from pytest_super.kernel.conformance.ends import *  # noqa: F403
from pytest_super.kernel.conformance.files import *  # noqa: F403
from pytest_super.kernel.conformance.interrupts import *  # noqa: F403
from pytest_super.kernel.conformance.support import kernel

__all__ = [name for name in globals() if name.startswith("test_")]
__all__ += ["kernel"]
