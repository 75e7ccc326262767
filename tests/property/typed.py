"""Programs that look at what they change, drawn at random.

Each variable is of one kind: a scalar, a *box* with a content and a number, a *pair* that holds a
box, a *list* of boxes. All there is is shown at the end and some of it before, fields are counted
on rather than set, temporaries are bound in one place, and a function is called for one thing: a
difference anywhere is mostly seen, as in real programs.
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

SCALARS, BOXES, PAIR, LIST = ("s", "t", "u"), ("b", "c"), "p", "xs"
GLOBALS = (*SCALARS, *BOXES, PAIR, LIST)
GENERATORS = ("@torch", "@numpy")


class Typed:
    """Draws one program; `random` decides."""

    def __init__(self, random):
        self.random = random
        self.labels = self.names = 0
        self.functions = []

    def program(self):
        for name in ("inner", "outer")[: self.random.randrange(3)]:
            self.functions.append(self.function(name))
        main = (*self.setup(), *self.block(depth=2, loops=0, least=1))
        if not any(isinstance(op, Loop) for op in main):
            main = (*main, *self.loop(depth=1, loops=0))
        ending = [Emit(((name,),)) for name in GLOBALS]
        functions = tuple(function for function, _ in self.functions)
        return numbered(Program(functions, (*main, *ending)))

    def setup(self):
        """All variables are what their kinds say before anything else happens."""
        for name in SCALARS:
            yield Bind((name,), "pure")
        for name in BOXES:
            yield from self.box((name,))
        yield Bind((PAIR,), "new")
        yield from self.box((PAIR, "g"))
        yield Bind((LIST,), "new")
        for _ in range(2):
            fresh = self.fresh()
            yield from self.box(fresh)
            yield Bind((LIST, ELEMENT), "alias", (fresh,))
        if self.chance(0.5):
            yield Bind((LIST, ELEMENT), "alias", ((self.random.choice(BOXES),),))

    def function(self, name):
        """A function, and what it is always called for."""
        body = self.block(depth=self.random.randrange(1, 3), loops=0, least=1)
        counted = ("m", "f")
        start = Bind(counted, "pure", (counted, *self.reads()))
        given = Leave("return", counted)
        made = Function(name, ("m",), (start, *body, given), tuple(SCALARS))
        return made, self.random.choice([*((each,) for each in BOXES), (PAIR, "g")])

    def block(self, depth, loops, least=2):
        found = []
        for _ in range(self.random.randrange(least, 5)):
            found += self.op(depth, loops)
        return tuple(found)

    def op(self, depth, loops):
        choose = self.random.random()
        if depth and choose < 0.25:
            return self.loop(depth - 1, loops)
        if depth and choose < 0.31:
            otherwise = self.block(depth - 1, loops) if self.chance(0.5) else ()
            return self.decided(self.block(depth - 1, loops), otherwise)
        if self.functions and choose < 0.41:
            function, argument = self.random.choice(self.functions)
            return [Call(function.name, (argument,), self.scalar())]
        if loops and choose < 0.43:
            stop = self.random.choice(["break", "continue", "continue"])
            return self.decided((Leave(stop),), ())
        if choose < 0.5:
            return [Emit((self.seen(),))]
        return self.simple()

    def decided(self, then, otherwise):
        """A branch, on what is another time something else."""
        asked = self.scalar()
        draw = Draw(asked, self.generator())
        return [draw, Branch((asked, self.seen()), then, otherwise)]

    def simple(self):
        match self.random.randrange(10):
            case 0:
                return [Bind(self.scalar(), "pure", self.reads())]
            case 1 | 2:
                counted = (*self.box_place(), "f")
                return [Bind(counted, "pure", (counted, *self.reads()))]
            case 3:
                made = self.fresh()
                kept = (PAIR, "g") if self.chance(0.6) else (LIST, ELEMENT)
                return [*self.box(made, self.reads()), Bind(kept, "alias", (made,))]
            case 4:
                taken, others = self.fresh(), self.reads() if self.chance(0.5) else ()
                alias = Bind(taken, "alias", ((LIST, ELEMENT), *others))
                return [alias, Mutate(taken, self.reads())]
            case 5 | 6:
                return [Mutate(self.box_place(), self.reads())]
            case 7:
                if self.chance(0.5):
                    return [Mutate((PAIR,), self.reads())]
                return [Mutate((LIST,), self.reads(), deep=self.chance(0.5))]
            case 8:
                return [Draw(self.scalar(), self.generator())]
            case _:
                if self.chance(0.5):
                    return [Observe(self.scalar(), "clock")]
                return [Key(self.scalar(), self.reads())]

    def loop(self, depth, loops):
        self.labels += 1
        label, item = f"l{self.labels}", (f"i{self.labels}",)
        body = self.block(depth, loops + 1)
        if self.chance(0.1):
            return [Loop(label, "while", (), (*body, *self.decided((Leave("break"),), ())))]
        if self.chance(0.25):
            asked = self.scalar()
            draw = Draw(asked, self.generator())
            return [draw, Loop(label, "while", (asked,), (*body, draw))]
        over = (LIST,) if self.chance(0.6) else self.seen()
        used = Mutate((self.random.choice((*BOXES, LIST)),), (item,))
        return [Loop(label, "for", (over,), (*body, used), target=item)]

    # What is drawn for an op.

    def chance(self, of):
        return self.random.random() < of

    def fresh(self):
        self.names += 1
        return (f"a{self.names}",)

    def box(self, place, reads=()):
        return Bind(place, "new", reads), Bind((*place, "f"), "pure", (self.scalar(),))

    def scalar(self):
        return (self.random.choice(SCALARS),)

    def generator(self):
        return (self.random.choice(GENERATORS),)

    def box_place(self):
        choose = self.random.random()
        if choose < 0.6:
            return (self.random.choice(BOXES),)
        return (PAIR, "g") if choose < 0.85 else (LIST, ELEMENT)

    def seen(self):
        """A place to look at."""
        choose = self.random.random()
        if choose < 0.35:
            return self.scalar()
        return self.box_place() if choose < 0.7 else (self.random.choice((PAIR, LIST)),)

    def reads(self):
        return tuple(self.seen() for _ in range(self.random.randrange(1, 3)))
