"""Which of several engines a sandbox starts on; no engine is needed."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import EngineError
from pytest_super.kernel.providers.docker import engine, room
from pytest_super.kernel.providers.docker.room import place_on
from pytest_super.tasks.sandbox_spec import SandboxSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENGINES = ("small", "large")
INFO: dict[str, dict[str, Any]] = {"small": {"NCPU": 2, "Runtimes": {"nvidia": {}}}, "large": {"NCPU": 8}}


@pytest.fixture(autouse=True)
def dead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[set[str]]:
    """The engines that do not answer; all others do."""
    names: set[str] = set()

    def info_of(name: str) -> dict[str, Any]:
        if name in names:
            raise EngineError(f"{name} is gone")
        return INFO[name]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(room, "info_of", info_of)
    yield names
    engine.gone.clear()


def test_each_sandbox_starts_where_the_fewest_are_for_each_processor() -> None:
    with ExitStack() as stack:
        chosen = [stack.enter_context(place_on(ENGINES, SandboxSpec())) for _ in range(20)]
    assert chosen[:3] == ["large", "large", "large"]
    assert [chosen[:half].count("large") for half in (10, 20)] == [8, 16]
    # All have ended.
    with place_on(ENGINES, SandboxSpec()) as first:
        assert first == "large"


def test_a_place_that_is_free_again_is_taken_first() -> None:
    with ExitStack() as stack:
        places = [stack.enter_context(ExitStack()) for _ in range(10)]
        chosen = [place.enter_context(place_on(ENGINES, SandboxSpec())) for place in places]
        places[chosen.index("small")].close()
        assert stack.enter_context(place_on(ENGINES, SandboxSpec())) == "small"


@pytest.mark.parametrize(("spec", "expected"), [({"gpus": 1}, "small"), ({"cpus": 4}, "large")])
def test_a_task_goes_only_where_what_it_needs_is(spec: dict[str, Any], expected: str) -> None:
    with ExitStack() as stack:
        chosen = {stack.enter_context(place_on(ENGINES, SandboxSpec(**spec))) for _ in range(20)}
    assert chosen == {expected}


def test_an_engine_that_is_gone_gets_no_more_sandboxes_and_the_loss_of_all_ends_the_run(
    dead: set[str],
) -> None:
    dead.add("large")
    with ExitStack() as stack:
        assert {stack.enter_context(place_on(ENGINES, SandboxSpec())) for _ in range(20)} == {"small"}
    dead.add("small")
    with pytest.raises(EngineError, match="small is gone; large is gone") as raised:
        place_on(ENGINES, SandboxSpec()).__enter__()
    assert raised.value.is_final


def test_a_run_that_names_no_engine_asks_none(tmp_path: Path) -> None:
    with place_on((), SandboxSpec()) as chosen:
        assert chosen == ""
    assert not list(tmp_path.iterdir())
