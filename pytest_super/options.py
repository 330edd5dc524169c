"""The command-line options, each with an ini value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.option_types import (
    Epochs,
    amount,
    arguments,
    epochs,
    machines,
    number,
    points,
    positive,
    retrieval,
    sample,
    share,
    sizes,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Option:
    """The option `--super-NAME` and its ini value `super_NAME`."""

    name: str
    help: str
    default: Any = None
    parse: Callable[[str], Any] = str
    choices: tuple[str, ...] | None = None
    is_flag: bool = False
    is_list: bool = False
    metavar: str = ""
    """What a value is, for `--help`."""
    about: str = ""
    """The heading in `--help` of an option that is rarely needed."""

    @property
    def flag(self) -> str:
        return f"--super-{self.name}"

    @property
    def key(self) -> str:
        return f"super_{self.name.replace('-', '_')}"


TASKS, SANDBOXES, AGENTS, GATES = (
    f"super: more on {of}" for of in ("tasks", "sandboxes", "agents", "gates and scores")
)
SETS = ("expert", "masked", "auto", "functions")
SPLITS = ("train", "dev", "test")

AGENT = Option(
    name="agent",
    metavar="NAME",
    help="Run tasks with this agent: gold, react, react-super, swe-agent, agentless, replay, a program in an "
    "image (such as codex or codex==VERSION), package.module:Name, `command: …` or `host-command: …`.",
)
OPTIONS = (
    AGENT,
    Option(
        name="sandbox",
        metavar="NAME",
        help="Where kernels run: docker, bubblewrap, local (no isolation), one that a package offers, "
        "or auto: the first of these that can be used.",
        default="auto",
    ),
    Option(name="set", metavar="NAME", help="Only tasks of this set; repeatable.", is_list=True),
    Option(
        name="category",
        metavar="NAME",
        help="Only tasks of this category, exactly; repeatable.",
        is_list=True,
    ),
    Option(
        name="split",
        metavar="NAME",
        about=TASKS,
        help="Only tasks of this split: train, dev or test; repeatable.",
        is_list=True,
    ),
    Option(
        name="n",
        metavar="N,N",
        about=TASKS,
        help="How many functions of a paper are masked together, such as 1,2. Default: as its file says.",
        parse=sizes,
    ),
    Option(
        name="sample",
        metavar="SIZE:SEED",
        about=TASKS,
        help="Only so many of the selected tasks, drawn at random and balanced over sets, papers and n: "
        "SIZE, or SIZE:SEED for another seed than 0.",
        parse=sample,
    ),
    Option(
        name="epochs",
        metavar="N",
        help="Run every task this many times. With a range such as 2-10 (adaptive: the same) only until the "
        "gates are decided, and at most as many as the baseline's noise requires.",
        default=Epochs(1, 1),
        parse=epochs,
    ),
    Option(
        name="fail-under",
        metavar="VALUE",
        help="Gate: the exit status follows the mean accuracy, or that of another metric as NAME:VALUE, or "
        "NAME<VALUE if lower is better. Errors count as the worst value, misses do not fail. Repeatable.",
        is_list=True,
    ),
    Option(
        name="must-solve",
        metavar="FILE",
        help="File with the ids of tasks that must be solved, each perhaps with a share: `mean 0.8`.",
    ),
    Option(
        name="resume",
        metavar="RUN",
        help="Take over the valid trials of this run (its id, its folder, or latest) as far as nothing has "
        "changed, and run only the others.",
    ),
    Option(
        name="baseline",
        metavar="FILE|RUN",
        help="Compare the run with this baseline (`pytest-super baseline`) or the folder of an earlier run, "
        "and fail it if it is worse.",
    ),
    Option(
        name="max-regression",
        metavar="POINTS",
        help="Largest drop from the baseline that you accept, in points.",
        default=10,
        parse=points,
    ),
    Option(
        name="drift",
        metavar="POINTS",
        about=GATES,
        help="How much whole runs differ that no repeats show, such as by another model behind a name: a "
        "standard deviation in points, which widens the intervals of a comparison.",
        default=0,
        parse=points,
    ),
    Option(
        name="cannot-tell",
        about=GATES,
        help="Whether a run passes or fails when the result is inconclusive.",
        default="pass",
        choices=("pass", "fail"),
    ),
    Option(
        name="all-tasks",
        about=TASKS,
        help="With adaptive epochs, also run the tasks that the baseline never solved in 10 trials or more.",
        is_flag=True,
    ),
    Option(
        name="min-compared",
        metavar="SHARE",
        about=TASKS,
        help="Run nothing if less than this share of the tasks (0 to 1) can be compared with the baseline.",
        default=0.5,
        parse=share,
    ),
    Option(
        name="max-errors",
        metavar="SHARE",
        about=GATES,
        help="Infrastructure errors in up to this share of the trials (0 to 1) do not fail the run. More "
        "than this, by default 0.05, make its figures invalid.",
        parse=share,
    ),
    Option(
        name="scoring",
        about=GATES,
        help="paper: as defined in the papers; reference: as in the published code, including its faults.",
        default="paper",
        choices=("paper", "reference"),
    ),
    Option(
        name="keep",
        about=SANDBOXES,
        help="Keep sandboxes for inspection: those of failed (unsolved) trials, or all.",
        default="never",
        choices=("never", "failed", "all"),
    ),
    Option(
        name="image",
        metavar="IMAGE",
        about=SANDBOXES,
        help="Image of docker sandboxes for tasks without an image of their own, or a folder that "
        "`pytest-super image build --unpack` has written, for bubblewrap.",
    ),
    Option(
        name="machines",
        metavar="slurm:N",
        about=SANDBOXES,
        help="Run trials in N workers on the nodes of a Slurm cluster, in place of -n.",
        parse=machines,
    ),
    Option(
        name="srun",
        metavar="WORDS",
        about=SANDBOXES,
        help="Options of srun for these workers, such as '--partition=gpu --time=2:00:00 --mem=4G'.",
        parse=arguments,
    ),
    Option(
        name="engine",
        metavar="ENGINE,…",
        about=SANDBOXES,
        help="Container engines on which docker sandboxes start, each time where there is the most room: "
        "ssh://[USER@]HOST, unix://PATH, tcp://HOST:PORT, or the name of a docker context; repeatable.",
        is_list=True,
    ),
    Option(
        name="ca-bundle",
        metavar="FILE",
        about=SANDBOXES,
        help="CA certificates (PEM) that pip, git and requests trust in isolated sandboxes with a network. "
        "Default: the file in REQUESTS_CA_BUNDLE or SSL_CERT_FILE.",
    ),
    Option(
        name="pip-config",
        metavar="FILE",
        about=SANDBOXES,
        help="pip configuration file that isolated sandboxes use.",
    ),
    Option(
        name="mount",
        metavar="HOST:INSIDE",
        about=SANDBOXES,
        help="Read-only HOST:INSIDE folder for isolated sandboxes; repeatable.",
        is_list=True,
    ),
    Option(
        name="no-cache",
        about=SANDBOXES,
        help="Run the whole prefix in each trial: neither use nor make snapshots of sandboxes.",
        is_flag=True,
    ),
    Option(name="dir", metavar="DIR", help="Folder for results.", default=".super"),
    Option(
        name="html",
        metavar="FILE",
        help="Write the run's page, one file without requests, to this path at its end.",
    ),
    Option(
        name="attempts",
        metavar="N",
        help="Most attempts at a task until the agent submits, with a reflection between them (Reflexion).",
        default=1,
        parse=positive,
    ),
    Option(
        name="retrieval",
        metavar="NAME:TOKENS",
        about=AGENTS,
        help="What the agent agentless puts into its prompts: the passages that the task file names "
        "(oracle), the parts of the paper and the code that a search finds (search), or neither (none). "
        "With :TOKENS, as in search:8000, about that many with the function's file. Default: search:16000.",
        parse=retrieval,
    ),
    Option(
        name="select",
        about=AGENTS,
        help="Of several epochs of a paper's task, choose one without the gold: by what its experiments "
        "yield (execution), or also by asking the model (model).",
        default="execution",
        choices=("execution", "model"),
    ),
    Option(
        name="agent-arg",
        metavar="WORD",
        about=AGENTS,
        help="Word for an agent that is a program in an image; repeatable.",
        is_list=True,
    ),
    Option(
        name="agent-files",
        metavar="DIR",
        about=AGENTS,
        help="Folder that is copied into the home of such an agent.",
    ),
    Option(
        name="agent-env",
        metavar="NAME=VALUE",
        about=AGENTS,
        help="NAME=VALUE, a variable for it; repeatable. Not for keys.",
        is_list=True,
    ),
    Option(
        name="prompt",
        metavar="FILE",
        about=AGENTS,
        help="File with a system prompt that replaces the agent's own.",
    ),
    Option(
        name="trajectory",
        metavar="RUN|FILE",
        about=AGENTS,
        help="A run's folder or one trajectory, for --super-agent=replay.",
    ),
    Option(
        name="model", metavar="NAME", help="The agent's model: a name that litellm knows, or scripted:FILE."
    ),
    Option(
        name="temperature",
        metavar="NUMBER",
        about=AGENTS,
        help="Temperature of every model call, instead of the agent's own.",
        parse=number,
    ),
    Option(
        name="model-arg",
        metavar="KEY=VALUE",
        about=AGENTS,
        help="KEY=VALUE for every call of the model (VALUE as JSON, else text); repeatable.",
        is_list=True,
    ),
    Option(
        name="max-cost", metavar="DOLLARS", help="Most US dollars that the whole run can cost.", parse=amount
    ),
    Option(
        name="answers",
        metavar="RUN",
        help="Give the model's answers of this run (its id, its folder, latest, or the archive beside a "
        "baseline, by default) again to equal requests of the same trials; none also keeps no answers.",
    ),
    Option(
        name="answers-miss",
        about=GATES,
        help="What becomes of a request that this run did not make: live asks the model, fail ends the "
        "trial.",
        default="live",
        choices=("live", "fail"),
    ),
)
