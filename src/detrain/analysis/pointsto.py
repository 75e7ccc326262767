"""Which objects a variable or a field may hold, for the whole program at once, without order.

Each op that passes objects on is a demand: what one holder may hold, another may too. Demands on
the fields of an object are made when it is known which objects those are. A holder is looked at
again only when there is something new in it.

Where the objects of very many ops come together (everything is put into one list, and taken out
again), they are a *crowd*: from there on they are one, as if one op had made them. What is lost is
small, as whoever looks at one of them there may look at any, and the work grows with the program
and not with its square.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from detrain.analysis.bitset import BitSet, Numbering

__all__ = ["PointsTo"]

_CROWD = 48


class PointsTo:
    """Objects, known by the op that makes them, and their holders."""

    def __init__(self, crowd: int = _CROWD) -> None:
        self.sites: Numbering[int] = Numbering()
        self._crowd = crowd
        self._fields: dict[int, dict[str, None]] = {}
        self._met: dict[int, dict[str, None]] = {}
        """The fields of the objects of a site that are bound or looked at."""
        self._one: dict[int, int] = {}
        """What the objects of a site are taken for, if it is another site."""
        self._crowds: dict[int, BitSet[int]] = {}
        """The sites whose objects are taken for those of one."""
        self._joined = self.sites.nothing
        self._numbers: dict[Hashable, int] = {}
        self._same: list[int] = []
        """A holder that has become one with this one, or itself."""
        self._held: list[BitSet[int]] = []
        self._new: list[BitSet[int]] = []
        self._owners: list[dict[int, None]] = []
        """Whose fields a holder has made demands on."""
        self._to: list[dict[int, None]] = []
        self._loads: list[list[tuple[str, int]]] = []
        self._stores: list[list[tuple[str, int]]] = []
        self._todo: deque[int] = deque()
        self.nowhere = self.holder(("nowhere",))
        """Where scalars come from."""

    # ---------------------------------------------------------------- answers

    def site(self, site: int) -> int:
        """What the objects of a site are taken for: themselves, or the first of a crowd."""
        while site in self._one:
            site = self._one[site]
        return site

    def knows(self, site: int) -> bool:
        """Whether an op makes objects."""
        return self.site(site) in self._fields

    def is_alone(self, site: int) -> bool:
        """Whether no other op's objects are taken for those of this one."""
        return site not in self._one and site not in self._crowds

    def all_sites(self) -> list[int]:
        """The sites whose objects are not taken for those of another."""
        return list(self._fields)

    def fields(self, site: int) -> list[str]:
        """The fields of the objects of a site that are ever bound, as they are met."""
        return list(self._fields[self.site(site)])

    def held(self, holder: int) -> BitSet[int]:
        """The sites whose objects may be held."""
        holder = self._now(holder)
        self._held[holder] = self._merged(self._held[holder])
        return self._held[holder]

    def _merged(self, sites: BitSet[int]) -> BitSet[int]:
        """The same objects, those of a crowd as one."""
        if sites.isdisjoint(self._joined):
            return sites
        for first, members in self._crowds.items():
            if not sites.isdisjoint(members):
                sites = sites - members | self.sites.set((first,))
        return sites

    # ---------------------------------------------------------------- demands

    def holder(self, key: Hashable) -> int:
        """The holder of a name: a variable, a field of a site, what a function returns."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._held)
            self._same.append(number)
            self._held.append(self.sites.nothing)
            self._new.append(self.sites.nothing)
            self._owners.append({})
            self._to.append({})
            self._loads.append([])
            self._stores.append([])
        return number

    def field(self, site: int, name: str) -> int:
        """The holder that a field of the objects of a site is."""
        site = self.site(site)
        self._met[site].setdefault(name)
        return self.holder((site, name))

    def make(self, site: int, holder: int) -> None:
        """An op makes objects, and gives them to a holder."""
        self._fields.setdefault(site, {"": None, "[]": None})
        self._met.setdefault(site, {})
        self._give(holder, self.sites.set((site,)))

    def copy(self, source: int, target: int) -> None:
        """What one may hold, the other may."""
        source, target = self._now(source), self._now(target)
        if source != target and target not in self._to[source]:
            self._to[source][target] = None
            self._give(target, self._held[source])

    def load(self, base: int, name: str) -> int:
        """The holder of what a field of another holder's objects may hold."""
        key = ("field of", base, name)
        if key not in self._numbers:
            self._loads[base].append((name, self.holder(key)))
        return self._numbers[key]

    def store(self, base: int, name: str, source: int) -> None:
        """A field of a holder's objects is bound to what another may hold."""
        self._stores[base].append((name, source))

    # ---------------------------------------------------------------- the way to the answers

    def solve(self) -> None:
        """Follow all demands to their end; they must all have been made."""
        while self._todo:
            holder = self._todo.popleft()
            new = self._merged(self._new[holder]) - self._held[holder]
            self._new[holder] = self.sites.nothing
            if not new or self._same[holder] != holder:
                continue
            self._held[holder] |= new
            if self._loads[holder] or self._stores[holder]:
                self._own(holder, new)
            for target in [*self._to[holder]]:
                self._give(self._now(target), new)

    def _give(self, holder: int, sites: BitSet[int]) -> None:
        if not sites <= self._held[holder]:
            if not self._new[holder]:
                self._todo.append(holder)
            self._new[holder] |= sites

    def _own(self, holder: int, new: BitSet[int]) -> None:
        """Make a holder's demands on the fields of the objects that are new in it."""
        owners = self._owners[holder]
        for site in new:
            if site not in owners:
                owners[site] = None
                for name, made in self._loads[holder]:
                    self.copy(self.field(site, name), made)
                for name, source in self._stores[holder]:
                    self._fields[site].setdefault(name)
                    if source != self.nowhere:
                        self.copy(source, self.field(site, name))
        if len(owners) > self._crowd:
            first, *others = dict.fromkeys(map(self.site, owners))
            self._owners[holder] = {first: None}
            for site in others:
                self._join(first, site)

    def _join(self, first: int, other: int) -> None:
        """Take the objects of one site for those of another from now on."""
        self._one[other] = first
        members = self._crowds.get(first, self.sites.nothing) | self.sites.set((other,))
        self._crowds[first] = members | self._crowds.pop(other, self.sites.nothing)
        self._joined |= self._crowds[first]
        self._fields[first] |= self._fields.pop(other)
        for name in self._met.pop(other):
            self._unite(self.field(first, name), self.holder((other, name)))

    def _unite(self, holder: int, other: int) -> None:
        holder, other = self._now(holder), self._now(other)
        if holder == other:
            return
        self._same[other] = holder
        self._to[holder] |= self._to[other]
        self._loads[holder] += self._loads[other]
        self._stores[holder] += self._stores[other]
        everything = self._held[holder] | self._held[other] | self._new[holder] | self._new[other]
        # What either held has not met the demands of the other: it is looked at as if it were new.
        self._held[holder], self._owners[holder] = self.sites.nothing, {}
        self._new[holder] = self.sites.nothing
        self._give(holder, everything)

    def _now(self, holder: int) -> int:
        while self._same[holder] != holder:
            holder = self._same[holder]
        return holder
