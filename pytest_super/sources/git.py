"""Provides one commit of a git repository as a folder."""

import os
import posixpath
import re
import subprocess
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.redaction import redacted
from pytest_super.sources.archive import unpack
from pytest_super.sources.store import store, stored, workshop

TIMEOUT = 1800.0
ADVICE = "check repository.git and the network"

# git asks for no password, downloads no large files and uses no protocol that could run a program.
ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}
# All branches and tags.
ALL = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "credential.interactive=false", "-c", "gc.auto=0")


def fetch_commit(url: str, commit: str, *, base: Path, cache: Path) -> Path:
    """The files at `commit`; submodules are empty, LFS files are pointers. Raises InfrastructureError."""
    name = folder_name(url)
    # Another address of the same commit can have another name, and the agent sees the name.
    place = cache / "git" / f"{commit}-{name}"
    if found := stored(place):
        return found
    with workshop(cache) as work:
        bare = work / "bare"
        # No template, because the user's own one can contain hooks.
        run_git("init", "--quiet", "--bare", "--template=", str(bare), cwd=base)
        _fetch(bare, url, commit, base)
        # Include the files that the repository's own attributes exclude from archives.
        attributes = bare / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("* -export-ignore -export-subst\n")
        archive = work / "commit.tar"
        run_git(f"--git-dir={bare}", "archive", "--format=tar", f"--output={archive}", commit, cwd=base)
        tree = work / "tree" / name
        tree.mkdir(parents=True)
        unpack(archive, tree)
        return store(tree.parent, place)


def _fetch(bare: Path, url: str, commit: str, base: Path) -> None:
    """Fetch the commit alone if the server allows it, else all branches and tags."""
    # Run in the task file's folder, because a relative URL starts there. After `--`, no URL is an option.
    fetch = (f"--git-dir={bare}", "fetch", "--quiet", "--no-recurse-submodules")
    try:
        run_git(*fetch, "--depth=1", "--no-tags", "--", url, commit, cwd=base)
    except InfrastructureError:
        run_git(*fetch, "--", url, *ALL, cwd=base)
    try:
        run_git(f"--git-dir={bare}", "cat-file", "-e", f"{commit}^{{commit}}", cwd=base)
    except InfrastructureError:
        raise InfrastructureError(
            f"{redacted(url)} has no commit {commit} on any branch or tag; check repository.commit"
        ) from None


def run_git(*arguments: str, cwd: Path, advice: str = ADVICE, timeout: float = TIMEOUT) -> str:
    """Run git without prompts and hooks; returns its output as text. Raises InfrastructureError."""
    return git_bytes(*arguments, cwd=cwd, advice=advice, timeout=timeout).decode("utf-8", "replace")


def git_bytes(
    *arguments: str, cwd: Path, advice: str = ADVICE, timeout: float = TIMEOUT, input: bytes = b""
) -> bytes:
    """The same, with an input and the output as bytes."""
    # When pytest runs inside a git hook, these point to another repository.
    inherited = {name: os.environ[name] for name in os.environ if not re.match("GIT_(DIR|WORK|INDEX)", name)}
    try:
        done = subprocess.run(
            ["git", *OPTIONS, *arguments],
            cwd=cwd,
            env={**inherited, **ENVIRONMENT},
            input=input,
            capture_output=True,
            timeout=timeout,
        )
    except FileNotFoundError:
        raise InfrastructureError("git is not installed, but a task's repository is in git") from None
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"git did not end within {timeout:.0f} s: {_shown(arguments)}") from None
    if done.returncode:
        reason = redacted(done.stderr.decode("utf-8", "replace").strip()[-500:])
        raise InfrastructureError(f"git failed: {_shown(arguments)}: {reason}; {advice}")
    return done.stdout


def _shown(arguments: tuple[str, ...]) -> str:
    return redacted(" ".join(argument for argument in arguments if not argument.startswith("-")))


def folder_name(url: str) -> str:
    """The name of the folder that a repository at this address gets."""
    last = posixpath.basename(re.split(r"[?#]", url)[0].rstrip("/").replace(":", "/")).removesuffix(".git")
    return re.sub(r"[^A-Za-z0-9_.-]", "_", last).lstrip(".-") or "repository"
