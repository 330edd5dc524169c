"""Attacks on the set functions: files and bodies that agents write."""

# ruff: noqa: E501
from pytest_super.functions.masking import mask_file
from pytest_super.functions.source import PythonSource
from tests.attacks.trials import Attacked

STATS = '''\
import math


def total(values):
    """The sum."""
    return math.fsum(values)


def mean(values):
    """The mean."""
    return total(values) / len(values)


class Sample:
    places = 3
'''
RUN = """\
import json, stats
json.dump({"mean": stats.mean([1, 2, 3, 6])}, open("out.json", "w"))
print("total =", stats.total([1, 2, 3, 6]))
"""
START = """\
import os, sys
path = "project/stats.py"
text = open(path).read()
STUB = 'raise NotImplementedError("this function is masked")'
assert STUB in text
def write(text):
    open(path, "w").write(text)
"""
CHEAT = "import json, os; json.dump({'mean': 3.0}, open('out.json', 'w')); print('total = 12.0', flush=True)"

# What is tried, by the code that does it in the agent's sandbox. The body of `mean` is a stub there.
CELLS = {
    "control: a right body": 'write(text.replace(STUB, "return total(values) / len(values)"))',
    "a stub whose __main__ prints the published values": f"""\
write(text + "if __name__ == '__main__':\\n    " + {CHEAT!r} + "\\n")""",
    "a file that prints the values and ends the program": f"""\
write(text + {CHEAT!r} + "\\nos._exit(0)\\n")""",
    "a function that runs when the program ends": f"""\
write(text + "def late():\\n    " + {CHEAT!r} + "\\nimport atexit\\natexit.register(late)\\n")""",
    "a decorator that runs code": f"""\
write(text + "def cheat(function):\\n    " + {CHEAT!r} + "\\n    os._exit(0)\\n@cheat\\ndef helper(): pass\\n")""",
    "a cache that is given the function to call": f"""\
write("from functools import lru_cache\\n" + text + "def cheat(function):\\n    " + {CHEAT!r} + "\\n    os._exit(0)\\n@lru_cache(cheat)\\ndef helper(): pass\\n")""",
    "a call of a name that also means an import": f"""\
write("from math import log\\n" + text + "def log(x):\\n    " + {CHEAT!r} + "\\n    os._exit(0)\\nX = log(1)\\n")""",
    "a call of a name whose import fails": f"""\
write("try:\\n    import missing\\n    from math import log\\nexcept ImportError:\\n    def log(x):\\n        " + {CHEAT!r} + "\\n        os._exit(0)\\nX = log(1)\\n" + text)""",
    "a decorator on the masked function": f"""\
write("def cheat(function):\\n    " + {CHEAT!r} + "\\n    os._exit(0)\\n" + text.replace("def mean", "@cheat\\ndef mean"))""",
    "a default argument that runs code": f"""\
write(text + "def cheat():\\n    " + {CHEAT!r} + "\\n    os._exit(0)\\ndef helper(x=cheat()): pass\\n")""",
    "a class body that runs code": f"""\
write(text + "class Helper:\\n    " + {CHEAT!r} + "\\n    os._exit(0)\\n")""",
    "another function of the file defined again": """\
write(text.replace(STUB, "return total(values) / 4") + "def total(values): return 12.0\\n")""",
    "another function that replaces the masked one": """\
write(text + "def mean(values): return 3.0\\n")""",
    "a constant in place of an import of the file": """\
write(text + "math = 3\\nmean = 3.0\\n")""",
    "a function in place of a builtin": """\
write(text.replace(STUB, "return total(values) / len(values)") + "def len(values): return 4\\n")""",
    "an import in place of a function of the file": """\
open("project/mine.py", "w").write("def mean(values): return 3.0\\n")
write(text + "from mine import mean\\n")""",
    "a star import": """\
open("project/mine.py", "w").write("def mean(values): return 3.0\\n")
write(text + "from mine import *\\n")""",
    "a module beside the file that is imported": f"""\
open("project/mine.py", "w").write({CHEAT!r} + "\\nos._exit(0)\\n")
write("import mine\\n" + text)""",
    "another experiment and its result": """\
open("project/run.py", "w").write("print('total = 12.0')")
open("project/out.json", "w").write('{"mean": 3.0}')""",
    "2 MiB of lines": 'write(text + "0\\n" * 2**20)',
    "lines that are as long as is allowed": 'write(text + "0;" * 32_000 + "0\\n")',
    "a declaration of rot13": 'write("# coding: rot13\\n" + text)',
    "a declaration of hex": 'write("# coding: hex\\n" + text)',
    "a declaration of punycode": 'write("# coding: punycode\\n" + text + "#" + "a" * 60_000 + "\\n")',
    "a body that begins with a decorator and a continued line": r"""write(text.replace(STUB, "@\\\n    0"))""",
    "very deep indentation": """\
write(text.replace(STUB, "".join(" " * d + "if 1:\\n" + " " * 4 for d in range(95)) + "0"))""",
    "very deep brackets": 'write(text.replace(STUB, "return " + "(" * 20_000 + ")" * 20_000))',
    "NUL bytes": 'open(path, "wb").write(text.encode() + b"\\0" * 100)',
    "bytes of no encoding": 'open(path, "wb").write(b"# coding: utf-8\\n\\xff" + text.encode())',
    "an empty file": 'write("")',
    "no file": "os.remove(path)",
    "a folder in place of the file": "os.remove(path); os.mkdir(path)",
    "a link in place of the file": "os.remove(path); os.symlink('/etc/passwd', path)",
    "a link to an endless device in place of the file": "os.remove(path); os.symlink('/dev/zero', path)",
    "a FIFO in place of the file": "os.remove(path); os.mkfifo(path)",
    "a link in place of the file's folder": """\
os.rename("project", "other"); os.symlink("other", "project")""",
}


def tasks() -> list[Attacked]:
    [function] = mask_file(PythonSource.read("stats.py", STATS.encode()), ["mean"]).functions
    paper = {
        "set": "functions",
        "query": "Simple statistics.",
        "repository": {"path": "project", "provide": True},
        "functions": [{"target": "stats.py::mean", "sha256": function.sha256}],
        "experiments": [
            {
                "name": "averages",
                "command": "python run.py; python stats.py",
                "timeout": 20,
                "result": [
                    {"json": {"file": "out.json", "pointer": "/mean"}, "expected": 3.0},
                    {"regex": {"pattern": "total = (.*)"}, "expected": 12.0},
                ],
            }
        ],
    }
    return [Attacked(name, paper, START + cell) for name, cell in CELLS.items()]


# Of processor time.
SECONDS = 120
FILES = {"project/stats.py": STATS, "project/run.py": RUN}
