"""litellm in a process of its own, where nothing has imported it yet."""

import subprocess
import sys

import pytest

from tests.openai_server import Fault, OpenAIServer

PROGRAM = """
import asyncio, socket, sys
resolve = socket.getaddrinfo
def refuse(host, *args, **kwargs):
    if host not in ("127.0.0.1", b"127.0.0.1"):
        print("asked for", host)
        raise OSError("no network")
    return resolve(host, *args, **kwargs)
socket.getaddrinfo = refuse
from pytest_super.model.completion import ModelCallError
from pytest_super.model.named_model import NamedModel
from pytest_super.model.protocols.registry import COMMON
from pytest_super.model.provider import Asked
assert "litellm" not in sys.modules
tool = {"type": "function", "function": {"name": "f"}}
request = {"messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
async def main():
    for model in ("openai/gpt-4o", "openai/another", "anthropic/claude-3-haiku-20240307"):
        answer = await NamedModel(model).ask(Asked(COMMON, request, request), 1)
        assert answer.is_counted is model.startswith("openai")
    for model in ("openai/gpt-4o", "nonsense"):
        try:
            await NamedModel(model).ask(Asked(COMMON, request, request), 1)
        except ModelCallError:
            continue
        raise AssertionError
asyncio.run(main())
"""


@pytest.mark.slow
def test_litellm_prints_nothing_and_connects_to_nobody_but_the_provider(
    openai_environment: OpenAIServer,
) -> None:
    openai_environment.reply(Fault("no_usage"), Fault("no_usage"), "hi", Fault("500"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
