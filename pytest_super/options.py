"""The command-line options, each with an ini value."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super import option_types

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Option:
    """The option `--super-NAME` and its ini value `super_NAME`."""

    usage: str
    """`NAME=VALUE`, where VALUE says what a value is; only `NAME` for a flag, and where choices say it."""
    help: str
    _: KW_ONLY
    default: Any = None
    parse: Callable[[str], Any] = str
    """Of a list, for each value."""
    parse_path: Callable[[Path], Any] | None = None
    """In place of `parse`: gets the absolute path."""
    choices: tuple[str, ...] | None = None
    is_flag: bool = False
    is_list: bool = False

    @property
    def name(self) -> str:
        return self.usage.partition("=")[0]

    @property
    def metavar(self) -> str:
        return self.usage.partition("=")[2] or "|".join(self.choices or ())

    @property
    def flag(self) -> str:
        return f"--super-{self.name}"

    @property
    def key(self) -> str:
        return f"super_{self.name.replace('-', '_')}"


SETS = ("expert", "masked", "auto", "functions")

AGENT = Option(
    "agent=NAME",
    "Run tasks with this agent: gold, react, react-super, swe-agent, agentless, replay, a program in an "
    "image (such as codex or codex==VERSION), package.module:Name, `command: …` or `host-command: …`.",
)
GROUPS = {
    "research-reproduction tasks (pytest-super)": (
        AGENT,
        Option(
            "sandbox=NAME",
            "Where kernels run: docker, bubblewrap, local (no isolation), one that a package offers, or "
            "auto: the first of these that can be used.",
            default="auto",
        ),
        Option("set", "Only tasks of this set.", choices=SETS, is_list=True),
        Option("category=NAME", "Only tasks of exactly this category.", is_list=True),
        Option(
            "epochs=N",
            "Run every task this many times. With a range such as 1-10 (adaptive: the same) only until "
            "the gates are decided, and at most as many as the baseline's noise requires.",
            default=option_types.Epochs(1, 1),
            parse=option_types.epochs,
        ),
        Option(
            "fail-under=VALUE",
            "Gate: the exit status follows the mean accuracy, or that of another metric as NAME:VALUE, or "
            "NAME<VALUE if lower is better. Errors count as the worst value, misses do not fail.",
            is_list=True,
        ),
        Option(
            "must-solve=FILE",
            "File with the ids of tasks that must be solved, each perhaps with a share: `mean 0.8`.",
            parse_path=option_types.file,
        ),
        Option(
            "resume=RUN",
            "Take over the valid trials of this run (its id, its folder, or latest) as far as nothing has "
            "changed, and run only the others.",
        ),
        Option(
            "baseline=FILE|RUN",
            "Compare the run with this baseline (`pytest-super baseline`) or the folder of an earlier "
            "run, and fail it if it is worse.",
        ),
        Option(
            "max-regression=POINTS",
            "Largest drop from the baseline that you accept, in points.",
            default=10,
            parse=option_types.points,
        ),
        Option(
            "anchor=FILE|RUN",
            "With --super-baseline: also compare the run with this older baseline, such as that of the last "
            "release, which stays where it is. Both must pass.",
        ),
        Option("dir=DIR", "Folder for results.", default=".super"),
        Option(
            "html=FILE",
            "Write the run's page, one file without requests, to this path at its end.",
            parse_path=Path,
        ),
        Option(
            "attempts=N",
            "Most attempts at a task until the agent submits, with a reflection between them (Reflexion).",
            default=1,
            parse=option_types.positive,
        ),
        Option("model=NAME", "The agent's model: a name that litellm knows, or scripted:FILE."),
        Option("max-cost=DOLLARS", "Most US dollars that the whole run can cost.", parse=option_types.amount),
        Option(
            "answers=RUN",
            "Give the model's answers of this run (its id, its folder, latest, or the archive beside a "
            "baseline, by default) again to equal requests of the same trials; none also keeps no "
            "answers.",
        ),
    ),
    "super: more on tasks": (
        Option("split", "Only tasks of this split.", choices=("train", "dev", "test"), is_list=True),
        Option(
            "n=N,N",
            "How many functions of a paper are masked together, such as 1,2. Default: as its file says.",
            parse=option_types.sizes,
        ),
        Option(
            "sample=SIZE:SEED",
            "Only so many of the selected tasks, drawn at random and balanced over sets, papers and n: "
            "SIZE, or SIZE:SEED for another seed than 0.",
            parse=option_types.sample,
        ),
        Option(
            "all-tasks",
            "With adaptive epochs, also run the tasks that the baseline never solved in 10 trials or more.",
            is_flag=True,
        ),
    ),
    "super: more on gates and scores": (
        Option(
            "pass-chance=CHANCE",
            "With adaptive epochs: how often an agent that has not changed shall pass, more than 0 and less "
            "than 1. A lower chance costs less, and finds less.",
            default=option_types.PASS_CHANCE,
            parse=option_types.chance,
        ),
        Option(
            "cannot-tell",
            "Whether a run passes or fails when the result is inconclusive.",
            default="pass",
            choices=("pass", "fail"),
        ),
        Option(
            "max-errors=SHARE",
            "Infrastructure errors in up to this share of the trials (0 to 1) do not fail the run. More "
            "than this, by default 0.05, make its figures invalid.",
            parse=option_types.share,
        ),
        Option(
            "scoring",
            "paper: as defined in the papers; reference: as in the published code, including its faults.",
            default="paper",
            choices=("paper", "reference"),
        ),
        Option(
            "answers-miss",
            "What becomes of a request that this run did not make: live asks the model, fail ends the trial.",
            default="live",
            choices=("live", "fail"),
        ),
    ),
    "super: more on sandboxes": (
        Option(
            "keep",
            "Keep sandboxes for inspection: those of failed (unsolved) trials, or all.",
            default="never",
            choices=("never", "failed", "all"),
        ),
        Option(
            "image=IMAGE",
            "Image of docker sandboxes for tasks without an image of their own, or a folder that "
            "`pytest-super image build --unpack` has written, for bubblewrap.",
        ),
        Option(
            "machines=slurm:N|N*ssh://HOST,…",
            "Run trials in N workers on the nodes of a Slurm cluster, or on each machine, in place of -n.",
            parse=option_types.machines,
        ),
        Option(
            "srun=WORDS",
            "Options of srun for these workers, such as '--partition=gpu --time=2:00:00 --mem=6G'.",
            parse=option_types.arguments,
        ),
        Option(
            "ca-bundle=FILE",
            "CA certificates (PEM) that pip, git and requests trust in isolated sandboxes with a network. "
            "Default: the file in REQUESTS_CA_BUNDLE or SSL_CERT_FILE.",
            parse_path=option_types.file,
        ),
        Option(
            "pip-config=FILE",
            "pip configuration file that isolated sandboxes use.",
            parse_path=option_types.file,
        ),
        Option(
            "mount=HOST:INSIDE",
            "Read-only HOST:INSIDE folder for isolated sandboxes.",
            parse=option_types.mount,
            is_list=True,
        ),
        Option(
            "no-cache",
            "Run the whole prefix in each trial: neither use nor make snapshots of sandboxes.",
            is_flag=True,
        ),
    ),
    "super: more on agents": (
        Option(
            "retrieval=NAME:TOKENS",
            "What the agent agentless puts into its prompts: the passages that the task file names "
            "(oracle), the parts of the paper and the code that a search finds (search), or neither "
            "(none). With :TOKENS, as in search:8000, about that many with the function's file.",
            default=option_types.Retrieval(),
            parse=option_types.retrieval,
        ),
        Option(
            "select",
            "Of several epochs of a paper's task, choose one without the gold: by what its experiments "
            "yield (execution), or also by asking the model (model).",
            default="execution",
            choices=("execution", "model"),
        ),
        Option(
            "agent-arg=WORD",
            "Word for an agent that is a program in an image.",
            parse=option_types.word,
            is_list=True,
        ),
        Option(
            "agent-files=DIR",
            "Folder that is copied into the home of such an agent.",
            parse_path=option_types.folder,
        ),
        Option(
            "agent-env=NAME=VALUE",
            "Variable for such an agent. Not for keys.",
            parse=option_types.variable,
            is_list=True,
        ),
        Option(
            "prompt=FILE",
            "File with a system prompt that replaces the agent's own.",
            parse_path=option_types.file_text,
        ),
        Option("trajectory=RUN|FILE", "A run's folder or one trajectory, for --super-agent=replay."),
        Option(
            "temperature=NUMBER",
            "Temperature of every model call, instead of the agent's own.",
            parse=option_types.number,
        ),
        Option(
            "model-arg=KEY=VALUE",
            "Parameter of every call of the model (VALUE as JSON, else text).",
            parse=option_types.parameter,
            is_list=True,
        ),
    ),
}
"""By their headings in `--help`; the first has those that are needed most."""
OPTIONS = tuple(chain.from_iterable(GROUPS.values()))
