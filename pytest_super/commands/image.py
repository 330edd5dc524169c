"""`pytest-super image`: build the image that containers run, and print its name."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.kernel.providers.docker.engine import inspect
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE, DEFAULT_PROFILE, PROFILES, build
from pytest_super.kernel.providers.docker.image.unpack import unpack
from pytest_super.kernel.providers.host_environment import trusted_certificates
from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.report.live import LiveCommand
from pytest_super.words import did_you_mean

HELP = "build the kernel image that containers run, or print its name"


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    name = actions.add_parser(
        "name", help="print the name of the kernel image, which changes with its recipe"
    )
    name.add_argument(
        "--agent", metavar="NAME[==VERSION]", help="of the image with the program of this agent on top of it"
    )
    action = actions.add_parser("build", help="build the kernel image on the container engine")
    action.add_argument(
        "--profile",
        choices=PROFILES,
        default=DEFAULT_PROFILE,
        help="what the image is for: the shipped tasks, the tasks of SUPER's data set, or a kernel on top of "
        "any image that has python3",
    )
    action.add_argument(
        "--agent",
        metavar="NAME[==VERSION]",
        help="build an image with the program of this agent, such as codex, on top of a kernel image",
    )
    action.add_argument(
        "--base",
        help=f"Debian-like image with python3 ({defaults('base')}); with --agent the kernel image "
        f"({defaults('tag')}), or any image that a task names",
    )
    action.add_argument(
        "--tag",
        help=f"name of the image ({defaults('tag')}; with --agent the base's with the agent's name and "
        "version behind it)",
    )
    action.add_argument("--packages", help="system packages, separated by blanks, in place of the profile's")
    action.add_argument(
        "--requirements",
        type=Path,
        metavar="FILE",
        help="a list for pip, with ipykernel in it, in place of the profile's",
    )
    action.add_argument(
        "--unpack",
        type=Path,
        metavar="DIR",
        help="also write the image's files into this new folder, for --super-image=DIR where no engine is; "
        "an image that exists is not built again",
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
    if arguments.action == "name":
        print(name_of(arguments.agent))
        return 0
    if arguments.agent and arguments.unpack:
        raise SuperError("--unpack is for kernel images: agents that are programs in an image need an engine")
    with LiveCommand(lambda: "building the image") as live, live.activity("engine", "start") as activity:

        def show(line: str) -> None:
            activity.begin(line)
            live.print_line(line)

        tag = build_agent(arguments, show) if arguments.agent else build_kernel(arguments, show)
        if arguments.unpack:
            show(f"unpacking {tag}")
            unpack(tag, arguments.unpack.absolute())
    print(f"unpacked {tag} in {arguments.unpack}" if arguments.unpack else f"built {tag}")
    return 0


def name_of(agent: str | None) -> str:
    """The name of the kernel image, or of the one with an agent's program on top. Raises SuperError."""
    from pytest_super.kernel.providers.docker.image.agent import name_with

    if agent is None:
        return DEFAULT_IMAGE
    return name_with(DEFAULT_IMAGE, agent_named(agent).program(is_exact=False))


def build_kernel(arguments: Namespace, print_line: Callable[[str], None]) -> str:
    tag, changes = arguments.tag or PROFILES[arguments.profile].tag, ("base", "packages", "requirements")
    if arguments.unpack and tag and not any(getattr(arguments, name) for name in changes) and inspect(tag):
        return str(tag)
    return build(
        profile=arguments.profile,
        base=arguments.base,
        tag=arguments.tag,
        packages=None if arguments.packages is None else arguments.packages.split(),
        requirements=arguments.requirements,
        ca_bundle=arguments.ca_bundle,
        pip_config=arguments.pip_config,
        network=arguments.network,
        print_line=print_line,
    )


def build_agent(arguments: Namespace, print_line: Callable[[str], None]) -> str:
    """An image with the program of an agent. Raises SuperError."""
    from pytest_super.programs.installed.image import build_image

    if arguments.packages is not None or arguments.requirements is not None:
        raise SuperError("--packages and --requirements are for the kernel image: build that one first")
    base = arguments.base or PROFILES[arguments.profile].tag
    if base is None:
        raise SuperError(
            f"an image of the profile {arguments.profile} has no name of its own: --base names it"
        )
    return build_image(
        agent_named(arguments.agent),
        base=base,
        tag=arguments.tag,
        ca_bundle=arguments.ca_bundle,
        pip_config=arguments.pip_config,
        network=arguments.network,
        print_line=print_line,
    )


def agent_named(name: str) -> InstalledAgent:
    """Raises SuperError if there is no agent of this name that is a program in an image."""
    from pytest_super.agents.registry import installed_agent, installed_names

    found = installed_agent(name)
    if found is None:
        known = installed_names()
        hint = did_you_mean(name.partition("==")[0], known)
        raise SuperError(f"--agent {name}: choose from {', '.join(known)}{hint}")
    return found
