"""What a trial can spend: compute seconds, tokens, cost, steps, wall time."""

import time
from collections.abc import Callable

from pytest_super.model.completion import NO_USAGE, Usage
from pytest_super.tasks.task import TOKEN_BUDGETS, Limits, Task

# Seconds. While the model is waited for, the time left stands still, and whoever waits for a shorter one
# would ask for it in a loop.
MOMENT = 0.05


class Budget:
    """What the trial has used and what is left. Never raises: the trial decides what a spent budget means.

    Compute time is read from the kernel's meter, so it continues while the agent thinks about a cell that is
    still running. Processor time of what cells leave behind is added by `charge_work`. What runs before
    `start_metering` is free.
    """

    def __init__(self, limits: Limits, *, tokens: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.token_limit = limits.tokens or tokens
        self.clock = clock
        # What the agent has told of its own calls, and the calls of the trial's model.
        self._told = self._asked = NO_USAGE
        self.recorded_seconds = 0.0
        """What recorded answers took when they were recorded, and have not taken now."""
        self._passed: list[tuple[float, float]] = []
        """The same at earlier times of the clock."""
        self.model_seconds = 0.0
        self.steps = 0
        # A meter that stays at zero: `float()` is 0.0.
        self._metered: Callable[[], float] = float
        self._left_over = 0.0
        # The meter at the last sample of the sandbox's processes.
        self._sampled = 0.0
        self._started: float | None = None
        self._portion = 1.0
        self.waited_seconds = 0.0
        """The part of the waiting that is known."""
        self._waited: Callable[[], float] = float

    def start_metering(self, busy_seconds: Callable[[], float]) -> None:
        """From now on, count the growth of `busy_seconds` as compute time, and let wall time pass."""
        before = self._metered() - busy_seconds()
        # One assignment, because the thread of `charge_work` reads the meter.
        self._metered = lambda: before + busy_seconds()
        self._sampled = self._metered()
        if self._started is None:
            self._started = self.clock()

    def leave_out(self, waited: Callable[[], float]) -> None:
        """Do not count as wall time the seconds that `waited` returns, which is asked only if it matters."""
        self._waited = waited

    def update_waited(self) -> None:
        self.waited_seconds = max(self.waited_seconds, self._waited())

    def stop_metering(self) -> None:
        """Keep the compute time so far, and count no more until another kernel is metered."""
        counted = self._metered()
        self._metered = lambda: counted

    def charge_work(self, processor_seconds: float) -> None:
        """Count the processor time of a sample, as far as it exceeds the time in cells since the last sample.

        A sample never has more than the time since the last one. That is not measured here: under load,
        samples come late and then several at once.
        """
        metered = self._metered()
        before, self._sampled = self._sampled, metered
        self._left_over += max(0.0, processor_seconds - (metered - before))

    def allow(self, portion: float) -> None:
        """Allow only this portion of the token limit, until the next call."""
        self._portion = portion

    @property
    def tokens_allowed(self) -> int:
        """Prompt tokens that can be used in total: the limit, or the portion of it that is allowed now."""
        return round(self.token_limit * self._portion)

    @property
    def compute_seconds(self) -> float:
        return self._metered() + self._left_over

    @property
    def wall_seconds(self) -> float:
        """Seconds since the start, without known waits for the model, with the time of recorded answers."""
        if self._started is None:
            return 0.0
        return self.clock() - self._started - self.waited_seconds + self.recorded_seconds

    def seconds_left(self) -> float:
        """Seconds that a cell can still run before the compute or the wall budget is spent."""
        return max(0.0, min(self.limits.compute - self.compute_seconds, self.wall_left()))

    def wall_left(self) -> float:
        """Seconds of wall time, which includes answers of the model but not the waiting for it."""
        limit = self.limits.wall_or_default
        if self.wall_seconds >= limit - MOMENT:
            self.update_waited()
        left = limit - self.wall_seconds
        return 0.0 if 0.0 < left < MOMENT else left

    @property
    def used(self) -> Usage:
        """What all calls of models have used."""
        return self._told + self._asked

    @property
    def prompt_tokens(self) -> int:
        return self.used.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        return self.used.completion_tokens

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None if no price is known."""
        return self.used.cost_usd

    def charge_model(
        self, *, prompt_tokens: int, completion_tokens: int, cost_usd: float | None, seconds: float
    ) -> None:
        """Count one call of a model. `cost_usd` is None if it is not known."""
        used = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cost_usd=cost_usd)
        self._told += used
        self.model_seconds += seconds

    def charge_call(self, used: Usage, seconds: float, began: float | None = None) -> None:
        """Count a call of the trial's model, asked at the time `began`, until `charge_usage` replaces it."""
        self._asked += used
        self.model_seconds += seconds
        if used.recorded:
            self._pass_recorded(seconds, self.clock() if began is None else began)

    def _pass_recorded(self, seconds: float, began: float) -> None:
        """Let the time of a recorded answer pass, once for answers that were asked for at once."""
        ahead = next((passed for when, passed in reversed(self._passed) if when < began), 0.0)
        now = self.clock()
        self.recorded_seconds = max(self.recorded_seconds, began + ahead + seconds - now)
        self._passed.append((now, self.recorded_seconds))

    def charge_usage(self, booked: Usage) -> None:
        """Replace everything that `charge_call` has counted so far by `booked`, from the model's ledger."""
        self._asked = booked

    @property
    def is_compute_spent(self) -> bool:
        return self.compute_seconds >= self.limits.compute

    def spent(self) -> str | None:
        """The first of the limits compute, wall, tokens, cost and steps that is reached, or None."""
        return "compute" if self.is_compute_spent else self.spent_besides_compute()

    def spent_besides_compute(self) -> str | None:
        """The first of the limits wall, tokens, cost and steps that is reached, or None."""
        limits = self.limits
        reached = {
            "wall": self.wall_left() <= 0,
            # As in the paper, only prompt tokens count.
            "tokens": self.prompt_tokens >= self.tokens_allowed,
            "cost": limits.cost is not None and (self.cost_usd or 0.0) >= limits.cost,
            "steps": self.steps >= limits.steps,
        }
        return next((name for name, is_reached in reached.items() if is_reached), None)


def budget_for(task: Task) -> Budget:
    """The budget that a task file states, with the paper's token limit for its set."""
    return Budget(task.limits, tokens=TOKEN_BUDGETS[task.set])
