"""Mutation sites: every operator, integer and condition that a mutant can change in the functions of a source tree.

A mutant is identified by path, qualified function name and statement text, not by line number, so that it still applies
after its file was edited elsewhere. Annotations, docstrings, message texts, raise and assert statements, code outside
of functions and `if TYPE_CHECKING` blocks have no sites.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

PACKAGES = ("kube", "cluster", "engine", "recommend")
KINDS = ("compare", "arithmetic", "constant", "condition")
SHARES = {"readers": 15, "engine": 22, "recommend": 23}
"""Mutants of each part of the code, of 60 in total."""
COMPARE = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
}  # fmt: skip
TEXT_METHODS = {"join", "removeprefix", "removesuffix", "strip", "rstrip", "lstrip", "lower", "upper", "replace"}
UNTESTED_METHODS = {"__repr__", "__str__", "__hash__"}


@dataclass(frozen=True)
class Mutant:
    """One change of one statement; `occurrence` counts earlier equal statements in the function."""

    path: str
    function: str
    kind: str
    change: str
    before: str
    after: str
    occurrence: int = 0
    id: int = 0
    tests: tuple[str, ...] = ()
    note: str = ""

    def suites(self) -> list[str]:
        """Return the test paths: the recorded ones, or the directories of the mutant's package."""
        package = Path(self.path).parts[2]
        return list(self.tests) or [f"tests/{package}"] + ["tests/engine"] * (package == "cluster")


def is_text(node: ast.AST) -> bool:
    """Tell whether an operand is visibly a string or a sequence, which have no `-` and no `//`."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    if isinstance(node, ast.IfExp):
        return is_text(node.body) or is_text(node.orelse)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in TEXT_METHODS
    sequence = isinstance(node, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple)
    return sequence or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def statements(body: list[Any], name: str = "", inside: bool = False) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the statements of all functions with the qualified function name; skip raise, assert, TYPE_CHECKING."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name not in UNTESTED_METHODS:
                inner = f"{name}.{node.name}" if name else node.name
                yield from statements(node.body, inner, not isinstance(node, ast.ClassDef))
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            if inside and isinstance(node, ast.stmt) and not isinstance(node, ast.Raise | ast.Assert):
                yield name, node
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from statements(getattr(node, block, []), name, inside)


def expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and its own expressions, without nested statements, annotations and message texts."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.IfExp) and is_text(node.body) and is_text(node.orelse)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        annotation = isinstance(child, ast.arg) or child is getattr(node, "annotation", None)
        if not annotation and not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from expressions(child)


class Module:
    """A source file; positions are byte offsets, as in the syntax tree."""

    def __init__(self, root: Path, path: str) -> None:
        self.path, self.data = path, (root / path).read_bytes()
        self.lines = self.data.decode().split("\n")
        self.tree = ast.parse(self.data)
        self.starts = [0, *itertools.accumulate(len(line.encode()) + 1 for line in self.lines)]

    def span(self, node: Any) -> tuple[int, int]:
        """Return where an expression starts and ends."""
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def operator(self, kind: str, left: ast.AST, right: ast.AST, old: str, new: str) -> Iterator[tuple[Any, ...]]:
        """Yield the change of the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.data[start:end].decode()
        if gap.count(old) == 1 and "#" not in gap:
            yield kind, f"{old} to {new}", start, end, gap.replace(old, new)

    def edits(self, node: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the changes of one node: kind, description, start, end, new text."""
        tests: list[ast.expr] = []
        match node:
            case ast.Compare():
                for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    yield from self.operator("compare", left, right, *COMPARE[type(op)])
            case ast.BinOp() if type(node.op) in ARITHMETIC and not is_text(node):
                yield from self.operator("arithmetic", node.left, node.right, *ARITHMETIC[type(node.op)])
            case ast.AugAssign() if type(node.op) in ARITHMETIC and not is_text(node.value):
                yield from self.operator("arithmetic", node.target, node.value, *ARITHMETIC[type(node.op)])
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield "constant", f"{value} to {value + 1}", *self.span(node), str(value + 1)
            case ast.BoolOp():
                words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in itertools.pairwise(node.values):
                    yield from self.operator("condition", left, right, *words)
            case ast.UnaryOp(op=ast.Not()):
                yield "condition", "drop not", self.span(node)[0], self.span(node)[0] + 4, ""
            case ast.If() | ast.IfExp():
                tests = [node.test]
            case ast.comprehension():
                tests = node.ifs
        for test in tests:
            start, end = self.span(test)
            if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
                yield "condition", "negate", start, end, f"not ({self.data[start:end].decode()})"

    def mutants(self) -> Iterator[Mutant]:
        """Yield every mutant of the file."""
        for function, statement in statements(self.tree.body):
            nodes = list(expressions(statement))
            own = [statement] if not hasattr(statement, "body") and not hasattr(statement, "cases") else nodes[1:]
            first = statement.lineno
            last = max([first, *(getattr(node, "end_lineno", first) for node in own)])
            before = dedent(self.lines[first - 1 : last])
            if any(line and not line.startswith(" ") for line in self.lines[first - 1 : last]):
                continue  # A string with line breaks: its indentation is part of the text.
            places = self.find(function, before)
            for kind, change, start, end, new in itertools.chain.from_iterable(map(self.edits, nodes)):
                low, high = self.starts[first - 1], self.starts[last] - 1
                text = (self.data[low:start] + new.encode() + self.data[end:high]).decode()
                after = dedent(text.split("\n"))
                yield Mutant(self.path, function, kind, change, before, after, places.index(first - 1))

    def find(self, function: str, before: str) -> list[int]:
        """Return the indices of the lines where a statement starts in a function, at any indentation."""
        count = before.count("\n") + 1
        found: set[int] = set()
        for node in functions(self.tree.body, function.split(".")):
            lines = range(node.lineno - 1, node.end_lineno)
            found.update(i for i in lines if dedent(self.lines[i : i + count]) == before)
        return sorted(found)

    def apply(self, mutant: Mutant) -> str | None:
        """Return the file's text with the mutant, or None if the statement is not there."""
        places = self.find(mutant.function, mutant.before)
        if mutant.occurrence >= len(places):
            return None
        first, count = places[mutant.occurrence], mutant.before.count("\n") + 1
        indent = re.match(" *", self.lines[first])[0]  # type: ignore[index]
        new = [indent + line if line else line for line in mutant.after.split("\n")]
        return "\n".join([*self.lines[:first], *new, *self.lines[first + count :]])


def dedent(lines: list[str]) -> str:
    """Join lines without the first line's indentation."""
    indent = re.match(" *", lines[0])[0]  # type: ignore[index]
    return "\n".join(line.removeprefix(indent) for line in lines)


def functions(body: Iterable[Any], names: list[str]) -> Iterator[Any]:
    """Yield the functions with a qualified name, at any depth of if and try blocks."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from functions(ast.iter_child_nodes(node), names)
        elif node.name == names[0]:
            yield from functions(node.body, names[1:]) if names[1:] else [node]


def all_mutants(root: Path, packages: Iterable[str]) -> list[Mutant]:
    """Return every possible mutant of the packages."""
    files = sorted(path for package in packages for path in (root / "src/tutti" / package).rglob("*.py"))
    names = [str(path.relative_to(root)) for path in files if path.name != "__init__.py"]
    return [mutant for name in names for mutant in Module(root, name).mutants()]


def part_of(path: str) -> str:
    """Return the part of the code that a file belongs to."""
    package, folder = Path(path).parts[2:4]
    readers = package == "kube" or (package == "recommend" and folder in {"wire", "pools"})
    return "readers" if readers else "recommend" if package == "recommend" else "engine"


def draw(root: Path, seed: int, count: int) -> list[Mutant]:
    """Draw mutants: every kind equally often in each part, each from another file.

    `count` is divided in the ratio of `SHARES`; the last part gets the rest.
    """
    chance = random.Random(seed)
    pool = all_mutants(root, PACKAGES)
    drawn: list[Mutant] = []
    for part, share in SHARES.items():
        size = count - len(drawn) if part == "recommend" else round(count * share / sum(SHARES.values()))
        unused = [mutant for mutant in pool if part_of(mutant.path) == part]
        for i in range(size):
            allowed = [mutant for mutant in unused if mutant.kind == KINDS[i % len(KINDS)]]
            path = chance.choice(sorted({mutant.path for mutant in allowed}))
            mutant = chance.choice([mutant for mutant in allowed if mutant.path == path])
            drawn.append(replace(mutant, id=len(drawn) + 1))
            unused = [other for other in unused if other.path != path]
    return drawn
