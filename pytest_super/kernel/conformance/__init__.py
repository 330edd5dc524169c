"""The tests that every sandbox must pass. In a test module of a provider:

    from pytest_super.kernel.conformance import *

    @pytest.fixture(scope="module")
    def sandbox_factory():
        return lambda spec: MySandbox(spec)

    @pytest.fixture
    def remains():
        return lambda sandbox: [...]

`sandbox_factory` makes a fresh sandbox that enforces a SandboxSpec. `remains` lists the processes, containers
and folders that a closed sandbox left behind. Tests of a limit are skipped if the provider does not claim it.
"""

from pytest_super.kernel.conformance.cells import *  # noqa: F403
from pytest_super.kernel.conformance.ends import *  # noqa: F403
from pytest_super.kernel.conformance.files import *  # noqa: F403
from pytest_super.kernel.conformance.isolation import *  # noqa: F403
from pytest_super.kernel.conformance.programs import *  # noqa: F403
from pytest_super.kernel.conformance.support import isolated_kernel, kernel, shared_kernel

__all__ = [name for name in globals() if name.startswith("test_")]
__all__ += ["isolated_kernel", "kernel", "shared_kernel"]
