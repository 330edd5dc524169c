"""The model of a trial: the run's model, reached through the run's gateway, with the trial's limits."""

from threading import Lock

import pytest

from pytest_super.model.completion import Model
from pytest_super.model.gateway_process import Gateway
from pytest_super.model.relay import AnyGateway, RelayedGateway, place
from pytest_super.session.run import RUN, Run
from pytest_super.session.trial.item import TaskItem
from pytest_super.trial.budget import Budget

# This process's connection to the gateway.
GATEWAY: pytest.StashKey[AnyGateway] = pytest.StashKey()
# The key of a worker's input under which it gets a channel to the controller, and the controller's place.
RELAY = "super_relay"
LOCK = Lock()


def open_model(item: TaskItem, budget: Budget) -> Model | None:
    """The run's model with the limits of this trial. Raises InfrastructureError."""
    run = item.config.stash[RUN]
    if run.settings.model is None:
        return None
    from pytest_super.model.client import GatewayModel

    folder = item.open_folder()
    start = folder.start
    model = GatewayModel(
        running_gateway(item.config, run),
        task=start.id,
        epoch=start.epoch,
        rerun=start.rerun,
        # A function, because each attempt at the task raises the limit.
        token_limit=lambda: budget.tokens_allowed,
        cost_limit=budget.limits.cost,
        is_open=bool(item.task.sandbox.network),
        seconds_left=budget.wall_left,
        waits_for=folder.activity.waits_for,
    )
    budget.leave_out(model.waited_seconds)
    return model


def running_gateway(config: pytest.Config, run: Run) -> AnyGateway:
    """This process's connection to the run's gateway, made at first use. Raises ModelError."""
    # The controller calls this in the threads of workers' calls.
    with LOCK:
        if GATEWAY not in config.stash:
            gateway = gateway_of(config, run)
            gateway.start()
            config.stash[GATEWAY] = gateway
            config.add_cleanup(gateway.close)
        return config.stash[GATEWAY]


def gateway_of(config: pytest.Config, run: Run) -> AnyGateway:
    """Raises ModelError."""
    controller, its_place = getattr(config, "workerinput", {}).get(RELAY, (None, ""))
    if controller is None or its_place == place():
        return Gateway(run.id, run.model_settings(), run.gateway_token)
    return RelayedGateway(run.model_settings(), controller)
