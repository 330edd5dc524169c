"""A field of a result is declared once: one that is added to the declarations is shown everywhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

# Put into the class, before its first property; nothing else of the package changes.
DECLARED = '''
    weather: Annotated[float | None, Field(unit=Unit("degrees", "{:.1f} °C"), column="warmth")] = None
    """How warm it was."""
    rain: Annotated[int, Field(total="rain")] = 0
    """How often it rained."""
    pets: list[str] = field(default_factory=list)
    """Who watched."""

    @property
'''
# Runs on the changed copy. Prints for each place what it has of the fields.
LOOK = """
import csv, json, sys, xml.etree.ElementTree as ET
from pathlib import Path
from zipfile import ZipFile
from pytest_super.metrics.registry import BUILT_IN, RESERVED
from pytest_super.report.export.formats import export_run
from pytest_super.report.junit import rewrite_junit
from pytest_super.report.notebook import write_notebook
from pytest_super.report.page.render import one_file
from pytest_super.report.page.stored import read_run
from pytest_super.report.terminal import summary_lines
from pytest_super.store.checked import checked_line
from pytest_super.tasks.task import Task
from tests.result_table import table
from tests.stored import a_result, a_run, add_trial

folder = Path(sys.argv[1])
run = a_run(folder)
result = a_result(weather=21.5, rain=7, pets=["cat", "dog"])
task = Task(id="mean", set="expert", query="q", answer=1)
write_notebook(add_trial(run, result), task, result, [])
(folder / "junit.xml").write_text(
    '<testsuites><testsuite><testcase classname="a.task.yaml" name="mean"/></testsuite></testsuites>'
)
rewrite_junit(str(folder / "junit.xml"), run, {}, BUILT_IN)
[suite] = ET.parse(folder / "junit.xml").getroot()

def properties(element):
    return {one.get("name"): one.get("value") for one in element.iterfind("properties/property")}

notebook = (run.path / "trials/mean/1.0/trajectory.ipynb").read_text()
forms = ("csv", "inspect", "atif")
path = {name: export_run(run.path, name, folder / name)[0] for name in forms}
with ZipFile(path["inspect"]) as archive:
    sample = json.loads(archive.read("samples/mean_epoch_1.json"))
head, _, *lines = summary_lines([result], BUILT_IN, [result])
page = one_file(read_run(run.path), "run")
try:
    checked_line(json.dumps({**result.to_data(), "weather": "warm"}))
    refused = "nothing"
except ValueError as error:
    refused = str(error)
found = {
    "terminal column": head,
    "terminal totals": " ".join(lines),
    "page column": page,
    "page": page,
    "notebook": " ".join(json.loads(notebook)["cells"][0]["source"].split()),
    "junit": properties(suite.find("testcase")),
    "junit suite": properties(suite),
    "csv": next(csv.DictReader(path["csv"].open())),
    "inspect": sample["metadata"],
    "atif": json.loads((path["atif"] / "mean.1.json").read_text())["extra"]["result"],
    "metric name": sorted(RESERVED),
    "type check": refused,
    "docs": table(),
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each place has, as text, with two more fields declared in a copy of the package."""
    copy = tmp_path_factory.mktemp("copy")
    # With what Python has compiled, which would take seconds.
    for name in ("pytest_super", "tests"):
        shutil.copytree(ROOT / name, copy / name)
    (copy / "docs").symlink_to(ROOT / "docs")
    declare(copy / "pytest_super/store/results.py")
    output = copy / "output"
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, "-c", LOOK, output], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    places: dict[str, object] = json.loads(done.stdout)
    return {name: one if isinstance(one, str) else json.dumps(one) for name, one in places.items()}


def declare(file: Path) -> None:
    before, mark, after = file.read_text(encoding="utf-8").partition("\n    @property\n")
    assert mark
    file.write_text(f"{before}{DECLARED}{after}", encoding="utf-8")


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("terminal column", "  warmth  "),
        ("terminal totals", " · rain 7"),
        ("page column", '<th scope="col">warmth</th>'),
        ("page", "<dt>weather</dt><dd>21.5 °C</dd>"),
        ("page", "<dt>pets</dt><dd>cat, dog</dd>"),
        ("notebook", " weather 21.5 °C rain 7 pets cat, dog "),
        ("junit", '"super.weather": "21.5"'),
        ("junit", '"super.pets": "cat, dog"'),
        ("junit suite", '"super.weather": "21.5"'),
        ("junit suite", '"super.rain": "7"'),
        ("junit suite", '"super.masked.data.weather": "21.5"'),
        ("csv", '"weather": "21.5"'),
        ("inspect", '"weather": 21.5, "rain": 7, "pets": ["cat", "dog"]'),
        ("atif", '"weather": 21.5, "rain": 7, "pets": ["cat", "dog"]'),
        ("metric name", '"weather"'),
        ("type check", "the field weather has a value of another kind"),
        ("docs", "| `weather` | number, degrees or `null` | How warm it was. | column `warmth` |"),
        ("docs", "| `pets` | list | Who watched. |  |"),
    ],
)
def test_a_field_that_is_added_to_the_declarations_is_shown_everywhere(
    found: dict[str, str], place: str, shown: str
) -> None:
    assert shown in found[place]


def test_a_table_has_no_column_for_a_list(found: dict[str, str]) -> None:
    assert "pets" not in found["csv"]
