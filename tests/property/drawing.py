"""Programs of the language, drawn at random: nested loops, calls, aliases, branches, generators."""

from __future__ import annotations

from detrain.analysis.program import (
    ELEMENT,
    FORM,
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

GLOBALS = ("a", "b", "c", "d")
LOCALS = ("p", "q", "r")
FIELDS = ("f", "g")
GENERATORS = ("@torch", "@numpy")


class Drawing:
    """Draws one program; `random` decides."""

    def __init__(self, random, *, parallel=True):
        self.random = random
        self.parallel = parallel
        self.labels = 0
        self.arity = {}

    def program(self):
        functions = []
        for name in ("inner", "outer")[: self.random.randrange(3)]:
            known = [each.name for each in functions]
            parameters = ("p", "q")[: self.random.randrange(3)]
            bound = tuple(n for n in GLOBALS if self.random.random() < 0.3)
            names = (*LOCALS, *GLOBALS)
            body = self.block(names, known, depth=self.random.randrange(1, 3), loops=0, top=True)
            if self.random.random() < 0.5:
                body = (*body, Leave("return", self.place(names)))
            functions.append(Function(name, parameters, body, bound))
            self.arity[name] = len(parameters)
        known = [each.name for each in functions]
        start = [Bind((name,), "new") for name in GLOBALS if self.random.random() < 0.7]
        main = (*start, *self.block(GLOBALS, known, depth=3, loops=0, top=False), *self.ending())
        return numbered(Program(tuple(functions), main))

    def ending(self):
        return [Emit(((name,),)) for name in GLOBALS if self.random.random() < 0.6]

    def block(self, names, known, depth, loops, top):
        return tuple(
            op
            for _ in range(self.random.randrange(1, 5))
            for op in self.op(names, known, depth, loops, top)
        )

    def op(self, names, known, depth, loops, top):
        choose = self.random.random()
        if depth and choose < 0.28:
            return [self.loop(names, known, depth - 1, loops, top)]
        if depth and choose < 0.36:
            then = self.block(names, known, depth - 1, loops, top)
            otherwise = self.block(names, known, depth - 1, loops, top)
            return [Branch((self.place(names),), then, otherwise if choose < 0.32 else ())]
        if known and choose < 0.46:
            return self.call(names, known)
        if loops and choose < 0.49:
            stop = Leave(self.random.choice(["break", "continue"]))
            return [Branch((self.place(names),), (stop,))]
        if top and choose < 0.51:
            return [Branch((self.place(names),), (Leave("return", self.place(names)),))]
        return [self.simple(names)]

    def call(self, names, known):
        name = self.random.choice(known)
        target = self.place(names) if self.random.random() < 0.6 else None
        return [Call(name, tuple(self.place(names) for _ in range(self.arity[name])), target)]

    def simple(self, names):
        target = self.place(names)
        match self.random.randrange(9):
            case 0:
                return Bind(target, "new", self.places(names))
            case 1 | 2:
                others = self.places(names) if self.random.random() < 0.3 else ()
                return Bind(target, "alias", (self.place(names), *others))
            case 3:
                return Bind(target, "pure", self.places(names))
            case 4 | 5:
                deep = self.random.random() < 0.25
                contents = deep and self.random.random() < 0.3
                return Mutate(self.place(names), self.places(names), deep, contents)
            case 6:
                generator = (self.random.choice(GENERATORS),)
                if self.random.random() < 0.3:
                    generator = self.place(names)
                return Draw(target, generator)
            case 7:
                return Emit(self.places(names) or (self.place(names),))
            case _:
                if self.random.random() < 0.5:
                    return Observe(target, "clock")
                return Key(target, self.places(names))

    def loop(self, names, known, depth, loops, top):
        self.labels += 1
        label = f"l{self.labels}"
        if self.parallel and self.random.random() < 0.15:
            inner = (*names, "x", "y", "z")
            body = (Key(("y",), (("x",), self.place(names))), Bind(("z",), "pure", (("y",),)))
            if self.random.random() < 0.5:
                body = (*body, *self.block(inner, known, depth, loops=0, top=False))
            into, reads = (self.random.choice(names),), (self.place(names),)
            unordered = self.random.random() < 0.1
            return Loop(
                label, "par", reads, body, target=("x",), result=("z",), into=into,
                unordered=unordered,
            )  # fmt: skip
        body = self.block(names, known, depth, loops + 1, top)
        choose = self.random.random()
        if choose < 0.08:
            # Without a test: something must change, or it would never be left.
            asked = (Draw(("w",), ("@numpy",)), Branch((("w",),), (Leave("break"),)))
            return Loop(label, "while", (), (*body, *asked))
        if choose < 0.3:
            return Loop(label, "while", (self.place(names),), body)
        target = (self.random.choice(names),) if self.random.random() < 0.7 else None
        listed = self.random.random() < 0.1
        return Loop(label, "for", (self.place(names),), body, target=target, listed=listed)

    def place(self, names):
        place = [self.random.choice(names)]
        while self.random.random() < 0.3 and len(place) < 3:
            place.append(self.random.choice((*FIELDS, ELEMENT)))
        return tuple(place)

    def places(self, names):
        found = [self.place(names) for _ in range(self.random.randrange(3))]
        return tuple((*each, FORM) if self.random.random() < 0.08 else each for each in found)
