"""What rules look at: a program with its cells, causes and loops, and questions that many ask."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from detrain.analysis.cells import Cells, CellSet
from detrain.analysis.frontend import Source
from detrain.analysis.infer import Causes
from detrain.analysis.loops import TrainingLoops
from detrain.analysis.planning import trained_cells
from detrain.analysis.program import Bind, Op, Place, Span, blocks_of, walk_ops
from detrain.analysis.scopes import Scope
from detrain.analysis.types import Cause
from detrain.analysis.values import Tag

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """A program that is looked at."""

    source: Source
    cells: Cells
    causes: Causes
    loops: TrainingLoops

    @cached_property
    def ops(self) -> dict[int, Op]:
        """All ops by their numbers."""
        return {op.site: op for _, block in self.cells.scopes for op in walk_ops(block)}

    @cached_property
    def scope_of(self) -> dict[int, str]:
        """The function that each op stands in."""
        return {op.site: name for name, block in self.cells.scopes for op in walk_ops(block)}

    @cached_property
    def trained(self) -> CellSet:
        """The cells of what is trained."""
        return trained_cells(self.source, self.cells)

    @cached_property
    def reaching(self) -> Set[Cause]:
        """The causes of what is trained."""
        return self.causes.among(self.trained)

    def world(self, *kinds: str) -> Iterator[Op]:
        """Answers of the world, of some kinds, that reach what is trained; in order."""
        sites = {c.site for c in self.reaching if c.kind == "world" and c.what in kinds}
        yield from self.in_order(self.ops[site] for site in sites if site in self.ops)

    def in_order(self, ops: Iterator[Op]) -> list[Op]:
        """Ops as they stand in the files, one for each place."""
        found = {self._where(op): op for op in ops if op.span is not None}
        return [found[key] for key in sorted(found)]

    def _where(self, op: Op) -> tuple[str, int, int]:
        span = op.span or Span(0)
        return span.file, span.line, span.column

    def causes_of(self, op: Op, places: tuple[Place, ...]) -> Set[Cause]:
        """The causes of what an op reads at some places."""
        scope, found = self.scope_of[op.site], self.cells.nothing
        for place in places:
            found |= self.cells.read(scope, place)
        return self.causes.among(found)

    @cached_property
    def seeding(self) -> dict[int, Op]:
        """The ops that seed a generator."""
        sites = [site for each in self.source.lowered.seeded.values() for site in each]
        return {site: self.ops[site] for site in sites if site in self.ops}

    @cached_property
    def seeds_from(self) -> dict[int, Op]:
        """By answer of the world: the op that seeds a generator with it."""
        found: dict[int, Op] = {}
        for op in self.seeding.values():
            assert isinstance(op, Bind)
            for cause in self.causes_of(op, op.reads):
                if cause.kind == "world":
                    found.setdefault(cause.site, op)
        return found

    def walk(self) -> Iterator[tuple[Op, tuple[Op, ...]]]:
        """All ops, each with the ops that it stands inside."""

        def inside(
            block: tuple[Op, ...], around: tuple[Op, ...]
        ) -> Iterator[tuple[Op, tuple[Op, ...]]]:
            for op in block:
                yield op, around
                for inner in blocks_of(op):
                    yield from inside(inner, (*around, op))

        for _, block in self.cells.scopes:
            yield from inside(block, ())

    # ---------------------------------------------------------------- the text

    @cached_property
    def in_file(self) -> dict[str, list[ast.AST]]:
        """All nodes of each of the project's files."""
        return {module.path: module.nodes for module in self.source.modules}

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, str]]:
        """All nodes of the project's files, with the file."""
        return [(node, path) for path, nodes in self.in_file.items() for node in nodes]

    def span(self, node: ast.AST, file: str) -> Span:
        """Where a node stands."""
        return Span(
            getattr(node, "lineno", 0), getattr(node, "col_offset", 0),
            getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0, file,
        )  # fmt: skip

    @cached_property
    def _fields(self) -> dict[str, set[Tag]]:
        found: defaultdict[str, set[Tag]] = defaultdict(set)
        for (_, name), tags in self.source.facts.fields.items():
            found[name] |= tags
        return found

    def tags(self, node: ast.expr, scope: Scope) -> Set[Tag]:
        """What a name or a field may be."""
        facts = self.source.facts
        if isinstance(node, ast.Attribute):
            return self._fields.get(node.attr, set())
        if not isinstance(node, ast.Name):
            return set()
        owner = scope.owner(node.id)
        if owner is None:
            return set()
        if owner.kind == "module":
            return facts.variables.get(owner.module.prefix + node.id)
        between = "/" if node.id in owner.captured else ":"
        return facts.variables.get(f"{owner.key}{between}{node.id}")
