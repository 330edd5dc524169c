"""The gateway's HTTP interface: paths and names that its clients and its server share."""

from __future__ import annotations

from dataclasses import dataclass

# POST, to each path of a protocol: a call of the model for the trial in the header TRIAL. The
# header FACTS says what the call used, because programs read the body and expect it unchanged. In a stream it
# is a last line, a comment that begins with COMMENT, with the error if the stream could not go on.
FACTS = "X-Pytest-Super"
COMMENT = ": "
# The type of an answer to a program that wants no stream: a line with the body, and a line with the facts,
# which can be longer than a header.
TWO_LINES = "application/x-ndjson"
# POST: what a trial has used, once its calls have ended or `timeout` seconds have passed, how long it has
# waited for anything but answers, and the provider's last failure if it has not answered the trial since.
USAGE = "/super/usage"
# GET: what the trial's oldest call waits for, as text. Any answer shows that the gateway does not hang.
WAIT = "/super/wait"
TRIAL = "X-Pytest-Super-Trial"
# Every request has the token of the run's clients. Others get 401.
AUTHORIZATION = "Authorization"


@dataclass(frozen=True, kw_only=True)
class CallingTrial:
    """A trial and its present limits, which each of its requests states in the header TRIAL, as JSON."""

    name: str
    """`TASK/EPOCH.RERUN`, unique in the run."""
    task: str
    epoch: int
    token_limit: int | None
    """Prompt tokens in total."""
    cost_limit: float | None
    is_open: bool = False
    """Whether the task's network is open, so that the provider may run its own tools."""
    is_program: bool = False
    """Whether a program asks, whose parameters win over the user's."""


def credentials(token: str) -> dict[str, str]:
    return {AUTHORIZATION: f"Bearer {token}"}
