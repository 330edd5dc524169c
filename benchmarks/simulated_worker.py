"""What `controller.py` lets xdist start in place of a worker: it reports trials that cost nothing.

xdist sends the source of this module to each process. It speaks to the controller as `xdist.remote` does.
"""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

# The id of the trial that was recorded.
RECORDED = "recorded-trial"


class Worker:
    def __init__(self, channel: Any) -> None:
        self.channel = channel
        given, *_ = channel.receive()
        self.facts = {"worker_id": given["workerid"], "testrun_uid": given["testrunuid"]}
        self.trials = Path(os.environ["SIMULATED_TRIALS"].format(run=given.get("super", {}).get("id")))
        self.ids = [f"task-{number:05}" for number in range(int(os.environ["SIMULATED_COUNT"]))]
        self.recorded = Path(os.environ["SIMULATED_REPORTS"]).read_text().splitlines()

    def send(self, event: str, **fields: Any) -> None:
        self.channel.send((event, fields))

    def work(self) -> None:
        version = {"version": "3", "version_info": (3,), "sysplatform": "simulated", "platform": ""}
        self.send("workerready", workerinfo={**version, "executable": "", "cwd": os.getcwd()})
        ids = [nodeid_of(id) for id in self.ids]
        self.send("collectionfinish", topdir=os.getcwd(), ids=ids)
        items: deque[int] = deque()
        is_over = False
        while items or not is_over:
            # As a worker does, it runs an item once it knows the next one, or that there is none.
            while len(items) < 2 and not is_over:
                command, fields = self.channel.receive()
                is_over = command == "shutdown"
                items.extend(fields.get("indices", ()))
            if items:
                self.run(items.popleft())
        output = {"exitstatus": 0, "shouldfail": False, "shouldstop": False}
        self.send("workerfinished", workeroutput=output)

    def run(self, index: int) -> None:
        id = self.ids[index]
        where = {"nodeid": nodeid_of(id), "location": ("tasks/many.task.yaml", index, id)}
        self.send("logstart", **where)
        for line in self.recorded:
            report = {**json.loads(line.replace(RECORDED, id)), "item_index": index, **self.facts}
            if "super_result" in report:
                folder = self.trials / id / "1.0"
                folder.mkdir(parents=True)
                (folder / "result.json").write_text(json.dumps(report["super_result"]))
            self.send("testreport", data=report)
        self.send("logfinish", **where)
        self.send("runtest_protocol_complete", item_index=index, duration=0.01)


def nodeid_of(id: str) -> str:
    return f"tasks/many.task.yaml::{id}"


if __name__ == "__channelexec__":
    Worker(channel).work()  # type: ignore[name-defined]  # noqa: F821
