"""The command-line options, each with an ini value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.option_types import (
    Epochs,
    amount,
    epochs,
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

    @property
    def flag(self) -> str:
        return f"--super-{self.name}"

    @property
    def key(self) -> str:
        return f"super_{self.name.replace('-', '_')}"


SETS = ("expert", "masked", "auto", "functions")
SPLITS = ("train", "dev", "test")

AGENT = Option(
    name="agent",
    help="Run tasks with this agent: gold, react, react-super, swe-agent, agentless, replay, a program in an "
    "image (such as codex or codex==VERSION), package.module:Name, `command: …` or `host-command: …`.",
)
OPTIONS = (
    AGENT,
    Option(
        name="sandbox",
        help="Where kernels run: docker, bubblewrap, local (no isolation), one that a package offers, "
        "or auto: the first of these that can be used.",
        default="auto",
    ),
    Option(name="set", help="Only tasks of this set; repeatable.", is_list=True),
    Option(name="category", help="Only tasks of this category, exactly; repeatable.", is_list=True),
    Option(name="split", help="Only tasks of this split: train, dev or test; repeatable.", is_list=True),
    Option(
        name="n",
        help="How many functions of a paper are masked together, such as 1,2. Default: as its file says.",
        parse=sizes,
    ),
    Option(
        name="sample",
        help="Only so many of the selected tasks, drawn at random and balanced over sets, papers and n: "
        "SIZE, or SIZE:SEED for another seed than 0.",
        parse=sample,
    ),
    Option(
        name="epochs",
        help="Run every task this many times. With a range such as 2-10 (adaptive) only until the gates are "
        "decided, and at most so often as the noise of the baseline's trials asks for.",
        default=Epochs(1, 1),
        parse=epochs,
    ),
    Option(
        name="fail-under",
        help="Gate: the exit status follows the mean accuracy, or that of another metric as NAME:VALUE, or "
        "NAME<VALUE if lower is better. Errors count as the worst value, misses do not fail. Repeatable.",
        is_list=True,
    ),
    Option(
        name="must-solve",
        help="File with the ids of tasks that must be solved, each perhaps with a share: `mean 0.8`.",
    ),
    Option(
        name="resume",
        help="Take over the valid trials of this run (its id, its folder, or latest) as far as nothing has "
        "changed, and run only the others.",
    ),
    Option(
        name="baseline",
        help="Compare the run with this baseline (`pytest-super baseline`) or the folder of an earlier run, "
        "and fail it if it is worse.",
    ),
    Option(
        name="max-regression",
        help="The drop from the baseline to rule out, in points.",
        default=10,
        parse=points,
    ),
    Option(
        name="drift",
        help="How much whole runs differ that no repeats show, such as by another model behind a name: a "
        "standard deviation in points, which widens the intervals of a comparison.",
        default=0,
        parse=points,
    ),
    Option(
        name="cannot-tell",
        help="Whether a run passes or fails if it can neither rule out that drop nor show one; with run-more "
        "it first runs more epochs, like --super-epochs=adaptive.",
        default="pass",
        choices=("pass", "fail", "run-more"),
    ),
    Option(
        name="all-tasks",
        help="With adaptive epochs, also run the tasks that the baseline never solved in 10 trials or more.",
        is_flag=True,
    ),
    Option(
        name="min-compared",
        help="Run nothing if less than this share of the tasks (0 to 1) can be compared with the baseline.",
        default=0.5,
        parse=share,
    ),
    Option(
        name="max-errors",
        help="Infrastructure errors in up to this share of the trials (0 to 1) do not fail the run. More "
        "than this, by default 0.05, make its figures invalid.",
        parse=share,
    ),
    Option(
        name="scoring",
        help="paper: as defined in the papers; reference: as in the published code, including its faults.",
        default="paper",
        choices=("paper", "reference"),
    ),
    Option(
        name="keep",
        help="Keep sandboxes for inspection: those of failed (unsolved) trials, or all.",
        default="never",
        choices=("never", "failed", "all"),
    ),
    Option(name="image", help="Image of docker sandboxes for tasks without an image of their own."),
    Option(
        name="ca-bundle",
        help="CA certificates (PEM) that pip, git and requests trust in isolated sandboxes with a network. "
        "Default: the file in REQUESTS_CA_BUNDLE or SSL_CERT_FILE.",
    ),
    Option(name="pip-config", help="pip configuration file that isolated sandboxes use."),
    Option(
        name="mount", help="Read-only HOST:INSIDE folder for isolated sandboxes; repeatable.", is_list=True
    ),
    Option(
        name="no-cache",
        help="Run the whole prefix in each trial: neither use nor make snapshots of sandboxes.",
        is_flag=True,
    ),
    Option(name="dir", help="Folder for results.", default=".super"),
    Option(name="html", help="Write the run's page, one file without requests, to this path at its end."),
    Option(
        name="attempts",
        help="Most attempts at a task until the agent submits, with a reflection between them (Reflexion).",
        default=1,
        parse=positive,
    ),
    Option(
        name="retrieval",
        help="What the agent agentless puts into its prompts: the passages that the task file names "
        "(oracle), the parts of the paper and the code that a search finds (search), or neither (none). "
        "With :TOKENS, as in search:8000, about that many with the function's file. Default: search:16000.",
        parse=retrieval,
    ),
    Option(
        name="select",
        help="Of several epochs of a paper's task, choose one without the gold: by what its experiments "
        "yield (execution), or also by asking the model (model).",
        default="execution",
        choices=("execution", "model"),
    ),
    Option(
        name="agent-arg", help="Word for an agent that is a program in an image; repeatable.", is_list=True
    ),
    Option(name="agent-files", help="Folder that is copied into the home of such an agent."),
    Option(name="agent-env", help="NAME=VALUE, a variable for it; repeatable. Not for keys.", is_list=True),
    Option(name="prompt", help="File with a system prompt that replaces the agent's own."),
    Option(name="trajectory", help="A run's folder or one trajectory, for --super-agent=replay."),
    Option(name="model", help="The agent's model: a name that litellm knows, or scripted:FILE."),
    Option(
        name="temperature",
        help="Temperature of every model call, instead of the agent's own.",
        parse=number,
    ),
    Option(
        name="model-arg",
        help="KEY=VALUE for every call of the model (VALUE as JSON, else text); repeatable.",
        is_list=True,
    ),
    Option(name="max-cost", help="Most US dollars that the whole run can cost.", parse=amount),
    Option(
        name="answers",
        help="Give the model's answers of this run (its id, its folder, latest, or the archive beside a "
        "baseline, by default) again to equal requests of the same trials; none also keeps no answers.",
    ),
    Option(
        name="answers-miss",
        help="What becomes of a request that this run did not make: live asks the model, fail ends the "
        "trial.",
        default="live",
        choices=("live", "fail"),
    ),
)


# From pytest 9.2 on, a number in `[tool.pytest]` can be written without quotes.
SCALAR: Any = str | int | float if pytest.version_tuple >= (9, 2) else "string"


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("super", "research-reproduction tasks (pytest-super)")
    for option in OPTIONS:
        ini_help = f"default of {option.flag}"
        if option.is_flag:
            # None, not False: only an option that was given overrides the ini value.
            group.addoption(option.flag, dest=option.key, action="store_true", default=None, help=option.help)
            parser.addini(option.key, ini_help, type="bool", default=None)
        elif option.is_list:
            metavar = option.name.upper()
            group.addoption(option.flag, dest=option.key, action="append", metavar=metavar, help=option.help)
            parser.addini(option.key, ini_help, type="linelist", default=[])
        else:
            text = option.help if option.default is None else f"{option.help} Default: {option.default}."
            metavar = option.name.upper()
            group.addoption(option.flag, dest=option.key, metavar=metavar, default=None, help=text)
            parser.addini(option.key, ini_help, type=SCALAR, default="")
    parser.addini("super_tasks", "what is collected when no path is given", type="args", default=["tasks"])


def value_of(config: pytest.Config, option: Option) -> Any:
    """The option's value, else its ini value, else its default. Raises pytest.UsageError."""
    given = config.getoption(option.key)
    source = option.flag
    refuse_empty(option, given)
    if given is None:
        given, source = ini_value(config, option.key), f"the ini value {option.key}"
    if option.is_list or option.is_flag:
        return given
    if given in ("", None):
        return option.default
    try:
        value = option.parse(str(given))
    except ValueError as error:
        raise pytest.UsageError(f"{source}={given}: {error}") from None
    if option.choices and value not in option.choices:
        from pytest_super.words import did_you_mean

        meant = did_you_mean(value, option.choices)
        raise pytest.UsageError(f"{source}={given}: choose from {', '.join(option.choices)}{meant}")
    return value


def ini_value(config: pytest.Config, key: str) -> Any:
    """The ini value. Raises pytest.UsageError for any error that pytest raises about its type."""
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"the ini value {key}: {error}") from None


def refuse_empty(option: Option, given: str | list[str] | None) -> None:
    """Raises pytest.UsageError for an empty value, for example from an unset shell variable.

    Otherwise the option would be ignored silently.
    """
    if given == "" or (isinstance(given, list) and "" in given):
        raise pytest.UsageError(f"{option.flag}= is empty: give it a value, or leave it out")


def refuse_unknown_options(parser: pytest.Parser, arguments: list[str]) -> None:
    """Raises pytest.UsageError for an option that looks like ours and that no plugin or conftest has."""
    flags = [option.flag for option in OPTIONS]
    given = {argument.partition("=")[0] for argument in arguments if argument.startswith("--super-")}
    if given.issubset(flags):
        return
    for argument in parser.parse_known_and_unknown_args(arguments)[1]:
        name = argument.partition("=")[0]
        if name in given:
            from pytest_super.words import did_you_mean

            raise pytest.UsageError(f"there is no option {name}{did_you_mean(name, flags)}")


def refuse_unknown_ini_value(warning: str) -> None:
    """Raises pytest.UsageError if this is pytest's warning of an unknown ini value that looks like ours.

    Otherwise a gate would be missing without an error.
    """
    known = [*(option.key for option in OPTIONS), "super_tasks"]
    _, is_unknown, key = warning.strip().partition("Unknown config option: ")
    if is_unknown and key.startswith("super_"):
        from pytest_super.words import did_you_mean

        raise pytest.UsageError(f"there is no ini value {key}{did_you_mean(key, known)}")


def has_agent(config: pytest.Config) -> bool:
    """Whether the run has an agent. Without one nothing is collected.

    Raises pytest.UsageError if other options are given without an agent.
    """
    refuse_empty(AGENT, config.getoption("super_agent"))
    if config.getoption("super_agent") or ini_value(config, AGENT.key):
        return True
    given = [option.flag for option in OPTIONS if config.getoption(option.key) is not None]
    if given:
        raise pytest.UsageError(f"{', '.join(given)} needs --super-agent, for example --super-agent=gold")
    return False
