"""What code inside a container has written, asked of its engine: files that decide what later commands do."""

import pytest

from tests.dishonest import CELLS, kinds_by_cell

pytestmark = pytest.mark.docker

LIBRARY = "import sysconfig; folder = sysconfig.get_path('stdlib')\n"
# Besides those of every sandbox.
IN_CONTAINERS: dict[str, tuple[str, list[str]]] = {
    "preload": ("open('/etc/ld.so.preload', 'w').write('/tmp/clock.so')", ["startup hook"]),
    "json": (
        LIBRARY + "open(f'{folder}/json/__init__.py', 'a').write('\\nloads = None')",
        ["changed library"],
    ),
    "upgrade": (LIBRARY + "[open(f'{folder}/asyncio/a{n}.py', 'w').write('1') for n in range(30)]", []),
    "pip": ("!printf '#!/usr/bin/python3\\n' > /usr/local/bin/pip", []),
    "removed": ("!rm -f /etc/bash.bashrc /root/.bashrc", []),
}


@pytest.mark.long
@pytest.mark.usefixtures("image")
def test_files_that_decide_what_later_commands_do_are_seen(pytester: pytest.Pytester) -> None:
    cells = {**CELLS, **IN_CONTAINERS}
    kinds, unseen = kinds_by_cell(pytester, "docker", cells)
    assert kinds == {name: expected for name, (_, expected) in cells.items()}
    assert not any(unseen.values())
