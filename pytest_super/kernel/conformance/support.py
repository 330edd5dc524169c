"""Fixtures and helpers of the conformance suite."""

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.sandbox import Sandbox
from pytest_super.tasks.sandbox_spec import SandboxSpec

SandboxFactory = Callable[[SandboxSpec], Sandbox]
Remains = Callable[[Sandbox], list[str]]

MEGABYTE = 10**6
IGNORES_INTERRUPTS = """
import time
while True:
    try:
        time.sleep(0.05)
    except KeyboardInterrupt:
        print("no")
"""


@pytest.fixture
def kernel(sandbox_factory: SandboxFactory) -> Iterator[Kernel]:
    with started(sandbox_factory(SandboxSpec())) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def shared_kernel(sandbox_factory: SandboxFactory) -> Iterator[Kernel]:
    """For tests that leave the kernel as they found it, except for files and variables of their own."""
    with started(sandbox_factory(SandboxSpec())) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def isolated_kernel(sandbox_factory: SandboxFactory, request: pytest.FixtureRequest) -> Kernel:
    """The shared one, in a sandbox that isolates."""
    isolating(sandbox_factory)
    kernel: Kernel = request.getfixturevalue("shared_kernel")
    return kernel


@contextlib.contextmanager
def started(sandbox: Sandbox, *, with_kernel: bool = True) -> Iterator[Kernel]:
    kernel = Kernel(sandbox)
    try:
        kernel.start(with_kernel=with_kernel)
        yield kernel
    finally:
        kernel.close()


def isolating(factory: SandboxFactory) -> Sandbox:
    """Skips the test if the sandbox does not claim to isolate on this machine."""
    sandbox = factory(SandboxSpec())
    if not sandbox.capabilities.isolation:
        pytest.skip(f"does not claim to isolate {sandbox.capabilities.remark}".strip())
    return sandbox


def limited(factory: SandboxFactory, **limits: object) -> Sandbox:
    """A sandbox with the limits. Skips the test if the provider does not claim them."""
    sandbox = factory(SandboxSpec.model_validate(limits))
    lacking = [name for name in limits if not getattr(sandbox.capabilities, name)]
    if lacking:
        pytest.skip(f"does not claim to limit {', '.join(lacking)}")
    return sandbox


def printed(kernel: Kernel, code: str) -> str:
    """The output text of a cell that must succeed."""
    result = kernel.execute(code, timeout=60)
    assert result.outcome is Outcome.OK, result
    return result.text


def still_works(kernel: Kernel) -> bool:
    return printed(kernel, "print('still', 'here')") == "still here\n"


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
