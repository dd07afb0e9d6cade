"""Checks of the documents, the layers, and the shape of the source tree that CONTRIBUTING.md describes.

Every line that starts with `$ ` in a ```console block of a document is a command. `make` commands must name targets of
the Makefile. `tutti` commands must succeed; they run in a copy of examples/getting-started, or of the root if they name
files under examples/. Commands that read a cluster get one with the objects of examples/getting-started, as the current
context and as context staging. A line with `kubectl` needs a real cluster, so only its shell syntax is checked.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet
from importlinter.cli import lint_imports

from tests.support.cluster_api_server import ClusterApiServer, kubeconfig, objects_of

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src" / "tutti", ROOT / "tests"
EXAMPLES = ROOT / "examples"
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(EXAMPLES.rglob("*.md")),
]
CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
SERVES = ("recommender", "scheduler")
"""Commands that do not end; tests/serve and tests/live start and stop them."""
UNCHECKED = {"aws", "git", "pip", "python3"}
WITHOUT_SOURCE = {"browser", "conformance/purchases", "controlplane", "scenarios", "support"}
"""Folders of tests without a folder of the same name in the source: a browser, data, a control plane, builders."""
MAX_MODULES = 15
"""Modules in one folder."""
LONG_FOLDERS = {
    "engine/plugins",  # one module for each plugin of kube-scheduler
    "kube/gangs",  # one module for each dialect
}
"""Folders that may have more modules."""
ONE_MODULE_PER = {"engine/plugins": "Plugin", "kube/gangs": "Dialect"}
"""Packages with one module for each class of a kind; their docstrings need not name these modules."""
MODULE_NAME = re.compile(r"`([a-z_][a-z0-9_]*)/?`")
PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)


class Command(NamedTuple):
    """A command that a document shows."""

    document: str
    line: str

    @property
    def programs(self) -> list[str]:
        """Return the first word of every part of the pipeline."""
        words = shlex.shlex(self.line, posix=True, punctuation_chars="|>&;")
        words.whitespace_split = True
        tokens = ["|", *words]
        return [word for before, word in itertools.pairwise(tokens) if before in {"|", "&&", ";"}]


def documented_commands() -> list[Command]:
    """Return every command of every document, in the order of the documents."""
    return [
        Command(str(path.relative_to(ROOT)), line)
        for path in DOCUMENTS
        for line in commands_in(path.read_text("utf-8"))
    ]


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands of one document; a line that ends in a backslash continues in the next line."""
    for block in CONSOLE_BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                yield " ".join(line[2:].split())


def commands_with(program: str) -> list[ParameterSet]:
    """Return the commands that run a program, as test parameters; commands with kubectl count for kubectl only."""
    chosen = [c for c in documented_commands() if program in c.programs]
    if program != "kubectl":
        chosen = [c for c in chosen if "kubectl" not in c.programs]
    return [pytest.param(c.line, id=f"{c.document}: {c.line}") for c in dict.fromkeys(chosen)]


def test_commands_are_collected() -> None:
    text = "```console\n$ tutti schedule \\\n    -f a.json\noutput\n$ make demo\n```\n```\n$ not this\n```\n"
    assert list(commands_in(text)) == ["tutti schedule -f a.json", "make demo"]
    assert Command("", "kubectl get pods -o json | tutti schedule -f - > out").programs == ["kubectl", "tutti"]


def test_every_documented_program_is_known() -> None:
    known = {"make", "tutti", "kubectl", "curl"} | UNCHECKED
    unknown = [c for c in documented_commands() if not c.programs or not set(c.programs) <= known]
    assert not unknown


@pytest.mark.parametrize("line", commands_with("make"))
def test_documented_make_targets_exist(line: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = [word for word in shlex.split(line)[1:] if "=" not in word]
    assert named
    assert set(named) <= targets


@pytest.mark.parametrize("line", commands_with("curl"))
def test_documented_requests_are_answered(line: str) -> None:
    from tutti.serve.background_server import running_server

    with running_server() as url:
        command = line.replace("http://127.0.0.1:8080", url).replace("curl ", "curl --silent --show-error --fail ")
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterApiServer]:
    """Serve the objects of the first example."""
    with ClusterApiServer(objects_of(EXAMPLES / "getting-started" / "cluster.json")).running() as server:
        yield server


def is_serving(command: ParameterSet) -> bool:
    """Return whether a documented command does not end."""
    return str(command.values[0]).split()[1] in SERVES


@pytest.mark.parametrize("line", [c for c in commands_with("tutti") if is_serving(c)])
def test_documented_servers_have_these_options(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    command = importlib.import_module(f"tutti.cli.{name}.command").command
    assert command.make_context(name, arguments)


@pytest.mark.parametrize("line", [c for c in commands_with("tutti") if not is_serving(c)])
def test_documented_tutti_commands_succeed(line: str, tmp_path: Path, cluster: ClusterApiServer) -> None:
    examples = shutil.copytree(EXAMPLES, tmp_path / "examples")
    config = kubeconfig(tmp_path, cluster.url, contexts=("test", "staging"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path if "examples/" in line else examples / "getting-started",
        env={**os.environ, "PATH": path, "KUBECONFIG": str(config)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", commands_with("kubectl"))
def test_documented_kubectl_pipelines_parse(line: str) -> None:
    parsed = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)
    assert parsed.returncode == 0, parsed.stderr


@pytest.mark.parametrize("document", [pytest.param(d, id=str(d.relative_to(ROOT))) for d in DOCUMENTS])
def test_links_lead_to_files(document: Path) -> None:
    targets = [t for t in LINK.findall(document.read_text("utf-8")) if "://" not in t]
    assert not [t for t in targets if not (document.parent / t).exists()]


@pytest.mark.parametrize("document", [pytest.param(d, id=str(d.relative_to(ROOT))) for d in DOCUMENTS])
def test_modules_that_documents_name_exist(document: Path) -> None:
    """A path in backticks ends as the path of a module does; packages that are planned are not in backticks."""
    modules = [
        path.relative_to(ROOT).as_posix()
        for path in (
            each for top in ("src", "tests", "benchmarks", "tools", "oracle") for each in (ROOT / top).rglob("*.py")
        )
    ]
    named = set(re.findall(r"`([\w/]+\.py)`", document.read_text("utf-8")))
    assert not {name for name in named if not any(f"/{module}".endswith(f"/{name}") for module in modules)}


def test_layers_and_purity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0, "run `make lint` for the import that breaks a contract"


def test_tests_mirror_the_source() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    unknown = {folder.as_posix() for folder in folders if not (SOURCE / folder).is_dir()}
    assert not {folder for folder in unknown if not _is_within(folder, WITHOUT_SOURCE)}


def _is_within(folder: str, parents: set[str]) -> bool:
    return any(folder == parent or folder.startswith(f"{parent}/") for parent in parents)


def test_tests_import_no_test_modules() -> None:
    """Shared code belongs in tests/support, or in the conftest of a folder."""
    imports = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in TESTS.rglob("*.py")
        for name in imported_modules(path)
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    ]
    assert not imports


def imported_modules(path: Path) -> Iterator[str]:
    for statement in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module is not None:
            yield statement.module


def test_folders_are_short() -> None:
    modules: dict[str, int] = defaultdict(int)
    for path in SOURCE.rglob("*.py"):
        modules[path.parent.relative_to(SOURCE).as_posix()] += path.name != "__init__.py"
    assert not {folder: n for folder, n in modules.items() if n > MAX_MODULES and folder not in LONG_FOLDERS}


@pytest.mark.parametrize("package", [pytest.param(p, id=p.relative_to(SOURCE).as_posix()) for p in PACKAGES])
def test_package_docstrings_name_every_module(package: Path) -> None:
    """In backticks, without other names that look like modules."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    named = set(MODULE_NAME.findall(docstring))
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    children = modules | {path.parent.name for path in package.glob("*/__init__.py")}
    kind = ONE_MODULE_PER.get(package.relative_to(SOURCE).as_posix())
    optional = {module for module in modules if kind and defines_a(kind, package / f"{module}.py")}
    assert (sorted(children - named - optional), sorted(named - children)) == ([], []), "missing and unknown names"


def defines_a(kind: str, path: Path) -> bool:
    """Return whether a module has a class of this kind, with a base class from another module."""
    classes = [each for each in ast.parse(path.read_text("utf-8")).body if isinstance(each, ast.ClassDef)]
    bases = {base.id for each in classes for base in each.bases if isinstance(base, ast.Name)}
    return any(base.endswith(kind) for base in bases - {each.name for each in classes})


def test_class_names_are_unique() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for each in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                files[each.name].append(path.relative_to(SOURCE).as_posix())
    assert not {name: where for name, where in files.items() if len(where) > 1}
