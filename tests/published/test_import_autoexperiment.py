"""The published tasks of AutoExperiment, from the table that they were made of."""

import ast
import csv
import gzip
import json
import os
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from pytest_super.metrics.reference_report import reference_report
from pytest_super.metrics.self_report import expected_report
from pytest_super.tasks.combinations import Items, all_places
from pytest_super.tasks.task import Task
from tests.unit.test_import_autoexperiment import Checkout, checkout  # noqa: F401

DATA = "autoexperiment-published.json.gz"
FUNCTIONS = {"2110.03485": 5, "2205.00048": 8, "2303.11932": 15, "2309.05569": 10}
# The only function without a description.
UNDESCRIBED = ("2309.05569", 8)
ITEMS = {1: 36, 2: 179, 3: 605, 4: 1566, 5: 3186}


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """The values, ids and commands alone: they are not part of the project."""
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("SUPER_SHARED_DATA", beside), DATA)
    if not path.is_file():
        pytest.skip(f"needs {DATA}: set SUPER_SHARED_DATA to its folder")
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return data


def imported(checkout: Checkout, data: dict[str, Any]) -> dict[str, Task]:  # noqa: F811
    """The papers, with stand-ins for their code."""
    for paper, count in FUNCTIONS.items():
        functions = [
            {
                "func_id": str(one),
                "file": "src/fair.py",
                "name": f"f{one}",
                "description": "" if (paper, one) == UNDESCRIBED else "It computes.",
            }
            for one in range(count)
        ]
        code = "".join(f"def f{one}(x):\n    return x + {one}\n\n\n" for one in range(count))
        older = [one for one in data["older"] if one["paper_id"] == paper]
        checkout.paper(functions, older, paper=paper, code=code)
    with (checkout.folder().parent / "mlrc_exps.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["description", *data["experiments"][0]])
        table.writeheader()
        table.writerows(data["experiments"])
    assert checkout.run() == 1
    assert "function 8: left out: it has no description" in checkout.out
    return {paper: checkout.task(paper) for paper in FUNCTIONS}


def test_the_items_are_those_that_were_published(
    checkout: Checkout,  # noqa: F811
    published: dict[str, Any],
) -> None:
    papers = imported(checkout, published)
    found = {n: [[*all_places(paper, n)] for paper in papers.values()] for n in ITEMS}
    assert {n: sum(map(len, places)) for n, places in found.items()} == ITEMS
    items = [(Items(task), one) for task in papers.values() for n in (1, 2) for one in all_places(task, n)]
    made = {item.id: item for paper, one in items for item in [paper.item(one)]}
    tasks = {f"{one['paper_id']}_{one['func_ids']}": one for one in published["tasks"]}
    assert made.keys() == tasks.keys()
    for id, task in tasks.items():
        gold = task["results"]
        gold = ast.literal_eval(gold) if isinstance(gold, str) else gold
        assert expected_report(made[id].experiments) == gold
        assert reference_report(made[id].experiments, json.dumps(gold)) == 1.0
        commands = chain.from_iterable((f"echo {one.name}", one.command) for one in made[id].experiments)
        assert "\n".join(commands).strip() == task["solution"].strip()
