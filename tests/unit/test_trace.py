from __future__ import annotations

from detrain.trace.event import Event
from detrain.trace.log import EMPTY, TraceMark, TraceWriter, read_trace

EVENTS = [
    Event(1, (("main#0", 0),), {"loss": repr(1 / 3)}),
    Event(2, (("main#0", 1), ('a "quoted" site', 7))),
    Event(3, (("main#0", 1), ('a "quoted" site', 8))),
    Event(4, (("main#0", 2),)),
    Event(5, (("main#0", 3),), state="00ff"),
]


def write(path, events, start=EMPTY):
    writer = TraceWriter(path, start)
    for event in events:
        (*outer, (site, iteration)) = event.at
        writer.add(event.step, tuple(outer), site, iteration, event.values, event.state)
    writer.close()
    return writer.mark


def test_what_is_written_is_read(tmp_path):
    mark = write(tmp_path / "t", EVENTS)
    found = read_trace(tmp_path / "t")
    assert [event for event, _ in found.events] == EVENTS
    assert found.end == mark == TraceMark((tmp_path / "t").stat().st_size, found.events[-1][1])


def test_a_torn_tail_is_left_out_and_written_over(tmp_path):
    path = tmp_path / "t"
    whole = write(path, EVENTS)
    content = path.read_bytes()
    for cut in range(1, 40):
        path.write_bytes(content[:-cut])
        found = read_trace(path)
        assert [event for event, _ in found.events] == EVENTS[:-1]
        assert write(path, EVENTS[-1:], found.end) == whole
        assert path.read_bytes() == content


def test_an_altered_line_ends_the_trace(tmp_path):
    path = tmp_path / "t"
    write(path, EVENTS)
    path.write_bytes(path.read_bytes().replace(b'"step":2', b'"step":7'))
    assert [event.step for event, _ in read_trace(path).events] == [1]


def test_the_chain_commits_to_everything_before(tmp_path):
    last = write(tmp_path / "a", EVENTS)
    other = write(tmp_path / "b", [Event(1, (("other#0", 0),)), *EVENTS[1:]])
    assert last.chain != other.chain
