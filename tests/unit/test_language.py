"""The randomness language: its printed form, what is well formed, what its programs mean."""

from __future__ import annotations

import random

import pytest

from detrain.analysis.cells import Cells
from detrain.analysis.check import check
from detrain.analysis.derive import cuts_of, derive, plan_of, type_at
from detrain.analysis.infer import Causes
from detrain.analysis.interpret import Machine
from detrain.analysis.pretty import parse, print_program
from detrain.errors import UsageError

TRAIN = """\
def step(model, batch)
  draw noise from @torch
  bind out = pure(model.w, batch, noise)
  mutate model.w by out
  return out
def test(model, data)
  bind total = pure()
  loop l2 item in data
    bind total = pure(total, model.w, item)
  return total
main
  bind model = new()
  bind model.w = new()
  bind data = new()
  bind seen = new()
  bind best = pure()
  loop l0 epoch in data
    bind rate = pure(epoch)
    loop l1 batch in data
      call loss = step(model, batch)
      mutate seen by loss, rate
    call score = test(model, data)
    observe now of clock
    emit score, now
    branch score, best
      bind best = pure(score)
  emit best, model, seen
"""


def plans(text):
    cells = Cells(parse(text))
    return {derive(cells, cut).cut.labels: derive(cells, cut) for cut in cuts_of(cells.program)}


def names(cells):
    return sorted(cell[2] for cell in cells if cell[0] == "")


def test_the_printed_form_is_read_back():
    program = parse(TRAIN)
    assert print_program(program) == TRAIN
    assert check(program) == []


def test_spans_are_printed_and_read_back():
    text = "main\n  loop l0 x in data  ; 3:0-4:12 train.py\n    emit x  ; 4:4-4:12\n"
    assert print_program(parse(text)) == text
    assert parse(text).main[0].span.file == "train.py"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("main\n  bind x\n", "line 2: expected an op"),
        ("main\n      emit x\n", "line 2: expected an indentation of 2"),
        ("def f(x\nmain\n", "line 1: expected a `def"),
        ("def f(x)\n  emit x\n", "no `main`"),
        ("main\n  loop l0 data\n", "line 2: expected `loop label target in places`"),
    ],
)
def test_what_is_no_program_is_said_with_its_line(text, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("main\n  call f(x)\n", "calls what is not defined"),
        ("def f(x)\n  emit x\nmain\n  call f()\n", "gives 0 of 1 arguments"),
        ("main\n  break\n", "`break` outside a loop"),
        ("main\n  return x\n", "`return` outside a function"),
        ("main\n  loop l x in a\n    emit x\n  loop l x in a\n    emit x\n", "have the label l"),
        ("main\n  par l x in a\n    break\n", "leaves the parallel loop l"),
        ("def f()\n  emit x\ndef f()\n  emit x\nmain\n  emit x\n", "one name"),
    ],
)
def test_what_is_not_well_formed_is_listed(text, message):
    (trouble,) = check(parse(text))
    assert message in trouble


def test_what_a_checkpoint_of_a_training_program_holds():
    plan = plans(TRAIN)["l0", "l1"]
    outer, inner = plan.levels
    assert names(outer.restore) == []  # `rate` and the loader are made again on the way
    assert names(inner.restore) == ["@torch", "best"]
    assert ("object", "10", "") in inner.restore  # what `model.w` holds
    assert ("object", "12", "") in inner.restore  # what `seen` holds
    assert ("object", "11", "") not in inner.restore  # the data does not change
    assert "loss" not in names(plan.live)  # bound again before it is read
    assert "rate" in names(plan.live)  # written again on the way, so it is not saved
    assert names(plans(TRAIN)["l0",].levels[0].restore) == ["@torch", "best"]


def test_types():
    program = parse(TRAIN)
    cells = Cells(program)
    causes = Causes(cells)
    plan = plans(TRAIN)["l0", "l1"]

    def kind(name):
        return type_at(cells, causes, plan, ("", "", name))

    assert kind("best").life == "carried"
    assert {cause.kind for cause in kind("best").causes} == {"draw"}
    assert kind("rate").life == "rebuilt"
    assert kind("data").life == "setup"
    assert kind("loss").life == "scratch"
    assert {cause.kind for cause in kind("now").causes} >= {"world"}


def test_a_model_that_is_read_on_the_way_is_restored_at_the_outer_level():
    text = TRAIN.replace("bind rate = pure(epoch)", "bind rate = pure(epoch, model.w)")
    outer, _ = plans(text)["l0", "l1"].levels
    assert outer.restore == {("object", "10", "")}


def test_a_draw_in_a_parallel_loop_is_refused_with_its_line():
    text = """\
main
  bind data = new()
  par l0 x in data giving y into batches
    draw y from @torch  ; 7:8-7:20 train.py
  loop l1 batch in batches
    emit batch
"""
    refused = {item.place: item.line for item in plan_of(parse(text)).refused}
    assert refused["draw y from @torch"] == 7
    keyed = text.replace("draw y from @torch", "key y by x")
    assert plan_of(parse(keyed)).refused == ()


def test_what_an_iteration_leaves_to_the_next_races_even_if_only_its_result_depends_on_it():
    text = """\
main
  bind data = new()
  par l0 x in data giving z into batches
    key y by x, b
    bind z = pure(y)
    bind b = new()
  loop l1 batch in batches
    emit batch
"""
    assert plan_of(parse(text)).refused
    first = text.replace("    bind b = new()\n", "").replace(
        "    key y", "    bind b = new()\n    key y"
    )
    assert plan_of(parse(first)).refused == ()


def test_parallel_loops_run_in_any_order_and_their_results_stay_in_order():
    text = """\
main
  bind data = new()
  bind data[] = pure()
  bind data[] = pure(data)
  bind data[] = pure(data)
  par l0 x in data giving y into ys
    key y by x
  emit ys
"""
    outputs = set()
    for order in (text, text.replace(" into ys", " into ys unordered")):
        outputs.add(
            len(
                {
                    tuple(Machine(parse(order), schedule=random.Random(n), world=hash).run())
                    for n in range(20)
                }
            )
        )
    assert min(outputs) == 1
    assert max(outputs) > 1


def test_what_is_computed_for_nothing_is_not_kept():
    text = """\
main
  bind model = new()
  bind log = new()
  loop l0 x in model
    bind seen = pure(seen, x)
    mutate log by seen
    mutate model by x
  emit model
"""
    assert {cell[2] for cell in plans(text)["l0",].levels[0].restore} == {""}
    shown = text.replace("emit model", "emit model, log")
    assert "seen" in names(plans(shown)["l0",].levels[0].restore)


def test_an_opaque_change_reaches_all_that_is_below():
    text = """\
main
  bind model = new()
  bind model.layer = new()
  bind model.layer.rate = pure()
  bind other = new()
  loop l0 x in other
    mutate all model by x
  emit model.layer.rate, other
"""
    assert print_program(parse(text)) == text
    inner = plans(text)["l0",].levels[0]
    assert {("object", "1", ""), ("object", "2", "rate"), ("object", "2", "")} <= inner.changed
    assert not {cell for cell in inner.changed if cell[1] == "4"}
    plain = text.replace("mutate all", "mutate")
    assert plans(plain)["l0",].levels[0].changed == {("object", "1", ""), ("", "", "x")}


def test_what_decides_on_an_alias_is_read():
    text = """\
main
  bind xs = new()
  bind xs[] = new()
  loop l0 i in xs
    draw n from @numpy
    bind x = xs[] by n, i
    mutate x
  emit xs
"""
    assert print_program(parse(text)) == text
    assert names(plans(text)["l0",].levels[0].restore) == ["@numpy"]
    unread = text.replace(" by n, i", "")
    assert names(plans(unread)["l0",].levels[0].restore) == []


def test_a_loop_without_a_test_ends_only_where_it_is_left():
    text = """\
main
  bind n = pure()
  while l0
    draw n from @numpy
    branch n
      break
    bind last = pure()
  emit n
"""
    program = parse(text)
    assert print_program(program) == text
    assert check(program) == []
    assert names(plans(text)["l0",].levels[0].restore) == ["@numpy"]
    assert len(Machine(program, schedule=random.Random(0), world=hash).run()) == 1


def test_only_chains_to_wanted_loops_are_followed_and_not_all_of_them():
    def ways(depth):
        calls = "".join(
            f"def f{n}(x)\n  call f{n + 1}(x)\n  call f{n + 1}(x)\n" for n in range(depth)
        )
        last = f"def f{depth}(x)\n  loop l0 y in x\n    emit y\n"
        return parse(f"{calls}{last}main\n  loop l1 x in a\n    call f0(x)\n")

    assert [cut.labels for cut in cuts_of(ways(1))] == [("l1",), ("l1", "l0"), ("l1", "l0")]
    assert len(list(cuts_of(ways(40)))) == 1 + 64
    assert [cut.labels for cut in cuts_of(ways(40), lambda op: op.label == "l1")] == [("l1",)]


def test_where_many_objects_come_together_they_are_one():
    made = "".join(f"  bind x{n} = new()\n  bind xs[] = x{n}\n" for n in range(60))
    text = f"main\n  bind xs = new()\n{made}  bind y = xs[]\n  bind y.f = pure()\n"
    cells = Cells(parse(text))
    assert len(cells.cells("", ("y", "f"))[0]) == 1
    assert cells.cells("", ("y", "f"))[0] == cells.cells("", ("x7", "f"))[0]
    few = Cells(parse(text), crowd=60)
    assert len(few.cells("", ("y", "f"))[0]) == 60
