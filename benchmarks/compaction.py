"""How much room compaction saves in the history of real training runs, and how fast it is.

    python benchmarks/compaction.py

Programs of examples/torch run with `--save-every N --keep-every N` until they have 19 checkpoints
(or to their end); then all checkpoints but the
newest three are compacted and read again. *Packed at* and *read at* are bytes of arrays for each
second of one process, verification included.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from pathlib import Path

import torch
import zstandard

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.compaction import compact
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.store import LocalStore
from detrain.testing import WarmProcess

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "examples" / "torch"
RESULTS = HERE / "results" / "compaction.md"

# Steps between the checkpoints that are kept, near and far apart.
COUNT = 16
CASES = [
    ("01_mnist_cnn", 10),
    ("05_vae", 1),
    ("05_vae", 5),
    ("05_vae", 20),
    ("09_gpt", 10),
    ("10_bert_qa", 10),
]


def files(store: LocalStore) -> int:
    return sum(path.stat().st_size for path in store.folder.glob("*.safetensors"))


def read_all(store: LocalStore, steps: list[int]) -> tuple[int, float]:
    """Bytes of arrays in some checkpoints, and seconds to read them."""
    began, count = time.perf_counter(), 0
    for step in steps:
        for state in read_checkpoint(store, step).states():
            count += sum(len(data) for data in verified_arrays(store, state).values())
    return count, time.perf_counter() - began


def measure(warm: WarmProcess, program: str, every: int, folder: Path) -> str:
    script = PROGRAMS / f"{program}.py"
    options = ["--name", "it", "--save-every", str(every), "--keep-every", str(every), "--quiet"]
    env = {"DETRAIN_CRASH_AT": f"step={(COUNT + 3) * every + 1}"}
    done = warm.run(["run", *options, str(script), "--out=out"], folder, env, timeout=600)
    if done.code not in (0, -9):
        sys.exit(done.stderr)
    store = LocalStore(folder / ".detrain" / "it" / "checkpoints")
    steps = manifest_steps(store)
    newest = steps[-3:]
    rest = sum(sum(read_checkpoint(store, s).data_files().values()) for s in newest)
    before = files(store) - rest
    began = time.perf_counter()
    made = compact(store, 3, alone=True)
    took = time.perf_counter() - began
    after = files(store) - rest
    count, seconds = read_all(store, made.steps)
    return (
        f"| {program} | {every} | {len(made.steps)} "
        f"| {before / 1e6:.1f} MB | {after / 1e6:.1f} MB "
        f"| {before / after:.2f} | {before / took / 1e6:.0f} MB/s "
        f"| {count / seconds / 1e6:.0f} MB/s |"
    )


def main() -> None:
    rows = []
    with WarmProcess(["torch._dynamo", "numpy", "tqdm"]) as warm:
        for program, every in CASES:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(warm, program, every, Path(folder)))
                print(rows[-1])
    facts = (
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}, zstandard {zstandard.__version__}"
    )
    RESULTS.write_text(
        "# Compaction\n\n"
        f"By `python benchmarks/compaction.py`, which says what the columns mean. {facts}.\n\n"
        "| program | steps apart | checkpoints | before | after | ratio | packed at | read at |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
