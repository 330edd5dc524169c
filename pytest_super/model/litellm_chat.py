"""Asks for whole chat completions through litellm, of the providers that are not asked over our own HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_super.model.explanation import explain
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.json_values import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_super.model.known_model import KnownModel
    from pytest_super.model.protocols.protocol import Body, Request

# A whole answer can take this long, by default.
WHOLE_SECONDS = 600.0


async def ask_litellm(
    known: KnownModel, request: Request, timeout: float | None, secrets: Iterable[str]
) -> Body:
    """The answer, after `timeout` seconds at most. `request` has litellm's own parameters, too.

    Raises ModelCallError.
    """
    sent: list[bool] = []
    fixed = {"model": known.model, "drop_params": True, "stream": False}
    # litellm calls its logger with the finished request just before it is sent, and after a failure.
    fixed["logger_fn"] = lambda event: sent.append(event.get("log_event_type") != "post_api_call")
    # The gateway retries. Retrying here as well would multiply the attempts.
    fixed |= {"num_retries": 0, "max_retries": 0}
    seconds = WHOLE_SECONDS if timeout is None else timeout
    try:
        # litellm's own limit applies to each read, so an answer that trickles would never end.
        async with asyncio.timeout(seconds) as limit:
            response = await known.litellm.acompletion(**{**request, **fixed, "timeout": seconds})
            return plain(response.model_dump(warnings=False))  # type: ignore[no-any-return]
    except Exception as error:
        failure = explain(error, known.model, secrets, is_sent=any(sent))
    if limit.expired():
        failure = ModelCallError(Failure.TRANSIENT, f"{known.model}: no answer within {seconds:g} s")
    # Outside of the handler: a traceback would show the secrets that `explain` removes.
    raise failure
