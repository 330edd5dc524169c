"""Limits the size of answers from model APIs: one without end would fill the machine's memory."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MEBIBYTE = 2**20
# The longest answers of models have less than 1 MiB; probabilities of each token make them larger.
LARGEST_ANSWER = 64 * MEBIBYTE


def limit_answers() -> None:
    """Make the HTTP clients of litellm refuse larger answers, after decompression too."""
    limit_client(import_module("httpx"))
    # OpenAI's client uses it from version 3 on.
    with suppress(ImportError):
        limit_client(import_module("httpx2"))


def limit_client(httpx: Any) -> None:
    read = httpx.Response.aiter_bytes
    if read.__module__ == __name__:
        return

    async def aiter_bytes(response: Any, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for piece in read(response, chunk_size):
            size += len(piece)
            if size > LARGEST_ANSWER:
                text = f"the answer is larger than {LARGEST_ANSWER // MEBIBYTE} MiB"
                raise httpx.RemoteProtocolError(text, request=response.request)
            yield piece

    # Neither litellm nor httpx has a setting for it.
    httpx.Response.aiter_bytes = aiter_bytes
