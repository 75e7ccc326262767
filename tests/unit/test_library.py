"""The tables speak of names that exist, once each, and say the right thing of those that matter."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import subprocess
import sys
import warnings
from dataclasses import fields, replace
from functools import cache

import pytest

from detrain.analysis.library import ALIASES, BASES, ROWS, TABLES, Row, join, lookup
from detrain.analysis.library.each import each, methods

PACKAGES = sorted({name.partition(".")[0] for name in ROWS})
FRAMEWORKS = ("flax", "gymnasium", "jax", "keras", "numpy", "tensorflow", "torch", "torchvision")


def find(name: str):
    """The object of a dotted name: attributes, and modules that nobody has imported yet."""
    package, *parts = name.split(".")
    path, value = package, _module(package)
    for part in parts:
        path = f"{path}.{part}"
        if not hasattr(value, part) and inspect.ismodule(value):
            _module(path)
        value = getattr(value, part)
    return value


@cache
def _module(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not ours
        return importlib.import_module(name)


def _exists(name: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            find(name)
    except (AttributeError, ImportError):
        return False
    return True


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_exists_in_its_library(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    names = [name for name in ROWS if name.partition(".")[0] == package]
    missing = [name for name in names if not _exists(name)]
    assert missing == []


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert not _exists("random.no_such_function")
    assert not _exists("random.Random.no_such_method")
    assert not _exists("no_such_package.function")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_rows(table: str) -> None:
    assert TABLES[table]
    assert all(row.name and " " not in row.name for row in TABLES[table])


def test_two_rows_for_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"two rows for math\.sqrt"):
        join([[Row("math.sqrt")], [Row("math.sqrt", emits=True)]])


def test_every_row_is_in_one_table() -> None:
    assert len(ROWS) == sum(len(table) for table in TABLES.values())


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_an_alias_leads_to_rows(name: str) -> None:
    target = ALIASES[name]
    assert target in ROWS or any(row.startswith(f"{target}.") for row in ROWS)
    assert target not in ALIASES or ALIASES[target] != name


@pytest.mark.parametrize("base", sorted(set(BASES.values())))
def test_a_base_has_methods(base: str) -> None:
    assert any(row.startswith(f"{base}.") for row in ROWS)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("tf.random.normal", "tensorflow.random.normal"),
        ("tf.keras.layers.Dense", "keras.layers.Dense"),
        ("tensorflow.keras.optimizers.Adam", "keras.optimizers.Adam"),
        ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler"),
        ("torch.cuda.amp.GradScaler.update", "torch.amp.GradScaler.update"),
        ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
        ("torch.optim.lr_scheduler._LRScheduler", "torch.optim.lr_scheduler.LRScheduler"),
        ("torch.LongTensor.add_", "torch.Tensor.add_"),
        ("tqdm.auto.tqdm", "tqdm.tqdm"),
        ("tqdm.auto.trange.update", "tqdm.tqdm.update"),
        ("gym.make", "gymnasium.make"),
        ("multiprocessing.Pool.imap_unordered", "multiprocessing.pool.Pool.imap_unordered"),
    ],
)
def test_an_alias_is_followed(name: str, row: str) -> None:
    assert lookup(name) is ROWS[row]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("torch.optim.Adam.step", "torch.optim.Optimizer.step"),
        ("torch.optim.LBFGS.step", "torch.optim.LBFGS.step"),
        ("torch.optim.lr_scheduler.StepLR.step", "torch.optim.lr_scheduler.LRScheduler.step"),
        ("torch.nn.Linear.load_state_dict", "torch.nn.Module.load_state_dict"),
        ("torch.nn.Linear.to.eval", "torch.nn.Module.eval"),
        ("torch.randn.view.add_", "torch.Tensor.add_"),
        ("torchvision.models.resnet18.train", "torch.nn.Module.train"),
        ("numpy.random.default_rng.normal", "numpy.random.Generator.normal"),
        ("numpy.zeros.fill", "numpy.ndarray.fill"),
        ("gymnasium.make.action_space.sample", "gymnasium.spaces.Space.sample"),
        ("tf.data.Dataset.range.map.shuffle", "tensorflow.data.Dataset.shuffle"),
        ("keras.Sequential.fit", "keras.Model.fit"),
        ("flax.nnx.Linear.train", "flax.nnx.Module.train"),
        ("optax.adam.update", "optax.GradientTransformation.update"),
        ("logging.getLogger.info", "logging.Logger.info"),
    ],
)
def test_the_result_of_a_call_has_the_methods_of_its_class(name: str, row: str) -> None:
    assert lookup(name) is ROWS[row]


@pytest.mark.parametrize(
    "name", ["", "torch", "torch.nn.Linear.nothing", "mine.train", "a..b", "."]
)
def test_an_unknown_name_has_no_row(name: str) -> None:
    assert lookup(name) is None


MEANINGS = {
    "random.shuffle": {"draws": "python", "mutates": ("0",)},
    "random.Random": {"makes": "generator", "observes": "entropy", "by": "x"},
    "numpy.random.randn": {"draws": "numpy"},
    "numpy.random.Generator.normal": {"draws": "self"},
    "numpy.random.seed": {"seeds": "numpy"},
    "numpy.empty": {"observes": "memory"},
    "numpy.add": {"mutates": ("out",)},
    "torch.randn": {"draws": "torch", "by": "generator"},
    "torch.manual_seed": {"seeds": "torch", "draws": ""},
    "torch.Tensor.add_": {"mutates": ("self",), "draws": ""},
    "torch.Tensor.normal_": {"mutates": ("self",), "draws": "torch", "by": "generator"},
    "torch.Tensor.backward": {"mutates": ("gradients",)},
    "torch.autograd.grad": {"mutates": ()},
    "torch.nn.Linear": {"draws": "torch", "makes": "model"},
    "torch.nn.Linear.__call__": {"draws": "", "mutates": ()},
    "torch.nn.Dropout": {"draws": ""},
    "torch.nn.Dropout.__call__": {"draws": "torch"},
    "torch.nn.BatchNorm2d.__call__": {"mutates": ("self",)},
    "torch.nn.Module.state_dict": {"wraps": True},
    "torch.nn.init.xavier_uniform_": {"draws": "torch", "mutates": ("0",)},
    "torch.optim.Optimizer.step": {"mutates": ("parameters", "self")},
    "torch.optim.Adam": {"makes": "optimizer", "state": ("state_dict", "load_state_dict")},
    "torch.utils.data.DataLoader": {"makes": "loader", "parallel": "loader", "draws": "torch"},
    "torchvision.transforms.RandomCrop": {"draws": "", "wraps": True},
    "torchvision.transforms.RandomCrop.__call__": {"draws": "torch"},
    "torchvision.transforms.RandomChoice.__call__": {"draws": "python"},
    "torchvision.transforms.functional.crop": {"draws": ""},
    "tensorflow.random.normal": {"draws": "tensorflow", "keyed": False},
    "tensorflow.random.stateless_normal": {"draws": "", "keyed": True},
    "tensorflow.data.Dataset.map": {"parallel": "map"},
    "keras.layers.Dense": {"draws": "python"},
    "jax.random.normal": {"draws": "", "keyed": True},
    "jax.pmap": {"parallel": "map", "wraps": True},
    "concurrent.futures.as_completed": {"unordered": True},
    "multiprocessing.pool.Pool.imap_unordered": {"unordered": True, "parallel": "processes"},
    "time.time": {"observes": "clock"},
    "os.listdir": {"observes": "directory"},
    "builtins.hash": {"observes": "hash order"},
    "builtins.print": {"emits": True},
    "builtins.set": {"makes": "", "observes": ""},
    "tqdm.tqdm": {"emits": True, "wraps": True},
}


@pytest.mark.parametrize("name", MEANINGS)
def test_the_meaning_of_a_row(name: str) -> None:
    facts = MEANINGS[name]
    assert {fact: getattr(ROWS[name], fact) for fact in facts} == facts


def test_pure_functions_say_nothing() -> None:
    for name in ("math.sqrt", "copy.deepcopy", "builtins.len", "os.path.join"):
        assert ROWS[name] == Row(name)


def test_no_row_both_draws_and_is_keyed() -> None:
    assert [row.name for row in ROWS.values() if row.keyed and row.draws] == []


@pytest.mark.parametrize(
    "name", [row.name for row in ROWS.values() if row.by and row.observes and not row.draws]
)
def test_what_replaces_an_observation_is_the_first_argument(name: str) -> None:
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip("not installed")
    value = find(name)
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        pytest.skip("has no signature")
    first = next(one for one in names if one != "self")
    assert first in {ROWS[name].by, "args"}


def test_everything_that_changes_a_tensor_has_a_row() -> None:
    torch = pytest.importorskip("torch")
    names = [name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")]
    assert [name for name in names if "self" not in _mutates(f"torch.Tensor.{name}")] == []


def _mutates(name: str) -> tuple[str, ...]:
    return ROWS[name].mutates if name in ROWS else ()


@pytest.mark.parametrize("owner", ["random", "random.Random", "numpy.random.Generator"])
def test_everything_that_draws_has_a_row(owner: str) -> None:
    if importlib.util.find_spec(owner.partition(".")[0]) is None:
        pytest.skip("not installed")
    generator = find(owner)
    names = [name for name in dir(generator) if name[0].islower()]
    calls = [name for name in names if callable(getattr(generator, name))]
    assert [name for name in calls if f"{owner}.{name}" not in ROWS] == []


@pytest.mark.parametrize("kind", ["optimizer", "scheduler"])
def test_everything_that_trains_has_a_row(kind: str) -> None:
    pytest.importorskip("torch")
    module = {"optimizer": "torch.optim", "scheduler": "torch.optim.lr_scheduler"}[kind]
    base = find(BASES["torch", kind])
    classes = [
        name
        for name, one in inspect.getmembers(find(module), inspect.isclass)
        if issubclass(one, base) and not name.startswith("_")
    ]
    assert [name for name in classes if lookup(f"{module}.{name}").makes != kind] == []


MADE = {
    "Linear": (2, 3), "Bilinear": (2, 2, 2), "Embedding": (3, 2), "LSTM": (2, 2), "GRUCell": (2, 2),
    "Conv2d": (2, 2, 1), "ConvTranspose1d": (2, 2, 1), "MultiheadAttention": (4, 2),
    "TransformerEncoderLayer": (4, 2), "PReLU": (), "LayerNorm": (2,), "BatchNorm1d": (2,),
    "Dropout": (), "InstanceNorm2d": (2,), "LazyLinear": (3,), "GroupNorm": (1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_module_draws_when_made_if_its_row_says_so(name: str) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_rng_state()
    getattr(torch.nn, name)(*MADE[name])
    moved = not torch.equal(before, torch.get_rng_state())
    assert moved == (ROWS[f"torch.nn.{name}"].draws == "torch")


def test_a_statement_about_many_names_is_a_row_for_each() -> None:
    like = Row("", draws="torch", by="generator", mutates=("0",), state=("a", "b"))
    assert each("p", "x y", like) == (replace(like, name="p.x"), replace(like, name="p.y"))
    assert [row.name for row in methods("p", "A B", "f g")] == ["p.A.f", "p.A.g", "p.B.f", "p.B.g"]
    row = each("p", "x", like)[0]
    assert hash(row) == hash(replace(like, name="p.x"))
    assert list(vars(row)) == [field.name for field in fields(Row)]


IMPORTED = """
import sys
{first}
import detrain.analysis.library
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set(sys.argv[1:])))
"""


def _imported(first: str = "") -> list[str]:
    code = IMPORTED.format(first=first)
    done = subprocess.run(
        [sys.executable, "-c", code, *FRAMEWORKS], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_the_tables_imports_no_framework() -> None:
    assert _imported() == []


def test_an_imported_framework_would_be_noticed() -> None:
    pytest.importorskip("numpy")
    assert _imported("import numpy") == ["numpy"]
