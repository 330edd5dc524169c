"""The stateful kernel of a trial and the sandboxes in which it lives. Knows nothing of agents or tasks."""

from pytest_super.kernel.delivery import bridge_source

__all__ = ["bridge_source"]
