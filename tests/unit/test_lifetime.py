"""Signals and connections that end: a session is interrupted once, and only while it runs."""

import subprocess
import sys
from textwrap import dedent

# This runs in its own process, because it gets signals.
PRELUDE = """
import os, signal, threading
from types import SimpleNamespace
from pytest_super.session.signals import Interrupts

class Channel:
    def __init__(self):
        self.closed = threading.Event()

    def waitclose(self):
        self.closed.wait()
        raise EOFError("the other end has gone")

class Manager:
    def get_plugins(self):
        return [object(), SimpleNamespace(channel=channel)]

def wait():
    try:
        # A signal that comes just before a wait does not end it.
        for _ in range(200):
            threading.Event().wait(0.1)
    except KeyboardInterrupt as interrupt:
        return f"interrupted {interrupt}".strip()

def join_others():
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(20)

channel = Channel()
config = SimpleNamespace(pluginmanager=Manager(), workerinput={})
session = SimpleNamespace(config=config)
interrupts = Interrupts()
"""


def said_by(text: str) -> list[str]:
    command = [sys.executable, "-c", PRELUDE + dedent(text)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_worker_is_interrupted_once_when_its_connection_ends() -> None:
    text = """
        interrupts.pytest_sessionstart(session)
        channel.closed.set()
        print(wait())
        os.kill(os.getpid(), signal.SIGINT)
        print("tidied up")
    """
    assert said_by(text) == ["interrupted the controller has ended", "tidied up"]


def test_a_worker_that_is_ending_is_not_interrupted_again() -> None:
    text = """
        interrupts.pytest_sessionstart(session)
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGTERM)
            channel.closed.set()
            join_others()
            print("tidied up")
    """
    assert said_by(text) == ["tidied up"]


def test_a_worker_that_has_ended_its_session_is_left_alone() -> None:
    text = """
        interrupts.pytest_sessionstart(session)
        interrupts.pytest_sessionfinish(session)
        interrupts.pytest_unconfigure()
        channel.closed.set()
        join_others()
        os.kill(os.getpid(), signal.SIGTERM)
        print("ended")
    """
    assert said_by(text) == ["ended"]


def test_without_workers_every_signal_interrupts_until_the_session_is_over() -> None:
    text = """
        del config.workerinput
        before = signal.getsignal(signal.SIGTERM)
        interrupts.pytest_sessionstart(session)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            try:
                os.kill(os.getpid(), number)
            except KeyboardInterrupt as interrupt:
                print(interrupt)
        interrupts.pytest_unconfigure()
        print(signal.getsignal(signal.SIGTERM) is before)
    """
    assert said_by(text) == ["SIGTERM", "SIGTERM", "", "True"]
