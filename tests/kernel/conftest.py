"""For the tests of kernels."""

import os

import tests.property_settings  # noqa: F401
from pytest_super.kernel.providers import warm_kernels

# The run of local sandboxes that are forks of one process for all tests: an interpreter takes half a second.
FORKS = f"kernels-{os.getpid()}"
# That process stays from one test to the next.
warm_kernels.IDLE_SECONDS = 20.0
