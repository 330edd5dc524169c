"""Where the trials of a run with recorded answers first asked what is not recorded."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_super.store.answers import FILE, read_answers
from pytest_super.store.results import TrialResult, folder_name
from pytest_super.words import counted, one_line

# So many trials are named. The others are counted.
MOST_NAMED = 10


def missed_lines(run: Path, results: Sequence[TrialResult], source: str) -> Iterator[str]:
    """How many trials got all answers from the run `source`, and the first call of each other that got none.

    Nothing if no trial asked a model. Raises SuperError.
    """
    trials, missed = 0, []
    for one in results:
        calls = read_answers(run / folder_name(one) / FILE).calls.values()
        trials += bool(calls)
        if first := next((call for call in calls if call.taken is None), None):
            missed.append(f"{one.name}: call {first.number}: {first.differs or 'nothing of it is recorded'}")
    if trials:
        yield f"{trials - len(missed)} of {counted(trials, 'trial')} got all answers from {source}"
    yield from (one_line(f"  {line}") for line in missed[:MOST_NAMED])
    if len(missed) > MOST_NAMED:
        yield f"  and {len(missed) - MOST_NAMED} more"
