"""The sandbox providers by name: those that ship, and those that packages offer as entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_super.errors import SuperError

if TYPE_CHECKING:
    from pytest_super.kernel.sandbox import Sandbox, SandboxSettings
    from pytest_super.tasks.task import SandboxSpec

GROUP = "pytest_super.sandboxes"
AUTO = "auto"
# In the order in which `auto` tries them. Here and not in the package's own metadata, so that an editable
# installation that is older than an entry has it too.
SHIPPED = tuple(
    EntryPoint(name, f"pytest_super.kernel.providers.{value}", GROUP)
    for name, value in {
        "docker": "docker.provider:DockerProvider",
        "bubblewrap": "bubblewrap:BubblewrapProvider",
        "local": "local:LocalProvider",
    }.items()
)


class Provider(Protocol):
    """Makes the sandboxes of one kind. To be subclassed; called once a process, without arguments."""

    isolates: bool
    """Code inside cannot read or change what is outside: `auto` may take it for code that a model wrote."""

    def why_unavailable(self, settings: SandboxSettings) -> str | None:
        """Why no sandbox can be made on this machine, as `REASON: WHAT TO DO`; None when one can.

        Called by the controller before the run. Raises InfrastructureError.
        """

    def why_unprepared(self, settings: SandboxSettings) -> str | None:  # noqa: ARG002
        """What a task without an image of its own would lack; `auto` then tries the next for trusted agents.

        In the form of `why_unavailable`, and called after it. Raises InfrastructureError.
        """
        return None

    def make(self, spec: SandboxSpec, settings: SandboxSettings) -> Sandbox:
        """A sandbox that enforces `spec`, not opened. Called in each process that runs trials.

        Raises InfrastructureError. What the sandbox's capabilities do not claim is refused by the caller.
        """

    def sweep(self) -> None:
        """Remove what killed runs left on this machine, but nothing that a living process owns.

        Called once by the controller, before the first trial. Raises InfrastructureError.
        """


class Choice(NamedTuple):
    """The provider of a run."""

    name: str
    note: str
    """For the header: that nothing isolates, and why no earlier provider was taken. Can be empty."""


@cache
def known_providers() -> dict[str, EntryPoint]:
    """By name; a package cannot replace one that ships."""
    return {entry.name: entry for entry in (*entry_points(group=GROUP), *SHIPPED)}


@cache
def find_provider(name: str) -> Provider:
    """Raises SuperError for a name that is unknown, or whose provider cannot be imported."""
    entries = known_providers()
    if name not in entries:
        known = ", ".join([AUTO, *(entry.name for entry in SHIPPED), *sorted(offered_names())])
        raise SuperError(f"unknown sandbox `{name}`: choose from {known}")
    try:
        provider: Provider = entries[name].load()()
    except (ImportError, AttributeError) as error:
        raise SuperError(f"the sandbox provider `{name}` cannot be imported: {error}") from error
    return provider


def offered_names() -> set[str]:
    return known_providers().keys() - {entry.name for entry in SHIPPED}


def choose_provider(name: str, settings: SandboxSettings, *, is_trusted: bool) -> Choice:
    """The provider of that name, or for `auto` the first that can be used. Raises SuperError when none can.

    `is_trusted`: the code to run is the user's own, so it may run where nothing isolates it. `auto` never
    takes a package's provider: installing a package must not change where code runs.
    """
    if name != AUTO:
        if reason := find_provider(name).why_unavailable(settings):
            raise SuperError(reason)
        return Choice(name, note(name, []))
    reasons: list[str] = []
    for entry in SHIPPED:
        provider = find_provider(entry.name)
        if not (provider.isolates or is_trusted):
            continue
        reason = provider.why_unavailable(settings)
        if reason is None and is_trusted:
            reason = provider.why_unprepared(settings)
        if reason is None:
            return Choice(entry.name, note(entry.name, reasons))
        reasons.append(reason)
    raise SuperError("; ".join(reasons))


def note(name: str, reasons: list[str]) -> str:
    facts = [] if find_provider(name).isolates else ["no isolation"]
    if reasons:
        facts.append("since " + " and ".join(reason.partition(": ")[0] for reason in reasons))
    return ", ".join(facts)
