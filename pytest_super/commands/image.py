"""`pytest-super image build`: build the image that containers run."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_super.kernel.providers.docker.image import DEFAULT_PROFILE, PROFILES, build
from pytest_super.kernel.providers.host_environment import trusted_certificates
from pytest_super.report.live_command import LiveCommand

HELP = "build the kernel image that containers run"


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    action = actions.add_parser("build", help="build the kernel image on the container engine")
    action.add_argument(
        "--profile",
        choices=PROFILES,
        default=DEFAULT_PROFILE,
        help="what the image is for: the shipped tasks, the tasks of SUPER's data set, or a kernel on top of "
        "any image that has python3",
    )
    action.add_argument("--base", help=f"Debian-like image with python3 ({defaults('base')})")
    action.add_argument("--tag", help=f"name of the image ({defaults('tag')})")
    action.add_argument("--packages", help="system packages, separated by blanks, in place of the profile's")
    action.add_argument(
        "--requirements",
        type=Path,
        metavar="FILE",
        help="a list for pip, with ipykernel in it, in place of the profile's",
    )
    add_build_options(action)


def add_build_options(action: ArgumentParser) -> None:
    """Where a build fetches packages."""
    action.add_argument(
        "--ca-bundle",
        type=Path,
        default=trusted_certificates(os.environ),
        help="certificates (PEM) with which to reach the package index (default: the file that "
        "REQUESTS_CA_BUNDLE or SSL_CERT_FILE names)",
    )
    action.add_argument("--pip-config", type=Path, help="a pip.conf, for an index of your own")
    action.add_argument("--network", help="the engine's network to build on, such as host")


def defaults(field: str) -> str:
    given = {name: getattr(profile, field) for name, profile in PROFILES.items()}
    return "default: " + "; ".join(f"{name} {value}" for name, value in given.items() if value)


def run(arguments: Namespace) -> int:
    with LiveCommand(lambda: "building the image") as live, live.activity("engine", "start") as activity:

        def show(line: str) -> None:
            activity.begin(line)
            live.print_line(line)

        tag = build(
            profile=arguments.profile,
            base=arguments.base,
            tag=arguments.tag,
            packages=None if arguments.packages is None else arguments.packages.split(),
            requirements=arguments.requirements,
            ca_bundle=arguments.ca_bundle,
            pip_config=arguments.pip_config,
            network=arguments.network,
            print_line=show,
        )
    print(f"built {tag}")
    return 0
