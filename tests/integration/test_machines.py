"""Workers on other machines: nodes of Slurm, for which programs stand in here, and refused machines."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_super.kernel.providers import bwrap
from pytest_super.kernel.providers.host_environment import this_interpreter
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.providers.unpacked_image import RECORD, UnpackedImage
from pytest_super.session.workers import machines
from tests.docker.own_engine import ssh_server
from tests.integration.conftest import Project

# It grants as many jobs as there are nodes. The others wait.
SALLOC = """#!/bin/sh
echo $$ >> pids
echo "$*" >> salloc
case "$*" in *nowhere*) echo "salloc: error: invalid partition" >&2; exit 1;; esac
node=$(for number in $(seq "$NODES"); do mkdir "node$number" 2> /dev/null && echo "$number" && break; done)
[ "$node" ] || exec sleep 60
export SLURM_JOB_ID=$$
while [ "$1" != sh ]; do shift; done
exec "$@"
"""
SRUN = """#!/bin/sh
echo "$*" >> srun
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
IDS = ("right", "right2", "right3")


@pytest.fixture
def cluster(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    programs = {"salloc": SALLOC, "srun": SRUN, "squeue": "#!/bin/sh\necho Resources\n"}
    add_programs(project.path / "bin", programs)
    monkeypatch.setenv("PATH", f"{project.path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("NODES", "3")
    monkeypatch.setattr(machines, "PATIENCE", 3.0)
    for id in IDS:
        project.add_task(id)
    return project


def add_programs(folder: Path, programs: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def told(project: Project, name: str) -> list[str]:
    return (project.path / name).read_text().splitlines()


def is_over(pid: str) -> bool:
    return not Path("/proc", pid).exists()


def test_each_worker_has_a_job_with_the_users_options_and_one_that_dies_a_new_one(cluster: Project) -> None:
    cluster.add_task("crash_once")
    result = cluster.run("--super-machines=slurm:2", "--super-srun=--partition=gpu '--comment=of mine'")
    result.assert_outcomes(passed=4)
    assert [line.split(" sh ")[0] for line in told(cluster, "salloc")] == [
        "--quiet --ntasks=1 --partition=gpu --comment=of mine"
    ] * 2
    jobs = [f"--jobid={pid}" for pid in told(cluster, "pids")]
    *first, last = told(cluster, "srun")
    words = [line.split() for line in first]
    assert sorted(word for line in words for word in line if word in jobs) == sorted(jobs)
    assert all({"--unbuffered", "--ntasks=1", sys.executable} <= set(line) for line in words)
    assert last.startswith("--unbuffered --exact --nodes=1 --ntasks=1 --partition=gpu --comment=of mine ")


def test_the_run_begins_with_the_nodes_that_there_are_and_gives_back_the_other_jobs(
    cluster: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODES", "1")
    result = cluster.run("--super-machines=slurm:2")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["after 3 s, 1 of 2 workers have no node (Resources): the run begins with the others"]
    )
    assert len(told(cluster, "srun")) == 1
    assert all(map(is_over, told(cluster, "pids")))


def test_within_a_job_workers_are_its_steps(cluster: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    cluster.run("--super-machines=slurm:1").assert_outcomes(passed=3)
    assert len(told(cluster, "srun")) == 1
    assert not (cluster.path / "salloc").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--super-machines=slurm:2", "--super-srun=-p nowhere"], "Slurm gives no node: salloc: error: inv*"),
        (["--super-machines=ssh:2"], "--super-machines=ssh:2: must be slurm:N, such as slurm:6, or machine*"),
        (["--super-machines=slurm:0"], "--super-machines=slurm:0: must be a whole number of at least 1"),
        (["--super-machines=slurm:2", "-n2"], "--super-machines starts the workers: leave out -n*"),
        (["--super-machines=slurm:2", "-pno:xdist"], "--super-machines needs pytest-xdist*"),
        (["--super-machines=slurm:2", "--dist=loadfile"], "tasks run under --dist=load*"),
    ],
)
def test_what_cannot_be_is_one_message(cluster: Project, options: list[str], message: str) -> None:
    result = cluster.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert len([line for line in result.errlines if line]) == 1


def test_a_machine_without_slurm_is_told_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.add_task("right")
    monkeypatch.setenv("PATH", "/nowhere")
    result = project.run("--super-machines=slurm:2")
    result.stderr.fnmatch_lines(["ERROR: --super-machines: the program salloc is missing here: run *"])


# Machines that ssh reaches

PLACES = """
import os, sys
from pathlib import Path

def pytest_sessionstart(session):
    if hasattr(session.config, "workerinput"):
        with open("places", "a") as file:
            file.write("away\\n" if "SSH_CONNECTION" in os.environ else "here\\n")

def pytest_runtest_setup(item):
    ssh = Path("server/bin/ssh")
    if item.name == "lost" and ssh.exists():
        ssh.unlink()
        os._exit(1)
"""


@pytest.fixture
def away(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    (project.path / "server").mkdir()
    with ssh_server(project.path / "server") as programs:
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        project.write("conftest.py", f"{(project.path / 'conftest.py').read_text()}{PLACES}")
        for id in IDS:
            project.add_task(id)
        yield project


@pytest.mark.slow
def test_workers_run_on_machines_that_ssh_reaches(away: Project) -> None:
    away.add_task("crash_once")
    away.run("--super-machines=2*ssh://away").assert_outcomes(passed=4)
    # One more for that which died.
    assert told(away, "places") == ["away"] * 3


@pytest.mark.slow
def test_a_worker_whose_machine_is_lost_is_replaced_here(away: Project) -> None:
    away.add_task("lost")
    away.run("--super-machines=ssh://away").assert_outcomes(passed=4)
    assert told(away, "places") == ["away", "here"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "why"),
    [("nowhere.invalid", "*Could not resolve hostname nowhere.invalid*"), ("away:1", "*Connection refused*")],
)
def test_a_machine_that_ssh_does_not_reach_is_one_message(away: Project, machine: str, why: str) -> None:
    result = away.run(f"--super-machines=ssh://away,ssh://{machine}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    line = (
        f"ERROR: --super-machines: ssh://{machine} cannot have workers ({why}): `ssh ssh://{machine}` must "
    )
    result.stderr.fnmatch_lines([f"{line}*"])
    assert not away.path.joinpath("places").exists()


# Machines that are refused

REASON = find_provider("bubblewrap").why_unavailable()
needs_bubblewrap = pytest.mark.skipif(bool(REASON) and "CI" not in os.environ, reason=REASON or "")
# As bwrap says it where user namespaces are closed.
CLOSED = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"


def run_on(project: Project, node: str, start: str, *options: str) -> pytest.RunResult:
    """A run with a worker that the shell script starts, on a node of this name."""
    project.write("start", f'export SLURMD_NODENAME={node}\n{start}\nexec "$@"\n')
    worker = f"popen//python=sh {project.path / 'start'} {sys.executable}"
    given = ("--super-agent=agent:Agent", "--super-sandbox=bubblewrap", "-d", "--tx", worker)
    return project.pytester.runpytest(*given, *options)


@pytest.mark.usefixtures("isolation_anew")
def test_bubblewrap_says_why_it_cannot_make_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_programs(tmp_path / "bin", {"bwrap": CLOSED})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    said = "bwrap cannot make a sandbox (No permissions to create new namespace): user namespaces are "
    assert str(bwrap.why_unusable()).startswith(said)


@needs_bubblewrap
def test_a_machine_that_can_make_no_sandbox_is_refused_before_the_first_trial(project: Project) -> None:
    project.add_task("right")
    (project.path / "bin").mkdir()
    result = run_on(project, "node7", f"PATH={project.path / 'bin'}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: the machine node7 cannot run trials: the program bwrap is missing*"])
    assert not list(project.path.glob(".super/runs/*/trials/*"))


@needs_bubblewrap
def test_a_project_that_makes_its_own_sandboxes_needs_none_of_a_machine(project: Project) -> None:
    project.add_task("right")
    project.add_to_conftest("def pytest_super_make_sandbox(config, task):\n    raise NotImplementedError\n")
    run_on(project, "node7", "PATH=/nowhere").assert_outcomes(passed=1)


@needs_bubblewrap
def test_a_machine_that_sees_another_image_is_refused(project: Project) -> None:
    project.add_task("right")
    tree = project.path / "tree"
    tree.mkdir()
    image = UnpackedImage(name="n", software="s", id="of-one", environment={}, python=this_interpreter())
    image.write(tree)
    given = f"--super-image={tree}"
    run_on(project, "node1", "", given).assert_outcomes(passed=1)
    result = run_on(project, "node2", f"sed -i s/of-one/of-another/ {tree / RECORD}", given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: the machine node2 cannot run trials: {tree} is another image there *"]
    )


@needs_bubblewrap
def test_a_folder_that_is_not_an_image_is_refused(project: Project) -> None:
    project.add_task("right")
    (project.path / "half").mkdir()
    for sandbox in ("bubblewrap", "auto"):
        given = (f"--super-sandbox={sandbox}", "--super-image=./half")
        result = project.pytester.runpytest("--super-agent=agent:Agent", *given)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            [f"ERROR: {project.path}/half is not an unpacked image (*): write it with *"]
        )
