"""A model's answer inside the gateway, and how it travels to the client.

litellm's object becomes an Answer, the Answer goes over HTTP, and the client makes a Completion of it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pytest_super.model.completion import Completion, Usage

Request = dict[str, Any]
"""The body of `POST /v1/chat/completions`, in plain JSON values."""

# A provider chooses its model's name, and one line of an HTTP header must stay far below 64 KiB.
MAX_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model said, and what the call used.

    Over HTTP the body is sent unchanged, because programs in sandboxes read it as OpenAI's; `facts` travel in
    a header. `completion_from` reads both.
    """

    body: dict[str, Any]
    """OpenAI's `chat.completion` object in plain JSON values, with at least one choice."""
    usage: Usage
    is_counted: bool
    """Whether the tokens were counted on this machine, because the provider reported no plausible usage."""
    model: str
    """The name under which the provider served it."""
    fingerprint: str | None
    attempts: int = 1
    """How often the provider was asked."""
    started: str = ""
    seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """Everything except the body, as the fields of one flat JSON object."""
        return {
            "started": self.started,
            "seconds": round(self.seconds, 3),
            **asdict(self.usage),
            "is_counted": self.is_counted,
            "model": self.model[:MAX_NAME],
            "fingerprint": self.fingerprint and str(self.fingerprint)[:MAX_NAME],
            "attempts": self.attempts,
        }


def completion_from(body: dict[str, Any], facts: dict[str, Any], *, seconds: float) -> Completion:
    """The answer as an agent gets it, from an Answer's body and facts; the client measures `seconds`."""
    choice = body["choices"][0]
    return Completion(
        # The content is null in an answer that consists of tool calls.
        text=choice["message"].get("content") or "",
        tool_calls=choice["message"].get("tool_calls") or [],
        finish_reason=choice.get("finish_reason") or "stop",
        # Not the body's own usage, which is that of the last attempt alone.
        usage=Usage.from_data(facts),
        is_counted=facts["is_counted"],
        model=facts["model"],
        fingerprint=facts["fingerprint"],
        seconds=seconds,
    )
