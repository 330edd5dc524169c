"""The environment variables of the sandbox: fixed ones, and those of the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.kernel.conformance.support import printed, started
from pytest_super.kernel.sandbox import FIXED_ENVIRONMENT
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.conformance.support import SandboxFactory


def test_time_zone_hash_seed_and_locale_are_fixed(shared_kernel: Kernel) -> None:
    code = f"import os; print({{name: os.environ.get(name) for name in {list(FIXED_ENVIRONMENT)}}})"
    assert printed(shared_kernel, code) == f"{FIXED_ENVIRONMENT}\n"
    effect = "import sys, time; print(time.tzname[0], sys.flags.hash_randomization)"
    assert printed(shared_kernel, effect) == "UTC 0\n"


def test_a_tasks_own_variables_override_the_fixed_ones(sandbox_factory: SandboxFactory) -> None:
    with started(sandbox_factory(SandboxSpec(env={"TZ": "ABC5", "OWN": "1"}))) as kernel:
        code = "import os, time; print(time.tzname[0], os.environ['OWN'], os.environ['LC_ALL'])"
        assert printed(kernel, code) == "ABC 1 C.UTF-8\n"
