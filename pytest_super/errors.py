"""The exceptions that users of the package meet."""


class SuperError(Exception):
    """Base of our errors. Its text is a message for a person: what is wrong, where, what to do."""


class TaskFileError(SuperError):
    """A task file has errors. The text lists all of them, one `file:line:col: message` a line."""


class InfrastructureError(SuperError):
    """The system around the agent failed: engine, host, image, package index, model API.

    The trial is an *error*, which is counted apart from the agent's failures. `is_final` means that every
    further trial would fail in the same way, so the run ends.
    """

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class EngineError(InfrastructureError):
    """The container engine does not answer, or refuses a request."""


class UnsupportedError(InfrastructureError):
    """A task requires a limit or a resource that its sandbox cannot enforce or provide."""


class TrialEnded(BaseException):
    """The trial is over. Raised at the wall limit, and by every action of the agent after the end.

    Not an Exception, so that an agent's `except Exception` around its own errors does not catch it.
    """

    def __init__(self, stop_reason: str) -> None:
        super().__init__(stop_reason)
        self.stop_reason = stop_reason
