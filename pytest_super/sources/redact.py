"""Text for messages without the passwords and tokens that URLs carry."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")


def redacted(text: str) -> str:
    return _CREDENTIALS.sub(r"\1", text)
