"""Which process owns a sandbox, and whether it still lives: what a sweep may remove."""

from __future__ import annotations

import os

from pytest_super.platform import host


def owner_label() -> str:
    """This process, as `is_dead` reads it: its host, its pid and when it started."""
    return f"{host().host_id()}:{os.getpid()}:{host().start_time(os.getpid())}"


def is_dead(owner: str) -> bool:
    """Whether the owner was a process of this host that has ended. False for owners on other hosts."""
    host_id, _, process = owner.partition(":")
    pid, _, started = process.partition(":")
    if host_id != host().host_id() or not pid.isdecimal():
        return False
    return host().start_time(int(pid)) != started
