"""Limits the size of answers from model APIs: one without end would fill the machine's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MEBIBYTE = 2**20
# The longest answers of models have less than 1 MiB; probabilities of each token make them larger.
LARGEST_ANSWER = 64 * MEBIBYTE


def limit_answers() -> None:
    """Make httpx, by which litellm asks every provider, refuse larger answers, after decompression too."""
    import httpx

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
    httpx.Response.aiter_bytes = aiter_bytes  # type: ignore[assignment, method-assign]
