"""Files written in the sandbox where there is no room for them."""

import subprocess
import sys
from pathlib import Path

# A process of its own, in which no file may have more than a megabyte.
WRITER = """
import io, json, os, resource, sys
from pytest_super.kernel.inside.filework import FileWork

resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
sent = []
work = FileWork(sent.append)
work.receive(bytes(2**19))
work.receive(b"")
try:
    work._write({"op": "write", "id": 1, "path": sys.argv[1], "asked": {"size": int(sys.argv[2])}})
except OSError as error:
    print(error.strerror)
"""


def written(path: Path, size: int) -> str:
    command = [sys.executable, "-c", WRITER, str(path), str(size)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_file_for_which_there_is_no_room_keeps_what_it_held(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_bytes(b"what it held")
    assert written(path, 2**27) == "File too large\n"
    assert path.read_bytes() == b"what it held"


def test_a_file_is_as_long_as_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    for held in (b"", bytes(2**20)):
        path.write_bytes(held)
        assert written(path, 2**19) == ""
        assert path.stat().st_size == 2**19
