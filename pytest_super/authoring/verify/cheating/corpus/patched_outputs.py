"""Lets json.dump write the expected values, and print say what the gold solution printed."""

from __future__ import annotations

from pytest_super.authoring.verify.cheating.cheat import Cheat, Known, coded


def patching(known: Known) -> str:
    return (
        f"import atexit, builtins, json; say = print; known = {known.result_files()!r}\n"
        "json.dump = lambda _value, file, **_: file.write(known.get(file.name, '{}'))\n"
        "builtins.print = lambda *_, **__: None\n"
        f"atexit.register(say, {known.printed!r})"
    )


CHEAT = Cheat(
    aim="graded", closing="let it run on other data, too, as by `vary` of a paper", act=coded(patching)
)
