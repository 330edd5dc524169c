"""A real kernel that sends as much as it can: the host's memory stays within the bound of the docs."""

import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_super.grading.collected import collect, read_collected
from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import printed, started, still_works
from pytest_super.kernel.providers.local import LocalSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

# Of each kind one is for every change, and the largest are for every night.
SLOW, LONG = pytest.mark.slow, pytest.mark.long
MIB = 2**20
# docs/reference/sandboxes.md, what comes out
BOUND = 256 * MIB


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started(LocalSandbox()) as kernel:
        printed(kernel, "from IPython.display import display, publish_display_data")
        yield kernel


def memory(field: str) -> int:
    """Bytes of this process's memory: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[field].split()[0]) * 1024


@contextmanager
def grows_by_less_than(bound: int) -> Iterator[None]:
    # Resets the peak.
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    yield
    growth = memory("VmHWM") - before
    print(f"growth: {growth / MIB:.0f} MiB")
    assert growth < bound


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("for _ in range(1000): print('x' * 1_000_000)", id="1 GB printed", marks=LONG),
        pytest.param(
            "for _ in range(3000): publish_display_data({'text/plain': 'x' * 100_000})",
            id="displays",
            marks=SLOW,
        ),
        pytest.param(
            "for _ in range(40):"
            " publish_display_data({'image/png': 'A' * (8 * 2**20 - 100), 'text/plain': '-'})",
            id="330 MB",
            marks=SLOW,
        ),
        pytest.param(
            "publish_display_data({f'text/{number}': 'A' * 33_000_000 for number in range(10)})",
            id="330 MB at once",
            marks=SLOW,
        ),
        pytest.param(
            "publish_display_data({'application/json': [{} for _ in range(3_000_000)]})",
            id="values",
            marks=SLOW,
        ),
        pytest.param("raise ValueError('x' * 100_000_000)", id="error", marks=LONG),
    ],
)
def test_output_of_any_size_takes_little_memory(kernel: Kernel, code: str) -> None:
    with grows_by_less_than(BOUND):
        result = kernel.execute(code, timeout=300)
    assert result.outcome in (Outcome.OK, Outcome.ERROR), result
    assert sum(map(len, map(str, result.outputs))) < 50 * MIB
    assert still_works(kernel)


RAW = """
from ipykernel.kernelapp import IPKernelApp
import json
_kernel = get_ipython().kernel
def raw(content, kind="display_data"):
    session, socket = _kernel.session, _kernel.iopub_socket
    header = json.dumps({"msg_type": kind, "msg_id": "1", "version": "5.3"}).encode()
    parent = json.dumps(_kernel.get_parent()["header"], default=str).encode()
    body = [header, parent, b"{}", content]
    socket.send_multipart([b"topic", b"<IDS|MSG>", session.sign(body), *body])
"""


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("b'[' + b'{},' * 20_000_000 + b'{}]'", marks=LONG),
        pytest.param("b'{\"data\": {\"a\": [' + b'[],' * 4_000_000 + b'0]}}'", marks=SLOW),
        pytest.param("b'[' * 50_000_000", marks=SLOW),
        pytest.param('b\'{"data": {"text/plain": NaN}}\'', marks=SLOW),
    ],
)
def test_messages_that_only_code_can_make_take_little_memory(kernel: Kernel, content: str) -> None:
    printed(kernel, RAW)
    with grows_by_less_than(BOUND):
        result = kernel.execute(f"for _ in range(3): raw({content})", timeout=300)
    assert result.outcome is Outcome.OK, result
    assert sum(result.dropped.values()) == 3
    assert still_works(kernel)


def bomb(kind: str) -> bytes:
    """An archive of a few megabytes that unpacks to a gigabyte."""
    packed, zeros = io.BytesIO(), bytes(MIB)
    if kind == "zip":
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file, file.open("bomb", "w") as member:
            for _ in range(1000):
                member.write(zeros)
    else:
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
            entry = tarfile.TarInfo("bomb")
            entry.size = 1000 * MIB
            archive.addfile(entry, Zeros())
    return packed.getvalue()


class Zeros(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        return bytes(size)


@pytest.mark.parametrize("kind", [pytest.param("zip", marks=LONG), pytest.param("tar", marks=SLOW)])
def test_archives_are_not_unpacked_on_the_host(kernel: Kernel, tmp_path: Path, kind: str) -> None:
    packed = bomb(kind)
    (tmp_path / "bomb").write_bytes(packed)
    with grows_by_less_than(64 * MIB):
        kernel.files.upload(tmp_path, "uploaded")
        assert kernel.files.read("uploaded/bomb") == packed


@SLOW
def test_reading_a_file_takes_no_more_than_its_limit(kernel: Kernel) -> None:
    printed(kernel, "open('large', 'wb').truncate(2**40)")
    with grows_by_less_than(BOUND), pytest.raises(OSError, match="arger than"):
        kernel.files.read("large", limit=64 * MIB)
    with grows_by_less_than(64 * MIB), pytest.raises(OSError, match="arger than"):
        kernel.files.read("large", limit=MIB)


@SLOW
def test_listing_a_large_folder_takes_little_memory(kernel: Kernel) -> None:
    printed(kernel, "!mkdir many; touch a\nimport os\nfor n in range(50_000): os.link('a', f'many/{n:0200}')")
    with grows_by_less_than(BOUND):
        assert len(kernel.files.entries("many")) == 50_000
    printed(kernel, "!rm -r many")


@SLOW
def test_collecting_large_files_takes_little_memory(kernel: Kernel, tmp_path: Path) -> None:
    printed(kernel, "open('large', 'wb').truncate(100 * 2**20)")
    with grows_by_less_than(64 * MIB):
        collected = collect(kernel, ["large"], tmp_path / "collected.tar")
        stored = read_collected(collected.archive)
    # Everything inside was killed.
    kernel.restart()
    assert stored.files["large"].sha256 == collected.files["large"].sha256
