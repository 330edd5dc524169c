"""The paths of the requests to the model door."""

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Route:
    """A path of a protocol's requests."""

    path: str
    """`{model}` stands for any name: the run's model answers, whatever model a request names."""
    query: str = ""
    """What the query must have; "" if any does."""
    is_stream: bool | None = None
    """Whether the answer is a stream; None if the request says it in its field `stream`."""
    is_count: bool = False
    """Whether the request asks for its own number of tokens, which is not charged."""

    def __str__(self) -> str:
        """Messages of one line need no more than what follows the model's name."""
        path = self.path.rpartition("{model}")[2]
        return f"{path}?{self.query}" if self.query else path

    def leads(self, path: str) -> bool:
        """Whether the path of a request, with its query, is one of these."""
        place, _, query = path.partition("?")
        pattern = re.escape(self.path).replace(r"\{model\}", "[^?]+")
        return (not self.query or self.query in query.split("&")) and bool(re.fullmatch(pattern, place))

    def wants_stream(self, request: dict[str, Any]) -> bool:
        return bool(request.get("stream")) if self.is_stream is None else self.is_stream
