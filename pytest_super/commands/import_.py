"""`pytest-super import`: published data as task files."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.commands.image import add_build_options
from pytest_super.kernel.providers.docker.engine import SUPER_IMAGE
from pytest_super.option_types import told

HELP = "make task files from published data"
SETS = ("expert", "masked", "auto")


def add_arguments(parser: ArgumentParser) -> None:
    sets = parser.add_subparsers(required=True, metavar="DATA")
    add_super(sets.add_parser("super", help="the data set of SUPER, from the Hugging Face hub or from files"))
    add_autoexperiment(
        sets.add_parser(
            "autoexperiment", help="the papers of AutoExperiment, from a checkout of its repository"
        )
    )
    add_harbor(sets.add_parser("harbor", help="a folder of tasks in the form of Harbor"))


def add_super(data: ArgumentParser) -> None:
    data.set_defaults(make=make_super)
    data.add_argument("--set", required=True, choices=SETS, help="one of its three sets")
    source = data.add_mutually_exclusive_group()
    source.add_argument(
        "--revision", default="main", help="commit, tag or branch of the data set (default: %(default)s)"
    )
    source.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="a file of the set, in place of the hub"
    )
    data.add_argument("--output", type=Path, metavar="DIR", help="folder for the files (default: super/SET)")
    add_force(data)
    image = data.add_mutually_exclusive_group()
    image.add_argument(
        "--image", default=SUPER_IMAGE, help="container image that the tasks name (default: %(default)s)"
    )
    image.add_argument(
        "--no-image", action="store_true", help="the tasks name no image, so the run's is used"
    )
    for field, default in (("memory", "16g"), ("disk", "40g")):
        data.add_argument(
            f"--{field}",
            default=default,
            type=told(size),
            metavar="SIZE",
            help=f"the tasks' `sandbox.{field}`, or none (default: %(default)s)",
        )


def add_autoexperiment(data: ArgumentParser) -> None:
    data.set_defaults(make=make_autoexperiment)
    data.epilog = "Exit status: 0 everything was imported, 1 something was left out."
    data.add_argument("checkout", type=Path, metavar="PATH", help="a checkout of the repository")
    add_output(data, Path("autoexperiment"))


def add_harbor(data: ArgumentParser) -> None:
    data.set_defaults(make=make_harbor)
    data.epilog = "Exit status: 0 every task was imported, 1 one was left out."
    data.add_argument(
        "folder", type=Path, metavar="PATH", help="a task's folder, or a folder with such folders"
    )
    add_output(data, Path("harbor"))
    data.add_argument("--no-build", action="store_true", help="write the files, but build no image")
    add_build_options(data)


def add_output(data: ArgumentParser, folder: Path) -> None:
    data.add_argument(
        "--output",
        type=Path,
        default=folder,
        metavar="DIR",
        help="folder for the files (default: %(default)s)",
    )
    add_force(data)


def add_force(data: ArgumentParser) -> None:
    data.add_argument(
        "--force", action="store_true", help="overwrite files that were changed since the last import"
    )


def run(arguments: Namespace) -> int:
    return int(arguments.make(arguments))


def make_super(arguments: Namespace) -> int:
    from pytest_super.authoring.importing.command import import_super

    # The published code ran on machines with more memory and disk than our default limits.
    image = None if arguments.no_image else arguments.image
    sandbox = {"image": image, "network": True, "memory": arguments.memory, "disk": arguments.disk}
    return import_super(
        arguments.set,
        arguments.output or Path("super") / arguments.set,
        revision=arguments.revision,
        source=arguments.source,
        sandbox={name: value for name, value in sandbox.items() if value is not None},
        force=arguments.force,
    )


def size(text: str) -> str | None:
    from pytest_super.tasks.fields import parse_size

    return None if text == "none" or not parse_size(text) else text


def make_harbor(arguments: Namespace) -> int:
    from pytest_super.authoring.importing.harbor.command import ImageBuilder, import_harbor

    builder = ImageBuilder(
        ca_bundle=arguments.ca_bundle, pip_config=arguments.pip_config, network=arguments.network
    )
    return import_harbor(
        arguments.folder,
        arguments.output,
        builder=None if arguments.no_build else builder,
        force=arguments.force,
    )


def make_autoexperiment(arguments: Namespace) -> int:
    from pytest_super.authoring.importing.autoexperiment.command import import_autoexperiment

    return import_autoexperiment(arguments.checkout, arguments.output, force=arguments.force)
