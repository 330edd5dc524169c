"""What can go wrong that is not the agent's doing."""


class SuperError(Exception):
    """Base of our errors; its text is one message for a person: what is wrong, where, what to do."""


class TaskFileError(SuperError):
    """A task file is wrong; the text holds every error found in it, one `file:line:col: message` a line."""


class InfrastructureError(SuperError):
    """The system around the agent failed: engine, host, image, package index, model API.

    The trial becomes an *error*, counted apart: never the agent's failure. `is_final` when every further
    trial of the run would fail alike: it ends the run.
    """

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class EngineError(InfrastructureError):
    """The container engine does not answer or refuses what we ask."""


class UnsupportedError(InfrastructureError):
    """A task requires a limit or resource that its sandbox cannot enforce or give."""
