"""An agent in Python that runs the loop of mini-swe-agent on the host, for the cells of a trial."""

MINI_LOOP = r"""
import json
import platform
from pathlib import Path

import minisweagent
import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.exceptions import Submitted
from minisweagent.models.utils import actions_text

CONFIG = yaml.safe_load(Path(minisweagent.package_dir, "config/mini_textbased.yaml").read_text())
TEMPLATES = {name: CONFIG["agent"][name] for name in ("system_template", "instance_template")}
ACTION = r"```mswea_bash_command\s*\n(.*?)\n```"
DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
ANSWER = f"\nEnd by `echo {DONE}; cat FILE`, where FILE holds the answer as JSON."


class Part:
    config = None

    def __init__(self, trial):
        self.trial = trial

    def get_template_vars(self, **_):
        return platform.uname()._asdict()

    def serialize(self):
        return {}


class Model(Part):
    def query(self, messages, **_):
        sent = [{key: message[key] for key in ("role", "content")} for message in messages]
        completion = self.trial.complete(sent, temperature=0.2)
        actions = actions_text.parse_regex_actions(
            completion.text,
            action_regex=ACTION,
            format_error_template=CONFIG["model"]["format_error_template"],
            template_kwargs={"finish_reason": completion.finish_reason},
        )
        return {"role": "assistant", "content": completion.text, "extra": {"actions": actions}}

    def format_message(self, **message):
        return message

    def format_observation_messages(self, message, outputs, template_vars=None):
        template = CONFIG["model"]["observation_template"]
        return actions_text.format_observation_messages(outputs, observation_template=template)


class Environment(Part):
    def execute(self, action, cwd=""):
        step = self.trial.execute(f"%%bash\n{action['command']}")
        while step.outcome == "timed_out":
            step = self.trial.continue_wait()
        first, _, rest = step.observation.lstrip().partition("\n")
        if first.strip() == DONE and step.outcome == "ok":
            raise Submitted({"role": "exit", "content": rest, "extra": {"submission": rest}})
        return {"output": step.observation, "returncode": int(step.outcome != "ok"), "exception_info": ""}


class Mini:
    def run(self, trial):
        agent = DefaultAgent(Model(trial), Environment(trial), cost_limit=0, **TEMPLATES)
        submission = agent.run(trial.task.query + ANSWER).get("submission")
        if submission:
            trial.submit(json.loads(submission))
"""
