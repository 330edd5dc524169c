"""`pytest-super view`: a page to look at a run, or at two runs next to each other."""

from argparse import ArgumentParser, Namespace
from contextlib import suppress

from pytest_super.commands.stored_run import NAMES, add_directory
from pytest_super.errors import SuperError

HELP = "look at a run, or at two next to each other, in a browser"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"{NAMES} (default: latest)")
    add_directory(parser)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: one that is free")


def run(arguments: Namespace) -> int:
    from pytest_super.report.page.server import PageServer
    from pytest_super.store.stored_runs import find_run

    if len(arguments.runs) > 2:
        raise SuperError("name one run, or two to see them next to each other")
    folders = [find_run(arguments.dir, name) for name in arguments.runs or ["latest"]]
    try:
        server = PageServer(folders, arguments.port)
    except (OSError, OverflowError) as error:
        raise SuperError(f"the port {arguments.port} cannot be used: {error}") from None
    with server, suppress(KeyboardInterrupt):
        print(f"{server.url} shows {' and '.join(one.name for one in folders)}; Ctrl-C ends it", flush=True)
        server.serve_forever()
    return 0
