"""Programs that look at what they change, drawn at random.

Each variable is of one kind, and everything is what its kind says: a scalar, a *box* with a content
and a number, a *pair* that holds a box, a *list* of boxes. All there is is shown at the end, and
some of it on the way, so that a difference anywhere is mostly seen.
"""

from __future__ import annotations

from detrain.analysis.program import (
    ELEMENT,
    Bind,
    Branch,
    Call,
    Draw,
    Emit,
    Function,
    Key,
    Leave,
    Loop,
    Mutate,
    Observe,
    Program,
    numbered,
)

SCALARS, BOXES, PAIRS, LISTS = ("s", "t", "u"), ("b", "c"), ("p", "q"), ("xs", "ys")
GLOBALS = (*SCALARS, *BOXES, *PAIRS, *LISTS)
GENERATORS = ("@torch", "@numpy")


class Typed:
    """Draws one program; `random` decides."""

    def __init__(self, random):
        self.random = random
        self.labels = self.names = 0
        self.functions = []

    def fresh(self):
        """A variable that nothing else is bound to, as the temporaries of real programs are."""
        self.names += 1
        return (f"a{self.names}",)

    def chance(self, of):
        return self.random.random() < of

    def program(self):
        for name in ("inner", "outer")[: self.random.randrange(3)]:
            self.functions.append(self.function(name))
        names = {"scalar": SCALARS, "box": BOXES, "pair": PAIRS, "list": LISTS}
        main = (*self.setup(), *self.block(names, depth=2, loops=0, least=1))
        if self.labels == 0 or not any(isinstance(op, Loop) for op in main):
            main = (*main, self.loop(names, depth=1, loops=0))
        return numbered(Program(tuple(self.functions), (*main, *self.ending())))

    def setup(self):
        """All variables are what their kinds say before anything else happens."""
        for name in SCALARS:
            yield Bind((name,), "pure")
        for name in BOXES:
            yield from self.box((name,))
        for name in PAIRS:
            yield Bind((name,), "new")
            yield from self.box((name, "g"))
        for name in LISTS:
            yield Bind((name,), "new")
            for _ in range(self.random.randrange(2, 4)):
                if self.chance(0.6):
                    fresh = self.fresh()
                    yield from self.box(fresh)
                    yield Bind((name, ELEMENT), "alias", (fresh,))
                else:
                    yield Bind((name, ELEMENT), "alias", ((self.random.choice(BOXES),),))

    def box(self, place):
        return Bind(place, "new"), Bind((*place, "f"), "pure", ((self.random.choice(SCALARS),),))

    def ending(self):
        return [Emit(((name,),)) for name in GLOBALS]

    def function(self, name):
        names = {"scalar": (*SCALARS, "v"), "box": (*BOXES, "m"), "pair": PAIRS, "list": LISTS}
        body = self.block(names, depth=self.random.randrange(1, 3), loops=0, least=1)
        start = Bind(("v",), "pure", (("m", "f"),))
        given = Leave("return", self.random.choice([("v",), ("m", "f")]))
        bound = tuple(each for each in GLOBALS if self.chance(0.7))
        return Function(name, ("m",), (start, *body, given), bound)

    def block(self, names, depth, loops, least=2):
        found = []
        for _ in range(self.random.randrange(least, 5)):
            found += self.op(names, depth, loops)
        return tuple(found)

    def op(self, names, depth, loops):
        choose = self.random.random()
        if depth and choose < 0.25:
            return [self.loop(names, depth - 1, loops)]
        if depth and choose < 0.33:
            then = self.block(names, depth - 1, loops)
            otherwise = self.block(names, depth - 1, loops) if self.chance(0.5) else ()
            return [Branch((self.seen(names),), then, otherwise)]
        if self.functions and choose < 0.43:
            target = (self.random.choice(names["scalar"]),)
            function = self.random.choice(self.functions)
            return [Call(function.name, (self.place(names, "box"),), target)]
        if loops and choose < 0.46:
            return [
                Branch((self.seen(names),), (Leave(self.random.choice(["break", "continue"])),))
            ]
        if choose < 0.52:
            return [Emit((self.seen(names),))]
        return self.simple(names)

    def simple(self, names):
        pick = self.random.choice
        match self.random.randrange(11):
            case 0 | 1:
                return [Bind(self.place(names, "scalar"), "pure", self.reads(names))]
            case 2:
                made = self.fresh()
                kept = (pick(names["pair"]), "g") if self.chance(0.7) else (pick(LISTS), ELEMENT)
                new = Bind(made, "new", self.reads(names))
                return [new, self.box(made)[1], Bind(kept, "alias", (made,))]
            case 3 | 4:
                others = (self.seen(names),) if self.chance(0.4) else ()
                taken = self.fresh()
                alias = Bind(taken, "alias", (self.place(names, "box"), *others))
                if self.chance(0.3):
                    return [alias, Bind((pick(names["pair"]), "g"), "alias", (taken,))]
                return [alias, Mutate(taken, self.reads(names))]
            case 5 | 6:
                return [Mutate(self.place(names, "box"), self.reads(names))]
            case 7:
                if self.chance(0.5):
                    return [Mutate((pick(names["pair"]),), self.reads(names))]
                return [Mutate((pick(names["list"]),), self.reads(names), deep=self.chance(0.5))]
            case 8 | 9:
                return [Draw(self.place(names, "scalar"), (pick(GENERATORS),))]
            case _:
                target = self.place(names, "scalar")
                if self.chance(0.5):
                    return [Observe(target, "clock")]
                return [Key(target, self.reads(names))]

    def loop(self, names, depth, loops):
        self.labels += 1
        label = f"l{self.labels}"
        target = None
        if self.chance(0.7):
            target = (f"i{self.labels}",)
        body = self.block(names, depth, loops + 1)
        if self.chance(0.1):
            asked = Draw(("w",), ("@numpy",)), Branch((("w",),), (Leave("break"),))
            return Loop(label, "while", (), (*body, *asked))
        if self.chance(0.25):
            changing = Draw(
                (self.random.choice(names["scalar"]),), (self.random.choice(GENERATORS),)
            )
            return Loop(label, "while", (changing.target,), (*body, changing))
        if target is not None:
            body = (*body, self.used(names, target))
        over = (self.random.choice(names["list"]),) if self.chance(0.6) else self.seen(names)
        return Loop(label, "for", (over,), body, target=target)

    def used(self, names, item):
        """What a loop takes is looked at."""
        if self.chance(0.5):
            return Emit((item,))
        return Mutate((self.random.choice((*names["box"], *names["list"])),), (item,))

    def place(self, names, kind):
        pick, choose = self.random.choice, self.random.random()
        if kind == "scalar":
            if choose < 0.65:
                return (pick(names["scalar"]),)
            return (*self.place(names, "box"), "f")
        if choose < 0.5:
            return (pick(names["box"]),)
        return (pick(names["pair"]), "g") if choose < 0.8 else (pick(names["list"]), ELEMENT)

    def seen(self, names):
        """A place to look at."""
        if self.chance(0.6):
            return self.place(names, self.random.choice(["scalar", "box"]))
        return (self.random.choice((*names["pair"], *names["list"])),)

    def reads(self, names):
        return tuple(self.seen(names) for _ in range(self.random.randrange(1, 3)))
