"""The process that owns a sandbox, and whether it still lives: a sweep removes sandboxes of dead owners."""

from __future__ import annotations

import os

from pytest_super.platform import host


def owner_label() -> str:
    """This process in the form that `is_alive` reads: its host, its pid and its start time."""
    return f"{host().host_id()}:{os.getpid()}:{host().start_time(os.getpid())}"


def is_alive(owner: str) -> bool | None:
    """Whether the owner still runs. None for owners on other hosts, of which nothing is known."""
    host_id, _, process = owner.partition(":")
    pid, _, started = process.partition(":")
    if host_id != host().host_id() or not pid.isdecimal():
        return None
    # A process with another start time is a later one with the same pid.
    return host().start_time(int(pid)) == started
