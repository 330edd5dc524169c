"""Reads pip's configuration on this machine: indexes, certificates, proxy."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass

DEFAULT_INDEX = "https://pypi.org/simple"
TIMEOUT = 60.0

# Later sections override earlier ones, as in pip.
SECTIONS = ("global", "install", "download")

_LINE = re.compile(r"(\w+)\.([\w-]+)=(.+)")


@dataclass(frozen=True, kw_only=True)
class PipSettings:
    indexes: list[str]
    """URLs, which can contain credentials."""
    cert: str | None
    """A CA bundle."""
    proxy: str | None
    trusted_hosts: list[str]
    """Hosts, or host:port, whose certificates are not checked."""
    timeout: float


def read_pip_settings() -> PipSettings:
    """The settings of pip's files and environment variables, or only of the variables if pip is missing."""
    values = _config_list() | _from_environment()
    urls = [values.get("index-url") or DEFAULT_INDEX, *values.get("extra-index-url", "").split()]
    timeout = values.get("timeout") or values.get("default-timeout") or ""
    return PipSettings(
        indexes=[url.rstrip("/") for url in urls],
        cert=values.get("cert") or None,
        proxy=values.get("proxy") or None,
        trusted_hosts=values.get("trusted-host", "").split(),
        timeout=float(timeout) if timeout.isdecimal() else TIMEOUT,
    )


def _config_list() -> dict[str, str]:
    """The values of pip's files; {} if pip is missing."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = list(filter(None, map(_LINE.fullmatch, done.stdout.splitlines())))
    # pip prints each value as a Python literal.
    return {line[2]: str(ast.literal_eval(line[3])) for name in SECTIONS for line in lines if line[1] == name}


def _from_environment() -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and value}
    return {name.removeprefix("PIP_").lower().replace("_", "-"): value for name, value in given.items()}
