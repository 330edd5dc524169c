"""The sandbox providers by name: the shipped ones, and those that packages offer as entry points."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple, Protocol

from pytest_super.errors import SuperError
from pytest_super.kernel.providers.unpacked_image import is_folder
from pytest_super.kernel.sandbox import Sandbox, SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from pytest_super.words import did_you_mean

GROUP = "pytest_super.sandboxes"
AUTO = "auto"
# Starts from images in folders.
OF_FOLDERS = "bubblewrap"
# In the order in which `auto` tries them. Not in the package's metadata, so that an older editable
# installation has new entries too.
SHIPPED = tuple(
    EntryPoint(name, f"pytest_super.kernel.providers.{value}", GROUP)
    for name, value in {
        "docker": "docker.provider:DockerProvider",
        "bubblewrap": "bubblewrap:BubblewrapProvider",
        "local": "local:LocalProvider",
    }.items()
)


class Provider(Protocol):
    """Makes the sandboxes of one kind. Subclass it; each process makes one instance, without arguments."""

    uses_host_python: bool = False
    """Code inside imports the packages of the Python that runs pytest, so what tasks need must be there.

    Except from an image in a folder.
    """

    @abstractmethod
    def why_not_isolated(self) -> str | None:
        """Why code inside can read or change something outside.

        None if it cannot, so that `auto` can choose the provider for untrusted code; "" if it can on every
        machine; if it can only on this one, the reason in the form of `why_unavailable`.
        """

    def why_unavailable(self) -> str | None:
        """Why no sandbox can be made on this machine, as `REASON: WHAT TO DO`; None if one can be made.

        Called by the controller before the run. Raises InfrastructureError.
        """

    def why_unprepared(self, settings: SandboxSettings) -> str | None:  # noqa: ARG002
        """Why tasks without an image of their own cannot run. For trusted agents `auto` then tries the next.

        In the form of `why_unavailable`, and called after it. Raises InfrastructureError.
        """
        return None

    def image_id(self, settings: SandboxSettings) -> str:  # noqa: ARG002
        """The id of the image in a folder, equal on all machines of a run; "" for any other image.

        Raises InfrastructureError.
        """
        return ""

    def make(self, spec: SandboxSpec, settings: SandboxSettings) -> Sandbox:
        """A sandbox that enforces `spec`, not opened. Called in each process that runs trials.

        Raises InfrastructureError. The caller refuses tasks that need more than the sandbox's capabilities.
        """

    def sweep(self) -> None:
        """Remove what killed runs left, except what a living process owns.

        Called by the controller, before the first trial and after the death of a worker. Raises
        InfrastructureError.
        """


class Choice(NamedTuple):
    """The provider of a run."""

    name: str
    note: str
    """For the header: that the provider does not isolate, and why no earlier one was chosen. Can be empty."""


@cache
def known_providers() -> dict[str, EntryPoint]:
    """All providers by name. A package cannot replace a shipped one."""
    return {entry.name: entry for entry in (*entry_points(group=GROUP), *SHIPPED)}


@cache
def find_provider(name: str) -> Provider:
    """Raises SuperError if the name is unknown or the provider cannot be imported."""
    entries = known_providers()
    if name not in entries:
        shipped = [entry.name for entry in SHIPPED]
        known = [AUTO, *shipped, *sorted(entries.keys() - set(shipped))]
        choices = f"choose from {', '.join(known)}{did_you_mean(name, known)}"
        raise SuperError(f"unknown sandbox `{name}`: {choices}")
    try:
        provider: Provider = entries[name].load()()
    # The last one for a class that lacks a method.
    except (ImportError, AttributeError, TypeError) as error:
        raise SuperError(f"the sandbox provider `{name}` cannot be imported: {error}") from error
    return provider


def why_not(provider: Provider, settings: SandboxSettings) -> str | None:
    """Why no sandbox can be made here, or not with the image that the settings name; None if one can."""
    reason = provider.why_unavailable()
    return provider.why_unprepared(settings) if reason is None and settings.image else reason


def choose_provider(name: str, settings: SandboxSettings, *, is_trusted: bool) -> Choice:
    """The provider of that name, or for `auto` the first that can be used. Raises SuperError if none can.

    `is_trusted` says that the code to run is the user's own, so it needs no isolation. `auto` never chooses a
    package's provider: installing a package must not change where code runs. If the settings name an image,
    what the first provider lacks is an error and no reason to choose another.
    """
    if name != AUTO:
        if (reason := why_not(find_provider(name), settings)) is not None:
            raise SuperError(reason)
        return Choice(name, note(name, []))
    reasons: list[str] = []
    for entry in SHIPPED:
        provider = find_provider(entry.name)
        if settings.image and is_folder(settings.image) and entry.name != OF_FOLDERS:
            continue
        if not is_trusted and (why := provider.why_not_isolated()) is not None:
            reasons += filter(None, [why])
            continue
        reason = provider.why_unavailable()
        if missing := settings.image and (reason or provider.why_unprepared(settings)):
            raise SuperError(missing)
        # Tasks can have images of their own, so a missing kernel image only counts if any provider will do.
        if reason is None and is_trusted:
            reason = provider.why_unprepared(settings)
        if reason is None:
            return Choice(entry.name, note(entry.name, reasons))
        reasons.append(reason)
    raise SuperError("; ".join(reasons))


def note(name: str, reasons: list[str]) -> str:
    facts = [] if find_provider(name).why_not_isolated() is None else ["no isolation"]
    if reasons:
        facts.append("since " + " and ".join(reason.partition(": ")[0] for reason in reasons))
    return ", ".join(facts)
