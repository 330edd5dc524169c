"""Makes the pages: jinja2 templates in which every value is escaped, under a strict security policy."""

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pytest_super.gate.figures import why_invalid
from pytest_super.report.page.charts import bars_of, compute_against_steps, cost_against_headline
from pytest_super.report.page.conversation import ShownCall
from pytest_super.report.page.figures import figures_of, headline_of
from pytest_super.report.page.pair import Pair
from pytest_super.report.page.stored import OUTCOMES, ShownRun, ShownTrial, read_run
from pytest_super.report.page.trial import TRAJECTORY, ShownDetail, detail_of
from pytest_super.report.summary import cause_lines
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors
from pytest_super.words import one_line, printable, printable_line

FOLDER = Path(__file__).parent
LONGEST = 300
# A browser lays out a table of all trials of a large run for seconds.
MOST_ROWS = 500
# Facts of run.json that are shown, with their labels. Not the arguments, which can hold a secret.
FACTS = ("agent", "model", "answers", "sandbox", "scoring", "epochs", "resumed", "versions")
# Links to other trials, and the keys that follow them. Letters would be typed by who dictates (WCAG 2.1.4).
AROUND = (("prev", "ArrowLeft", "← Previous"), ("next", "ArrowRight", "Next →"))


@cache
def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=inert,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["brief"] = brief
    found.filters["number"] = number
    return found


def inert(value: Any) -> Any:
    """Every text that a template shows: without characters that control a terminal or the direction."""
    return printable(value) if type(value) is str else value


def brief(value: str) -> str:
    return one_line(value, LONGEST)


def number(value: float | None, form: str = "%.3f") -> str:
    return "-" if value is None else form % value


@cache
def resource(name: str) -> tuple[Markup, str]:
    """The text of our own style or script, and the source expression that allows exactly this text."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"'sha256-{digest}'"


def policy(*, is_served: bool) -> str:
    """Let only our own script and style run, and only a served page can ask its server."""
    connect = "; connect-src 'self'" if is_served else ""
    script, style = resource("page.js")[1], resource("page.css")[1]
    return (
        f"default-src 'none'; script-src {script}; style-src {style}{connect}; "
        "base-uri 'none'; form-action 'none'"
    )


def render(template: str, title: str, *, version: str = "", **values: Any) -> str:
    """A whole page. `version` is that of a served page, which follows its run."""
    page = environment().get_template(template)
    return page.render(
        title=printable_line(title),
        policy=policy(is_served=bool(version)),
        script=resource("page.js")[0],
        style=resource("page.css")[0],
        version=version,
        outcomes=OUTCOMES,
        most_rows=MOST_ROWS,
        **values,
    )


def run_page(
    run: ShownRun,
    links: Sequence[str],
    *,
    version: str = "",
    up: str = "",
    details: Sequence[tuple[str, ShownTrial, Markup]] | None = None,
) -> str:
    """`links` has an address, or "", for each trial. `details` are only in the page that is one file."""
    figures, headline = figures_of(run.ended), headline_of(run.ended)
    counts = Counter(one.outcome for one in run.trials)
    return render(
        "run.html",
        f"{run.name} - pytest-super",
        version=version,
        run=run,
        links=links,
        up=up,
        facts=list(shown_facts(run.facts)),
        counts=[(name, counts[name]) for name in OUTCOMES if counts[name]],
        causes=list(cause_lines(trial.result for trial in run.trials)),
        invalid=why_invalid(run.ended, run.max_errors),
        figures=figures,
        has_intervals=any(one.bounds for row in figures.rows for one in row.figures),
        bars=bars_of(figures.levels, headline),
        cost=cost_against_headline(run.trials, headline),
        compute=compute_against_steps(run.trials),
        details=details,
        without_details=len(run.trials) - len(details or ()),
    )


def trial_body(view: ShownDetail, *, id: str, level: int, source: str) -> Markup:
    """The detail of a trial. Ids in it begin with `id`, headings of steps have this level."""
    template = environment().get_template("trial.html")
    return Markup(template.render(view=view, id=id, level=level, source=source, outcomes=OUTCOMES))


def trial_page(
    run: ShownRun,
    view: ShownDetail,
    *,
    around: Sequence[tuple[str, str] | None],
    conversation: tuple[Sequence[ShownCall], str],
    version: str,
    up: str,
    source: str,
) -> str:
    """`around` has addresses and names of the trials before and after it, and `conversation` its calls of the
    model with what cannot be read of them.
    """
    body = trial_body(view, id="step", level=2, source=source)
    title = f"{view.trial.result.name} - {run.name}"
    links = [(*words, link) for words, link in zip(AROUND, around, strict=True)]
    calls, unread = conversation
    shown = {"run": run, "view": view, "body": body, "around": links, "calls": calls, "unread": unread}
    return render("trial_page.html", title, version=version, up=up, **shown)


def runs_page(
    sides: Sequence[ShownRun], pair: Pair, links: Sequence[Mapping[str, str]], *, version: str
) -> str:
    """`links` has for each run the addresses of the first trial of its tasks."""
    title = f"{sides[0].name} and {sides[1].name} - pytest-super"
    return render("runs.html", title, version=version, sides=sides, pair=pair, links=links)


def shown_facts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in FACTS:
        value = facts.get(name)
        if value in (None, "", [], {}):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{key} {one}" for key, one in value.items())
        yield name, " ".join(map(str, value)) if isinstance(value, list) else str(value)


MOST_OF_TRIAL = 200_000
"""Characters of one trial in the page."""
MOST_OF_ALL = 10_000_000
"""Characters of all of them: a browser opens this many in less than two seconds."""
# A trial that gets less is left out: it would not be worth reading.
LEAST_OF_TRIAL = 20_000


def write_page(path: Path, folder: Path) -> None:
    """Write the page of the run in `folder`. Raises InfrastructureError if the disk refuses."""
    page = one_file(read_run(folder), os.path.relpath(folder, path.parent))
    # A link stays, and leads to the page.
    target = Path(os.path.realpath(path))
    with disk_errors(path, "--super-html"):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, page)


def one_file(run: ShownRun, way: str) -> str:
    """Write as many trials as fit. `way` is the path from the page's folder to that of the run, for links."""
    chosen = run.trials[: MOST_OF_ALL // LEAST_OF_TRIAL]
    most = min(MOST_OF_TRIAL, MOST_OF_ALL // max(len(chosen), 1))
    details = []
    for number, trial in enumerate(chosen):
        view, source = detail_of(trial, run.folder, most), quote(f"{way}/{trial.folder}/{TRAJECTORY}")
        details.append((f"t{number}", trial, trial_body(view, id=f"t{number}", level=4, source=source)))
    links = [f"#t{number}" if number < len(chosen) else "" for number in range(len(run.trials))]
    return run_page(run, links, details=details)
