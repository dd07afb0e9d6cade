"""The commands that tools/golden.py records: those of the documents, and those of golden_commands.txt.

Contract: reads files and runs nothing. Documents are read by the rules of tests/test_project.py: every line that starts
with `$ ` in a block is a command; commands that name files under examples/ run in the root, the others in the first
example's directory; lines that need a cluster, because they have kubectl or no -f, are left out. Blocks marked `text`
count as well as `console`, and each command comes in every output form that it has. golden_commands.txt explains its
own syntax.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("golden_commands.txt")
FORMS = {
    "schedule": "wide json yaml name",
    "explain": "wide json yaml",
    "recommend": "wide json yaml name",
    "scalesim": "json yaml",
}
"""The output forms that a command has beside the table."""
ALTERNATIVES = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
BLOCK = re.compile(r"^```(?:console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLUSTER = re.compile(r"kubectl|tutti dump|tutti (?:schedule|explain|recommend)\b(?!.* -f )")
"""A command that needs a cluster."""
SERVER = "tutti recommender --port 0 --workers 1 --queue 8"
"""The server that answers the requests of the documents, and where these expect it."""
URL = "http://127.0.0.1:8080"


class Command(NamedTuple):
    """A command line, the directory below the root in which it runs, and the command of the server that it asks."""

    line: str
    folder: str = "."
    server: str = ""

    @property
    def file_name(self) -> str:
        """The name of the command's file in a record."""
        digest = hashlib.sha256("\n".join(self).encode()).hexdigest()[:8]
        return f"{re.sub('[^A-Za-z0-9]+', '-', self.line).strip('-')[:100]}-{digest}.txt"


Job = tuple[Command, ...]
"""Commands that run one after the other: one alone, or all that ask one server."""


def all_jobs(root: Path, *, only: str = "") -> list[Job]:
    """The jobs of the documents below a root, and of the list, with a command line that contains `only`; each once."""
    has_shared = (root.parent / "shared").exists()
    every = [*documented_jobs(root), *listed_jobs(LIST.read_text("utf-8"))]
    found = (tuple(each for each in job if has_shared or "{shared}" not in each.line) for job in every)
    return list(dict.fromkeys(job for job in found if any(only in each.line for each in job)))


def documented_jobs(root: Path) -> Iterator[Job]:
    """The commands of the documents."""
    requests = []
    for line in documented_lines(root):
        program, *arguments = line.split()
        if program == "curl":
            requests.append(Command(line.replace(URL, "{url}"), server=SERVER))
        elif program == "tutti" and arguments[0] != "recommender":
            folder = "." if "examples/" in line else "examples/getting-started"
            lines = [line]
            if arguments[0] in FORMS and "--report" not in arguments and "advice" not in arguments:
                lines.append(re.sub(r" -o \w+", "", line) + " {forms}")
            yield from ((Command(each, folder),) for line in lines for each in expanded(line))
    yield tuple(dict.fromkeys(requests))


def documented_lines(root: Path) -> Iterator[str]:
    """The command lines of the documents that need no cluster; one that ends in a backslash goes on in the next."""
    documents = (root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "examples").rglob("*.md")))
    for path in documents:
        for block in BLOCK.findall(path.read_text("utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("$ ") and not CLUSTER.search(line):
                    yield line[2:]


def listed_jobs(text: str) -> list[Job]:
    """The commands of a text in the syntax of golden_commands.txt."""
    jobs: list[Job] = []
    requests: list[Command] = []
    server = ""
    for line in text.replace("\\\n", "").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("server: "):
            jobs.append(tuple(requests))
            requests, (server,) = [], expanded(line.removeprefix("server: "))
        elif "{url}" in line:
            requests += (Command(each, server=server) for each in expanded(line))
        else:
            jobs += ((Command(each),) for each in expanded(line))
    return [*jobs, tuple(requests)]


def expanded(line: str) -> Iterator[str]:
    """Every command line that a line with alternatives stands for."""
    if "{forms}" in line:
        forms = FORMS[line.partition("tutti ")[2].split()[0]].split()
        line = line.replace("{forms}", f"[{'|'.join(['', *(f'-o {form}' for form in forms)])}]")
    if found := ALTERNATIVES.search(line):
        for choice in found[1].split("|"):
            yield from expanded(line[: found.start()] + choice + line[found.end() :])
    else:
        yield " ".join(line.split())
