"""The published expert tasks, imported."""

import json

from tests.published.trajectories import expert_tasks
from tests.unit.test_import_super import EXPERT, Data, data  # noqa: F401


def test_the_published_queries_and_answers_are_imported_as_they_are(data: Data) -> None:  # noqa: F811
    published = expert_tasks()
    rows = {
        name: EXPERT
        | {
            "task_id": name,
            "query": task["query"],
            "answer": json.dumps(task["inferred_answer"]),
            "entrypoint": task["inferred_entrypoint"],
        }
        for name, task in published.items()
    }
    data.write("expert", *rows.values())
    assert data.run("expert") == 0
    tasks = data.tasks()
    assert {name: task.query for name, task in tasks.items()} == {n: t["query"] for n, t in published.items()}
    assert {name: task.answer for name, task in tasks.items()} == {
        name: task["inferred_answer"] for name, task in published.items()
    }
