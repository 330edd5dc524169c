"""Options of commands that run pytest, which get them as its own."""

from argparse import ArgumentParser, Namespace

# With names that begin with `super-`.
PASSED_ON = {
    "sandbox": "the provider of sandboxes (default: auto)",
    "image": "the container image",
    "ca-bundle": "certificates that pip, git and requests trust in sandboxes",
    "pip-config": "a pip.conf for sandboxes",
    "mount": "a folder that sandboxes see, as HOST:INSIDE; can be repeated",
}


def add_pytest_options(parser: ArgumentParser) -> None:
    parser.add_argument("-n", dest="workers", metavar="N", help="workers, as for pytest-xdist")
    for name, meaning in PASSED_ON.items():
        action = "append" if name == "mount" else "store"
        parser.add_argument(f"--{name}", action=action, metavar="VALUE", help=meaning)


def pytest_options(arguments: Namespace) -> list[str]:
    workers = [f"-n{arguments.workers}"] if arguments.workers else []
    names = [name for name in PASSED_ON if name != "mount"]
    given = {name: getattr(arguments, name.replace("-", "_")) for name in names}
    passed = [f"--super-{name}={value}" for name, value in given.items() if value is not None]
    return [*workers, *passed, *(f"--super-mount={place}" for place in arguments.mount or ())]
