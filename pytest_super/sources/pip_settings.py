"""Reads pip's configuration on this machine: indexes, certificates, proxy."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field

DEFAULT_INDEX = "https://pypi.org/simple"
TIMEOUT = 60.0

# Later sections override earlier ones, as in pip.
SECTIONS = ("global", "install", "download", ":env:")

_LINE = re.compile(r"(:env:|\w+)\.([\w-]+)=(.+)")


@dataclass(frozen=True, kw_only=True)
class PipSettings:
    indexes: list[str] = field(default_factory=lambda: [DEFAULT_INDEX])
    """URLs, which can contain credentials."""
    cert: str | None = None
    """A CA bundle."""
    proxy: str | None = None
    trusted_hosts: list[str] = field(default_factory=list)
    """Hosts, or host:port, whose certificates are not checked."""
    timeout: float = TIMEOUT


def read_pip_settings() -> PipSettings:
    """The settings from `pip config list`, or only from pip's environment variables if pip is missing."""
    listed = _config_list()
    values: dict[str, str] = {}
    for section in SECTIONS:
        values |= {key: value for (where, key), value in listed.items() if where == section}
    return settings_from(values | _from_environment())


def settings_from(values: dict[str, str]) -> PipSettings:
    urls = [values.get("index-url") or DEFAULT_INDEX, *values.get("extra-index-url", "").split()]
    timeout = values.get("timeout") or values.get("default-timeout") or ""
    return PipSettings(
        indexes=[url.rstrip("/") for url in urls],
        cert=values.get("cert") or None,
        proxy=values.get("proxy") or None,
        trusted_hosts=values.get("trusted-host", "").split(),
        timeout=float(timeout) if timeout.isdecimal() else TIMEOUT,
    )


def parse_config_list(text: str) -> dict[tuple[str, str], str]:
    """Parse the output of `pip config list` to (section, key) -> value."""
    matches = filter(None, map(_LINE.fullmatch, text.splitlines()))
    # pip prints each value as a Python literal.
    return {(match[1], match[2]): str(ast.literal_eval(match[3])) for match in matches}


def _config_list() -> dict[tuple[str, str], str]:
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_config_list(done.stdout)


def _from_environment() -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and value}
    return {name.removeprefix("PIP_").lower().replace("_", "-"): value for name, value in given.items()}
