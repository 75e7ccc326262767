"""What is known of libraries: rows of plain facts, one table for each library, found by name.

Nothing here imports a library: a table speaks of names as text, and may speak of one that isn't
installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from detrain.analysis.library import (
    jax,
    numpy,
    others,
    python,
    tensorflow,
    torch,
    torch_nn,
    torchvision,
)
from detrain.analysis.library.row import Row

__all__ = ["ALIASES", "BASES", "ROWS", "TABLES", "Row", "join", "lookup"]

TABLES: Mapping[str, tuple[Row, ...]] = {
    "python": python.ROWS,
    "numpy": numpy.ROWS,
    "torch": torch.ROWS,
    "torch_nn": torch_nn.ROWS,
    "torchvision": torchvision.ROWS,
    "tensorflow": tensorflow.ROWS,
    "jax": jax.ROWS,
    "others": others.ROWS,
}

ALIASES: Mapping[str, str] = {
    "gym": "gymnasium",
    "gymnasium.Env.action_space": "gymnasium.spaces.Space",
    "gymnasium.Env.observation_space": "gymnasium.spaces.Space",
    "gymnasium.Env.np_random": "numpy.random.Generator",
    "jax.experimental.shard_map.shard_map": "jax.shard_map",
    "keras.backend.random_normal": "keras.random.normal",
    "keras.backend.random_uniform": "keras.random.uniform",
    "keras.models.Model": "keras.Model",
    "keras.models.Sequential": "keras.Sequential",
    "keras.Optimizer": "keras.optimizers.Optimizer",
    "keras.Layer": "keras.layers.Layer",
    "keras.preprocessing.image_dataset_from_directory": "keras.utils.image_dataset_from_directory",
    "keras.preprocessing.sequence.pad_sequences": "keras.utils.pad_sequences",
    "multiprocessing.JoinableQueue": "multiprocessing.queues.JoinableQueue",
    "multiprocessing.Pool": "multiprocessing.pool.Pool",
    "multiprocessing.Queue": "multiprocessing.queues.Queue",
    "multiprocessing.SimpleQueue": "multiprocessing.queues.SimpleQueue",
    "multiprocessing.dummy.Pool": "multiprocessing.pool.ThreadPool",
    "numpy.random.mtrand": "numpy.random",
    "numpy.random.mtrand.RandomState": "numpy.random.RandomState",
    "os.environ.__getitem__": "os.environ.get",
    "posixpath": "os.path",
    "tensorflow.initializers": "keras.initializers",
    "tensorflow.keras": "keras",
    "tensorflow.losses": "keras.losses",
    "tensorflow.metrics": "keras.metrics",
    "tensorflow.optimizers": "keras.optimizers",
    "tensorflow.random.experimental.Generator": "tensorflow.random.Generator",
    "tf": "tensorflow",
    "tf_keras": "keras",
    "torch.BoolTensor": "torch.Tensor",
    "torch.ByteTensor": "torch.Tensor",
    "torch.DoubleTensor": "torch.Tensor",
    "torch.FloatTensor": "torch.Tensor",
    "torch.HalfTensor": "torch.Tensor",
    "torch.IntTensor": "torch.Tensor",
    "torch.LongTensor": "torch.Tensor",
    "torch.autocast": "torch.amp.autocast",
    "torch.autograd.Variable": "torch.as_tensor",
    "torch.autograd.no_grad": "torch.no_grad",
    "torch.cpu.amp.GradScaler": "torch.amp.GradScaler",
    "torch.cpu.amp.autocast": "torch.amp.autocast",
    "torch.cuda.FloatTensor": "torch.Tensor",
    "torch.cuda.LongTensor": "torch.Tensor",
    "torch.cuda.amp.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.autocast": "torch.amp.autocast",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.random": "torch.cuda",
    "torch.distributed.distributed_c10d": "torch.distributed",
    "torch.functional": "torch",
    "torch.multiprocessing.Pool": "multiprocessing.pool.Pool",
    "torch.multiprocessing.Queue": "multiprocessing.queues.Queue",
    "torch.nn.modules": "torch.nn",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel": (
        "torch.nn.parallel.DistributedDataParallel"
    ),
    "torch.nn.parameter": "torch.nn",
    "torch.nn.utils.clip_grad": "torch.nn.utils",
    "torch.optim.lr_scheduler._LRScheduler": "torch.optim.lr_scheduler.LRScheduler",
    "torch.optim.optimizer.Optimizer": "torch.optim.Optimizer",
    "torch.random.get_rng_state": "torch.get_rng_state",
    "torch.random.initial_seed": "torch.initial_seed",
    "torch.random.manual_seed": "torch.manual_seed",
    "torch.random.seed": "torch.seed",
    "torch.random.set_rng_state": "torch.set_rng_state",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
    "torch.utils.data.distributed": "torch.utils.data",
    "torch.utils.data.sampler": "torch.utils.data",
    "torch.utils.tensorboard.writer": "torch.utils.tensorboard",
    "torchvision.transforms.transforms": "torchvision.transforms",
    "tqdm.asyncio.tqdm": "tqdm.tqdm",
    "tqdm.auto": "tqdm",
    "tqdm.autonotebook": "tqdm",
    "tqdm.notebook": "tqdm",
    "tqdm.rich": "tqdm",
    "tqdm.std": "tqdm",
    "tqdm.trange": "tqdm.tqdm",
}
"""Other names of what has rows: of one thing, or of all that a module or class contains."""

BASES: Mapping[tuple[str, str], str] = {
    ("flax.linen", "model"): "flax.linen.Module",
    ("flax.nnx", "generator"): "flax.nnx.Rngs",
    ("flax.nnx", "model"): "flax.nnx.Module",
    ("flax.nnx", "optimizer"): "flax.nnx.Optimizer",
    ("flax.training", "model"): "flax.training.train_state.TrainState",
    ("gymnasium", "environment"): "gymnasium.Env",
    ("jax", "array"): "jax.Array",
    ("keras", "array"): "tensorflow.Variable",
    ("keras", "generator"): "keras.random.SeedGenerator",
    ("keras", "handle"): "keras.metrics.Metric",
    ("keras", "model"): "keras.Model",
    ("keras", "optimizer"): "keras.optimizers.Optimizer",
    ("logging", "writer"): "logging.Logger",
    ("numpy", "array"): "numpy.ndarray",
    ("numpy", "generator"): "numpy.random.Generator",
    ("optax", "optimizer"): "optax.GradientTransformation",
    ("tensorflow", "array"): "tensorflow.Variable",
    ("tensorflow", "dataset"): "tensorflow.data.Dataset",
    ("tensorflow", "generator"): "tensorflow.random.Generator",
    ("tensorflow", "writer"): "tensorflow.summary.SummaryWriter",
    ("torch", "array"): "torch.Tensor",
    ("torch", "average"): "torch.nn.Module",
    ("torch", "generator"): "torch.Generator",
    ("torch", "model"): "torch.nn.Module",
    ("torch", "optimizer"): "torch.optim.Optimizer",
    ("torch", "scaler"): "torch.amp.GradScaler",
    ("torch", "scheduler"): "torch.optim.lr_scheduler.LRScheduler",
    ("torchvision", "array"): "torch.Tensor",
    ("torchvision", "model"): "torch.nn.Module",
    ("wandb", "writer"): "wandb.Run",
}
"""By package or module, and kind: the class that has the methods which an object's row lacks."""


def join(tables: Iterable[Iterable[Row]]) -> dict[str, Row]:
    """All rows by name; two rows for one name are an error in the tables."""
    rows: dict[str, Row] = {}
    for table in tables:
        for row in table:
            if row.name in rows:
                raise ValueError(f"two rows for {row.name}")
            rows[row.name] = row
    return rows


ROWS: dict[str, Row] = join(TABLES.values())


@cache
def lookup(name: str) -> Row | None:
    """The row of an absolute dotted name, of what it is an alias of, or of what it inherits from.

    The result of a call may stand for its class: `torchvision.models.resnet18.load_state_dict` is a
    method of what `resnet18` makes.
    """
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        if (row := ROWS.get(name)) is not None:
            return row
        name = _other(name)
    return None


def _other(name: str) -> str:
    """The name with its longest known beginning replaced; itself if none is known."""
    head, rest = name, ""
    while head:
        if head in ALIASES:
            return ALIASES[head] + rest
        if rest and (row := ROWS.get(head)) is not None:
            package, *modules = head.split(".")
            base = BASES.get((package, row.makes)) or BASES.get(
                (".".join((package, *modules[:1])), row.makes), head
            )
            if base != head:
                return base + rest
        head, _, tail = head.rpartition(".")
        rest = f".{tail}{rest}"
    return name
