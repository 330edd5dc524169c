"""What numbers of trials say about agents: pure functions, with their sources."""

from importlib.util import find_spec

from pytest_super.errors import SuperError


def require_scipy() -> None:
    """Raises SuperError without scipy, which has the quantiles of distributions."""
    if find_spec("scipy") is None:
        raise SuperError("a comparison needs scipy: pip install 'pytest-super[gate]'")
