"""Forms in which people write one right body, with what it needs around it."""

import math
from typing import Any

import pytest

from pytest_super.functions.splicing import spliced

STUB = '    raise NotImplementedError("this function is masked")\n'
ORIGINAL = f'''\
"""Densities."""
from __future__ import annotations

import math

__all__ = ["likelihood", "log_likelihood"]


def log_likelihood(values, mean=0.0, sd=1.0):
    """The sum of the logarithms of a normal density."""
{STUB}

def likelihood(values):
    return math.exp(log_likelihood(values))
'''
SUM = "-sum(((one - mean) / sd) ** 2 for one in values) / 2"
PLAIN = f"return {SUM} - len(values) * math.log(sd * math.sqrt(2 * math.pi))"
BY_LOG = f"return {SUM} - len(values) * (math.log(sd) + LOG_2PI / 2)"
# What stands above the function, and its body.
FORMS = {
    "the body alone": ("", PLAIN),
    "a helper": (
        "def _z(one, mean: float, sd: float = 1.0) -> float:\n    return (one - mean) / sd",
        "return sum(-_z(one, mean, sd) ** 2 / 2 for one in values)"
        " - len(values) * math.log(sd * math.sqrt(2 * math.pi))",
    ),
    "a cached helper": (
        "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef _log(x):\n    return math.log(x)",
        f"return {SUM} - len(values) * (_log(sd) + _log(2 * math.pi) / 2)",
    ),
    "an import inside": (
        "",
        f"from math import log, tau\nreturn {SUM} - len(values) * (log(sd) + log(tau) / 2)",
    ),
    "a literal": ("LOG_2PI = 1.8378770664093453", BY_LOG),
    "a product": ("BLOCK = 8 * 1024", f"values = values[:BLOCK]\n{PLAIN}"),
    "a constant of constants": (
        "TWO_PI = 2 * math.pi\nHALF_TURN = TWO_PI / 2",
        f"return {SUM} - len(values) * math.log(sd * math.sqrt(2 * HALF_TURN))",
    ),
    "a constant that is computed by a function": ("LOG_2PI = math.log(2 * math.pi)", BY_LOG),
    "a message of constants": (
        'LEAST = 1e-12\nWHY = f"sd must be above {LEAST:g}"',
        f"if sd <= LEAST:\n    raise ValueError(WHY)\n{PLAIN}",
    ),
    "a lambda": (
        "LOG_2PI = 1.8378770664093453\nlog_sd = lambda sd, base=math.e: math.log(sd, base)",
        BY_LOG.replace("math.log(sd)", "log_sd(sd)"),
    ),
    "a package that may be missing": (
        "try:\n    import numpy_that_is_missing as np\nexcept ImportError:\n    np = None",
        f"assert np is None\n{PLAIN}",
    ),
    "an older Python": (
        "import sys\nif sys.version_info >= (3, 8):\n    from math import prod\nelse:\n"
        "    def prod(values):\n        return 1",
        "densities = [math.exp(-((one - mean) / sd) ** 2 / 2) / (sd * math.sqrt(2 * math.pi))"
        " for one in values]\nreturn math.log(prod(densities))",
    ),
    "a class": (
        "class Normal:\n    def __init__(self, mean, sd):\n        self.mean, self.sd = mean, sd",
        f"one = Normal(mean, sd)\n{PLAIN}",
    ),
}
# A class runs code that is hard to tell from other code.
NOT_TAKEN = ["a class"]


def with_form(name: str) -> Any:
    above, body = FORMS[name]
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    changed = ORIGINAL.replace("\n\ndef log_", f"\n{above}\n\ndef log_", 1).replace(STUB, lines)
    return spliced("a.py", ORIGINAL.encode(), changed.encode(), ["log_likelihood"])


@pytest.mark.parametrize("name", [name for name in FORMS if name not in NOT_TAKEN])
def test_a_right_body_is_right_in_whatever_form(name: str) -> None:
    found = with_form(name)
    module: dict[str, Any] = {"__name__": "a"}
    exec(compile(found.data, "a.py", "exec"), module)
    wanted = -((1 / 2) ** 2 + (4 / 2) ** 2) / 2 - 2 * math.log(2 * math.sqrt(2 * math.pi))
    assert module["log_likelihood"]([1.0, 4.0], 0.0, 2.0) == pytest.approx(wanted)
    assert found.left_out == []


def test_what_a_body_needs_and_does_not_get_is_named() -> None:
    assert [with_form(name).left_out for name in NOT_TAKEN] == [["Normal"]]
