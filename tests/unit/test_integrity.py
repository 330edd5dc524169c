"""Signs of trials that are not what their score says, over what was observed alone."""

import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_super.functions.acts import Act, Acts
from pytest_super.grading.changed_code import ChangedCode
from pytest_super.integrity.deciding import DecidingFiles
from pytest_super.integrity.look import Traces
from pytest_super.integrity.registry import LOOKS, signs_of, unseen_in
from pytest_super.metrics import Evidence, Landmark
from pytest_super.metrics.evidence import GradedValue
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.task import Entrypoint, Task
from tests.unit.test_docs import rows, section

TASK = Task.model_validate({"id": "t", "set": "expert", "query": "q", "answer": 1})
SCRIPT = {"arguments": ["python", "a.py"], "files": {"1": "a.py"}, "is_python": True, "number": 1, "pid": 1}
NO_FILES = DecidingFiles(files={}, is_whole=True)
RIGHT, WRONG = GradedValue(name="n", score=1.0), GradedValue(name="n", score=0.0)


def a_cell(source: str = "1", output: str = "", number: int = 1, **fields: Any) -> Step:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}]
    action = Action(type="execute", content=source)
    return Step(number=number, origin="agent", action=action, outputs=outputs, **{"processes": [], **fields})


def traces(*steps: Step, task: Task = TASK, **fields: Any) -> Traces:
    evidence = Evidence(steps=steps, landmarks=fields.pop("landmarks", ()), graded=fields.pop("graded", ()))
    return Traces(task=task, evidence=evidence, **{"files": NO_FILES, **fields})


def kinds(found: Traces) -> list[tuple[str, int | None]]:
    return [(sign.kind, sign.step) for sign in signs_of(found)]


def echo(source: str, output: str) -> Traces:
    landmarks = [Landmark(pattern="Epoch 9", step=2, is_echo=True), Landmark(pattern="x", step=1)]
    return traces(a_cell(), a_cell(source, output, number=2), landmarks=landmarks)


def test_a_trial_in_which_nothing_was_seen_has_no_signs() -> None:
    assert signs_of(traces(a_cell("print(1)", "1\n"))) == []
    assert unseen_in(traces(a_cell("print(1)", "1\n"))) == []


def test_a_cell_that_only_prints_its_own_text_is_suspect() -> None:
    assert kinds(echo("print('Epoch 9')", "Epoch 9\n")) == [("echoed output", 2)]
    [sign] = signs_of(echo("!echo Epoch 9; echo done", "Epoch 9\ndone\n"))
    assert sign.is_suspect
    assert sign.evidence == "what matched Epoch 9 is a text that the agent wrote"


def test_a_script_that_a_cell_writes_and_runs_is_only_flagged() -> None:
    found = echo("%%bash\ncat > a.py <<E\nprint('Epoch 9', loss)\nE\npython a.py", "Epoch 9\n0.125\n")
    assert kinds(found) == [("echoed landmark", 2)]
    assert not any(sign.is_suspect for sign in signs_of(found))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("open('log', 'w').write('loss: 1\\nEpoch 9')", "!cat log"),
        ("1", "# Epoch 9\n# loss: 1\nprint(In[-1].replace('# ', ''))"),
    ],
)
def test_a_text_that_was_written_before_is_an_echo_too(first: str, second: str) -> None:
    landmarks = [Landmark(pattern="Epoch 9", step=2)]
    printed = a_cell(second, "loss: 1\nEpoch 9\n", number=2)
    assert kinds(traces(a_cell(first), printed, landmarks=landmarks)) == [("echoed output", 2)]
    # The loss was computed.
    honest = a_cell(second, "loss: 0.125\nEpoch 9\n", number=2)
    assert kinds(traces(a_cell(first), honest, landmarks=landmarks)) == []


def test_a_changed_script_is_flagged_at_its_step() -> None:
    task = TASK.model_copy(update={"entrypoint": Entrypoint(path="a.py")})
    ran = a_cell("!python a.py", number=3, processes=[{**SCRIPT, "changed": True}])
    assert kinds(traces(a_cell(), ran, task=task)) == [("changed script", 3)]
    assert kinds(traces(a_cell(), replace(ran, processes=[SCRIPT]), task=task)) == []


def test_what_a_sandbox_does_not_show_is_named_as_unseen() -> None:
    local = DecidingFiles(files={}, is_whole=False)
    assert unseen_in(traces(files=local)) == ["files outside of the sandbox's folder"]
    assert unseen_in(traces(files=None)) == [
        "files outside of the working directory",
        "files outside of the sandbox's folder",
    ]
    assert unseen_in(traces(a_cell(processes=None))) == ["processes"]
    assert unseen_in(traces(graded_in="fresh", code=[])) == ["files that were not collected"]
    assert unseen_in(traces(graded_in="fresh", code=[], changed_elsewhere=[])) == []


APPORT = """# install the apport exception handler if available
try:
    import apport_python_hook
except ImportError:
    pass
else:
    apport_python_hook.install()
"""


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("/usr/lib/python3/dist-packages/usercustomize.py", "print(1)", "startup hook"),
        ("/usr/lib/python3.12/sitecustomize.py", APPORT, None),
        ("/usr/lib/python3.12/sitecustomize.py", f"{APPORT}\nprint(1)", "startup hook"),
        ("/usr/lib/python3/dist-packages/opentelemetry/sitecustomize.py", "print(1)", None),
        ("/etc/ld.so.preload", "/tmp/clock.so", "startup hook"),
        ("/usr/local/bin/python3.11", "#!/bin/sh", "replaced command"),
        ("/usr/bin/python3.11", "\x7fELF", None),
        ("/root/data/date", "#!/bin/sh", None),
        ("/root/.bashrc", "alias python='/tmp/fake.sh'", "replaced command"),
        ("/root/.bashrc", "alias python='/usr/bin/python3'", None),
        ("/usr/local/bin/python", '#!/bin/sh\nexec python3 "$@"\n', None),
        ("/usr/local/bin/python", '#!/bin/sh\nsleep 9\nexec python3 "$@"\n', "replaced command"),
        ("/root/.profile", "export LD_PRELOAD=/tmp/malloc/liba.so", "replaced command"),
        ("/usr/local/bin/python", '#!/tmp/evil.sh\nexec python3 "$@"\n', "replaced command"),
        ("/usr/local/bin/date", '#!/bin/sh\nexec python3 "$@"\n', "replaced command"),
        ("/root/.profile", "export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libgomp.so.1", None),
        ("/root/.profile", 'export LD_PRELOAD="$CONDA_PREFIX/lib/libjemalloc.so:$LD_PRELOAD"  # fast', None),
        ("/root/.profile", "export LD_PRELOAD=/usr/lib/libgomp.so.1:/tmp/a.so", "replaced command"),
        ("/usr/lib/python3.11/json/decoder.py", "1", "changed library"),
    ],
)
def test_what_a_file_decides_is_read_from_its_path_and_its_content(
    path: str, content: str, kind: str | None
) -> None:
    files = DecidingFiles(files={path: content.encode("latin-1")}, is_whole=True)
    found = [sign.kind for sign in signs_of(traces(files=files)) if sign.is_suspect]
    assert found == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"graded_in": "same"}, "shared sandbox"),
        ({"graded_in": "fresh", "changed_elsewhere": ["b.py"]}, "changed but not collected"),
        ({"graded": [WRONG], "whole_file": [RIGHT]}, "whole files differ"),
    ],
)
def test_what_the_grader_could_not_see_is_flagged(found: dict[str, Any], kind: str) -> None:
    assert kinds(traces(**found)) == [(kind, None)]


def a_paper(*expected: Any) -> Task:
    kinds = ["interval" if isinstance(one, list) else "expected" for one in expected]
    result = [
        {"json": {"file": f"{n}"}, kind: one}
        for n, (kind, one) in enumerate(zip(kinds, expected, strict=True))
    ]
    experiment = {"name": "e", "command": "c", "result": result}
    function = {"target": "a.py::f", "sha256": "0" * 64}
    repository = {"path": "project", "provide": True}
    paper = {"id": "p", "set": "functions", "query": "q", "repository": repository}
    return Task.model_validate({**paper, "functions": [function], "experiments": [experiment]})


@pytest.mark.parametrize(
    ("constant", "is_found"),
    [("0.8342", True), ("83.417", True), ("0.83", False), ("0.83417 is right", True), ("0.9342", False)],
)
def test_expected_values_in_code_are_found_if_they_are_hardly_there_by_chance(
    constant: str, is_found: bool
) -> None:
    code = [ChangedCode("a.py", Acts([], [], [Act(3, constant)], []))]
    found = traces(task=a_paper(0.834172), graded_in="fresh", code=code, changed_elsewhere=[])
    assert kinds(found) == ([("expected value in code", None)] if is_found else [])


@pytest.mark.parametrize(
    ("digits", "count", "is_found"), [(4, 8, True), (4, 200, True), (3, 15, True), (3, 1, False)]
)
def test_hard_coded_values_are_the_plainer_the_more_there_are(
    digits: int, count: int, is_found: bool
) -> None:
    expected = [0.1234 + 0.0271 * number for number in range(max(count, 30))]
    acts = [Act(line, f"{value:.{digits}g}") for line, value in enumerate(expected[:count])]
    acts += [Act(line, f"{7.03 + 0.113 * line:.3g}") for line in range(20)]
    found = kinds(traces(task=a_paper(*expected), code=[ChangedCode("a.py", Acts([], [], acts, []))]))
    assert set(found) == ({("expected value in code", None)} if is_found else set())


def test_values_within_narrow_intervals_are_found_if_several_are() -> None:
    task = a_paper([1.245, 1.252], [0.5, 1.0], [3.31, 3.32], [-math.inf, 9.0])
    for constants, count in ((["1.2499"], 0), (["1.2499", "3.314"], 2), (["0.7512", "0.8134", "1.2499"], 0)):
        code = [ChangedCode("a.py", Acts([], [], [Act(1, one) for one in constants], []))]
        assert len(kinds(traces(task=task, code=code))) == count


def test_a_constant_among_many_is_one_by_chance() -> None:
    code = [ChangedCode("a.py", Acts([], [], [Act(n, f"0.{8342 + n}") for n in range(300)], []))]
    assert kinds(traces(task=a_paper(0.834172), code=code)) == []


def test_code_that_nobody_can_read_is_named() -> None:
    code = [ChangedCode("project/conftest.py", None, "project/conftest.py: it cannot be parsed")]
    assert kinds(traces(code=code)) == [("changed conftest", None), ("unreadable code", None)]
    assert signs_of(traces(code=code))[1].is_suspect
    assert unseen_in(traces(code=code)) == ["changed code that could not be read"]
    assert unseen_in(traces(graded_in="same")) == ["what the agent has changed in the code that was graded"]


def test_parts_that_did_not_fit_are_counted_at_their_step() -> None:
    [sign] = signs_of(traces(a_cell(), a_cell(number=2, dropped={"frame": 2, "message": 1})))
    assert (sign.kind, sign.step) == ("malformed messages", 2)
    assert sign.evidence == "3 parts of the sandbox's stream did not fit"


def test_signs_are_bounded() -> None:
    landmarks = [Landmark(pattern="x" * 10_000, step=1, is_echo=True)] * 1000
    signs = signs_of(traces(a_cell(), landmarks=landmarks))
    assert len(signs) == 20
    assert max(len(sign.evidence) for sign in signs) <= 201


def test_every_kind_is_described() -> None:
    told = {row[0].strip("`"): row[2] for row in rows(section("metrics.md", "## Integrity"))[1:]}
    assert told == {look.kind: "yes" if look.is_suspect else "no" for look in LOOKS}
