"""Providers of sandboxes: found by name, offered by packages, chosen by `auto`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.kernel.providers import registry
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.kernel.providers.registry import Provider, choose_provider, find_provider
from pytest_super.kernel.sandbox import Sandbox, SandboxSettings, name_of
from pytest_super.tasks.sandbox_spec import SandboxSpec

SETTINGS = SandboxSettings()
MODULE = """
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.kernel.providers.registry import Provider

class ClusterProvider(Provider):
    def why_not_isolated(self):
        return None

    def why_unavailable(self):
        return None

    def make(self, spec, settings):
        return LocalSandbox(spec.env)

class UnfinishedProvider(Provider):
    def why_unavailable(self):
        return None
"""


def provider(
    *, isolates: bool, unavailable: str | None = None, unprepared: str | None = None
) -> type[Provider]:
    class Made(Provider):
        def why_not_isolated(self) -> str | None:
            return None if isolates else ""

        def why_unavailable(self) -> str | None:
            return unavailable

        def why_unprepared(self, settings: SandboxSettings) -> str | None:  # noqa: ARG002
            return unprepared

        def make(self, spec: SandboxSpec, settings: SandboxSettings) -> Sandbox:
            return LocalSandbox(spec.env, settings.environment)

    return Made


def forget() -> None:
    """What was found: the registry reads the installed packages once a process."""
    for cached in (registry.known_providers, registry.find_provider):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    forget()


@pytest.fixture
def ship(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make these the providers that ship, in their order."""

    def ship_all(**providers: type[Provider]) -> None:
        monkeypatch.setattr(registry, "SHIPPED", tuple(map(Named, providers, providers.values())))
        forget()

    return ship_all


class Named:
    """An entry point of a class that is not in a module."""

    def __init__(self, name: str, made: type[Provider]) -> None:
        self.name = name
        self.load = lambda: made


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """A package that offers a sandbox provider."""
    info = tmp_path / "cluster-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cluster\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_super.sandboxes]\n{entry}\n")
    (tmp_path / "cluster_sandbox.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    forget()


def test_a_package_offers_a_provider_but_cannot_replace_one_that_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("cluster", "docker")
    install(tmp_path, monkeypatch, "\n".join(f"{name} = cluster_sandbox:ClusterProvider" for name in names))
    for name in ("docker", "bubblewrap", "local"):
        assert type(find_provider(name)).__name__ == f"{name.title()}Provider"
    assert choose_provider("cluster", SETTINGS, is_trusted=False) == ("cluster", "")
    with pytest.raises(SuperError, match=r"unknown sandbox `moon`: choose from .*, local, cluster$"):
        find_provider("moon")


@pytest.mark.parametrize(("made", "reason"), [("Gone", "Gone"), ("UnfinishedProvider", "why_not_isolated")])
def test_a_provider_that_cannot_be_imported_or_hides_if_it_isolates_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, reason: str
) -> None:
    install(tmp_path, monkeypatch, f"cluster = cluster_sandbox:{made}")
    with pytest.raises(SuperError, match=f"the sandbox provider `cluster` cannot be imported: .*{reason}"):
        find_provider("cluster")


NO_A = provider(isolates=True, unavailable="no a: get one")


def test_auto_takes_the_first_that_can_be_used(ship: Any) -> None:
    ship(a=NO_A, b=provider(isolates=True), c=provider(isolates=True))
    assert choose_provider("auto", SETTINGS, is_trusted=False) == ("b", "since no a")


def test_where_nothing_isolates_only_trusted_agents_run_unless_asked_by_name(ship: Any) -> None:
    ship(a=NO_A, b=provider(isolates=False))
    assert choose_provider("auto", SETTINGS, is_trusted=True) == ("b", "no isolation, since no a")
    assert choose_provider("b", SETTINGS, is_trusted=False) == ("b", "no isolation")
    for name in ("auto", "a"):
        with pytest.raises(SuperError, match=r"^no a: get one$"):
            choose_provider(name, SETTINGS, is_trusted=False)


def test_auto_says_why_a_provider_does_not_isolate_here(ship: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = provider(isolates=False)
    monkeypatch.setattr(here, "why_not_isolated", lambda _: "root stays root: run it as another user")
    ship(a=NO_A, b=here)
    with pytest.raises(SuperError, match=r"^no a: get one; root stays root: run it as another user$"):
        choose_provider("auto", SETTINGS, is_trusted=False)


def test_one_that_lacks_what_tasks_may_bring_is_passed_over_for_trusted_agents_alone(ship: Any) -> None:
    ship(a=provider(isolates=True, unprepared="no image: build it"), b=provider(isolates=False))
    assert choose_provider("auto", SETTINGS, is_trusted=True).name == "b"
    assert choose_provider("auto", SETTINGS, is_trusted=False) == ("a", "")
    assert choose_provider("a", SETTINGS, is_trusted=True) == ("a", "")


@pytest.mark.parametrize("name", ["auto", "a"])
@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_missing_image_that_is_named_is_an_error_and_no_reason_to_run_elsewhere(
    ship: Any, name: str, is_trusted: bool
) -> None:
    ship(a=provider(isolates=True, unprepared="no image x: build it"), b=provider(isolates=False))
    with pytest.raises(SuperError, match=r"^no image x: build it$"):
        choose_provider(name, SandboxSettings(image="x"), is_trusted=is_trusted)
    # Nor is a missing engine.
    ship(a=provider(isolates=True, unavailable="no engine: start it"), b=provider(isolates=False))
    with pytest.raises(SuperError, match=r"^no engine: start it$"):
        choose_provider(name, SandboxSettings(image="x"), is_trusted=is_trusted)


def test_an_image_in_a_folder_is_for_bubblewrap(ship: Any) -> None:
    folder = SandboxSettings(image="/images/kernel")
    reason = find_provider("docker").why_unprepared(folder)
    assert reason == "containers do not start from a folder (/images/kernel): use --super-sandbox=bubblewrap"
    ship(docker=provider(isolates=True), bubblewrap=provider(isolates=True))
    assert choose_provider("auto", folder, is_trusted=False) == ("bubblewrap", "")


def test_a_sandbox_without_a_name_is_called_by_its_class() -> None:
    class Cluster:
        pass

    assert name_of(Cluster()) == "Cluster"  # type: ignore[arg-type]
    assert name_of(LocalSandbox()) == "local"
