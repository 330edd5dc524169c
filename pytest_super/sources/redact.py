"""Removes passwords and tokens from URLs in messages."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")


def redacted(text: str) -> str:
    return _CREDENTIALS.sub(r"\1", text)
