"""The standard library.

Files that are read count as inputs and as fixed, like the program's text and its arguments; whether
a file exists, and in which order a directory lists its files, are observations.
"""

from __future__ import annotations

from detrain.analysis.library.each import HOLDS, each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_MUTATES = Row("", mutates=("self",))
_TAKES = Row("", mutates=("self",), wraps=True)
_EMITS = Row("", emits=True)
_CLOCK = Row("", observes="clock")
_ENTROPY = Row("", observes="entropy")
_ENVIRONMENT = Row("", observes="environment")
_DIRECTORY = Row("", observes="directory")
_HOST = Row("", observes="host")
_HANDLE = Row("", makes="handle")
_THREADS = Row("", parallel="threads", makes="handle", wraps=True)
_PROCESSES = Row("", parallel="processes", makes="handle", wraps=True)

_DRAWS = """
betavariate expovariate gammavariate gauss getrandbits lognormvariate normalvariate paretovariate
randbytes randint random randrange triangular uniform vonmisesvariate weibullvariate
"""
_PICKS = "choice choices sample"  # what is picked is still the caller's

_RANDOM = (
    *each("random", _DRAWS, Row("", draws="python")),
    *each("random", _PICKS, Row("", draws="python", wraps=True)),
    Row("random.shuffle", draws="python", mutates=("0",)),
    Row("random.seed", seeds="python", observes="entropy", by="a"),
    # Reading where a generator stands is as good as a draw: the answer depends on all draws before.
    Row("random.getstate", draws="python"),
    Row("random.setstate", seeds="python"),
    Row(
        "random.Random", keyed=True, observes="entropy", by="x", makes="generator",
        state=("getstate", "setstate"),
    ),
    *each("random.Random", _DRAWS, Row("", draws="self")),
    *each("random.Random", _PICKS, Row("", draws="self", wraps=True)),
    Row("random.Random.shuffle", draws="self", mutates=("0",)),
    Row("random.Random.seed", seeds="self", observes="entropy", by="a", mutates=("self",)),
    Row("random.Random.getstate", draws="self"),
    Row("random.Random.setstate", seeds="self", mutates=("self",)),
    Row("random.SystemRandom", observes="entropy"),
    *each("random.SystemRandom", _DRAWS, _ENTROPY),
    *each("random.SystemRandom", _PICKS, Row("", observes="entropy", wraps=True)),
    Row("random.SystemRandom.shuffle", observes="entropy", mutates=("0",)),
)  # fmt: skip

_WORLD = (
    *each(
        "time",
        "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time "
        "process_time_ns thread_time thread_time_ns clock_gettime clock_gettime_ns asctime ctime "
        "gmtime localtime strftime",
        _CLOCK,
    ),
    Row("time.mktime", observes="environment"),  # the time zone
    *each("time", "sleep strptime"),
    *each("datetime.datetime", "now utcnow today", _CLOCK),
    *each("datetime.datetime", "strptime fromisoformat strftime isoformat"),
    Row("datetime.datetime.fromtimestamp", observes="environment"),
    Row("datetime.date.today", observes="clock"),
    *each("datetime", "datetime date time timedelta"),
    *each("os", "urandom getrandom", _ENTROPY),
    *each("secrets", "choice randbelow randbits token_bytes token_hex token_urlsafe", _ENTROPY),
    Row("secrets.compare_digest"),
    *each("uuid", "uuid1 uuid4", _ENTROPY),
    *each("uuid", "uuid3 uuid5 UUID"),
    *each(
        "os",
        "getpid getppid cpu_count uname getloadavg getlogin getuid sched_getaffinity times",
        _HOST,
    ),
    Row("uuid.getnode", observes="host"),
    *each("socket", "gethostname getfqdn", _HOST),
    *each("platform", "node platform machine processor system release version uname", _HOST),
    Row("platform.python_version"),
    *each("multiprocessing", "cpu_count current_process", _HOST),
    *each("threading", "get_ident get_native_id active_count current_thread", _HOST),
    Row("getpass.getuser", observes="environment"),
    *each("os", "getenv getcwd", _ENVIRONMENT),
    *each("os.environ", "get items keys values copy", _ENVIRONMENT),
    *each(
        "os.environ", "setdefault update pop", Row("", observes="environment", mutates=("self",))
    ),
    *each("os", "putenv unsetenv", _EMITS),
    *each("os", "listdir scandir walk fwalk stat lstat access", _DIRECTORY),
    *each("glob", "glob iglob", _DIRECTORY),
    *each("pathlib.Path", "iterdir glob rglob exists is_file is_dir stat", _DIRECTORY),
    *each("os.path", "exists isfile isdir islink getsize getmtime getctime getatime", _DIRECTORY),
    *each("os.path", "abspath realpath expanduser expandvars", _ENVIRONMENT),
    *each("os.path", "basename commonpath dirname isabs join normpath relpath split splitext"),
    Row("os.fspath"),
    *each("pathlib", "Path PurePath"),
    *each("pathlib.Path", "joinpath with_name with_stem with_suffix relative_to as_posix"),
    *each("pathlib.Path", "cwd home absolute resolve expanduser", _ENVIRONMENT),
    *each("pathlib.Path", "read_text read_bytes"),
    *each("urllib.request", "urlopen urlretrieve", Row("", observes="network")),
    *each(
        "subprocess",
        "run call check_call check_output getoutput Popen",
        Row("", observes="host", emits=True),
    ),
    Row("os.system", observes="host", emits=True),
    Row("os.popen", observes="host", emits=True),
)

_EFFECTS = (
    Row("builtins.print", emits=True),
    Row("builtins.input", observes="network", emits=True),
    Row("builtins.open", emits=True, makes="handle"),  # "w" empties the file
    Row("pathlib.Path.open", emits=True, makes="handle"),
    Row("io.open", emits=True, makes="handle"),
    *each("io", "BytesIO StringIO", _HANDLE),
    *methods("io", "TextIOWrapper BufferedWriter", "write writelines flush close", _EMITS),
    *methods("io", "TextIOWrapper BufferedReader", "read readline readlines", _MUTATES),
    *methods("io", "BytesIO StringIO", "read readline readlines seek write truncate", _MUTATES),
    *each(
        "os",
        "chdir chmod chown fsync link makedirs mkdir remove removedirs rename renames replace "
        "rmdir symlink truncate unlink utime write kill",
        _EMITS,
    ),
    *each(
        "shutil",
        "copy copy2 copyfile copyfileobj copytree make_archive move rmtree unpack_archive",
        _EMITS,
    ),
    *each(
        "pathlib.Path",
        "mkdir rename replace rmdir symlink_to touch unlink write_bytes write_text chmod",
        _EMITS,
    ),
    *each("tempfile", "mkdtemp mkstemp", Row("", observes="entropy", emits=True)),
    *each(
        "tempfile",
        "NamedTemporaryFile TemporaryDirectory TemporaryFile",
        Row("", observes="entropy", emits=True, makes="handle"),
    ),
    Row("tempfile.gettempdir", observes="environment"),
    *each(
        "logging",
        "basicConfig critical debug error exception fatal info log warn warning shutdown",
        _EMITS,
    ),
    Row("logging.getLogger", makes="writer"),
    *each("logging", "FileHandler StreamHandler", Row("", emits=True, makes="writer")),
    *each("logging", "Formatter disable captureWarnings addLevelName"),
    *each("logging.Logger", "critical debug error exception fatal info log warn warning", _EMITS),
    *each("logging.Logger", "addHandler removeHandler setLevel addFilter", _TAKES),
    *each("logging.Handler", "setFormatter setLevel", _TAKES),
    *each("warnings", "warn warn_explicit", _EMITS),
    *each("warnings", "filterwarnings simplefilter catch_warnings"),
    Row("sys.stdout.write", emits=True),
    Row("sys.stdout.flush", emits=True),
    Row("sys.stderr.write", emits=True),
    Row("sys.stderr.flush", emits=True),
    *each("json", "dump", _EMITS),
    *each("pickle", "dump", _EMITS),
    *each("json", "dumps loads"),
    *each("pickle", "dumps loads"),
    # The position in the file moves, so that a second load gives the next object.
    Row("json.load", mutates=("0",)),
    Row("pickle.load", mutates=("0",)),
    *each("csv", "writer DictWriter", Row("", makes="writer", wraps=True)),
    *each("csv.DictWriter", "writeheader writerow writerows", _EMITS),
    *each("csv", "reader DictReader", HOLDS),
)

_PARALLEL = (
    Row("concurrent.futures.ThreadPoolExecutor", parallel="threads", makes="handle"),
    *each("concurrent.futures.ThreadPoolExecutor", "map submit", _THREADS),
    Row("concurrent.futures.ProcessPoolExecutor", parallel="processes", makes="handle"),
    *each("concurrent.futures.ProcessPoolExecutor", "map submit", _PROCESSES),
    Row("concurrent.futures.as_completed", unordered=True, wraps=True),
    Row("concurrent.futures.wait", unordered=True, wraps=True),
    *each("concurrent.futures.Future", "result exception", HOLDS),
    Row("concurrent.futures.Future.done", observes="clock"),
    Row("concurrent.futures.Future.add_done_callback", unordered=True, wraps=True),
    Row("multiprocessing.pool.Pool", parallel="processes", makes="handle"),
    *each("multiprocessing.pool.Pool", "apply starmap map imap", _PROCESSES),
    *each("multiprocessing.pool.Pool", "apply_async map_async starmap_async", _PROCESSES),
    Row(
        "multiprocessing.pool.Pool.imap_unordered", parallel="processes", unordered=True, wraps=True
    ),
    *each("multiprocessing.pool.Pool", "close join terminate", _MUTATES),
    Row("multiprocessing.pool.ThreadPool", parallel="threads", makes="handle"),
    *each("multiprocessing.pool.ThreadPool", "apply starmap map imap", _THREADS),
    *each("multiprocessing.pool.ThreadPool", "apply_async map_async starmap_async", _THREADS),
    Row(
        "multiprocessing.pool.ThreadPool.imap_unordered", parallel="threads", unordered=True,
        wraps=True,
    ),
    Row("multiprocessing.pool.AsyncResult.get", wraps=True),
    Row("multiprocessing.pool.AsyncResult.ready", observes="clock"),
    Row("multiprocessing.Process", parallel="processes", makes="handle", wraps=True),
    *each("multiprocessing.Process", "start run", Row("", parallel="processes")),
    *each("multiprocessing.Process", "join terminate kill close", _MUTATES),
    *each("multiprocessing", "Manager Pipe", Row("", parallel="processes", makes="handle")),
    *each("multiprocessing", "Array Value RawArray RawValue Lock RLock Event Barrier", _HANDLE),
    *each("multiprocessing", "set_start_method freeze_support get_context"),
    Row("threading.Thread", parallel="threads", makes="handle", wraps=True),
    *each("threading.Thread", "start run", Row("", parallel="threads")),
    Row("threading.Thread.join", mutates=("self",)),
    Row("threading.Timer", parallel="threads", observes="clock", makes="handle", wraps=True),
    *each("threading", "Lock RLock Event Condition Semaphore Barrier local", _HANDLE),
    *each("queue", "Queue LifoQueue PriorityQueue SimpleQueue", _HANDLE),
    *methods("queue", "Queue SimpleQueue", "put put_nowait", _TAKES),
    *methods(
        "queue",
        "Queue SimpleQueue",
        "get get_nowait",
        Row("", mutates=("self",), unordered=True, wraps=True),
    ),
    *methods("queue", "Queue SimpleQueue", "empty qsize", _CLOCK),
    *each("multiprocessing.queues", "Queue JoinableQueue SimpleQueue", _HANDLE),
    *methods("multiprocessing.queues", "Queue SimpleQueue", "put", _TAKES),
    *methods(
        "multiprocessing.queues",
        "Queue SimpleQueue",
        "get",
        Row("", mutates=("self",), unordered=True),
    ),
    Row("asyncio.run", wraps=True),
    Row("asyncio.gather", wraps=True),
    *each("asyncio", "as_completed wait", Row("", unordered=True, wraps=True)),
    Row("asyncio.sleep", observes="clock"),
    *each("asyncio", "create_task ensure_future", Row("", makes="handle", wraps=True)),
)  # fmt: skip

_CONTAINERS = (
    *each("builtins.list", "append extend insert", _TAKES),
    *each("builtins.list", "pop", _TAKES),
    *each("builtins.list", "clear remove reverse sort __delitem__", _MUTATES),
    *each("builtins.list", "__setitem__ __iadd__", _TAKES),
    *each("builtins.list", "copy", HOLDS),
    *each("builtins.list", "count index"),
    *each("builtins.dict", "pop popitem setdefault update __setitem__ __ior__", _TAKES),
    *each("builtins.dict", "clear __delitem__", _MUTATES),
    *each("builtins.dict", "copy get items keys values fromkeys", HOLDS),
    *each("builtins.set", "add update __ior__", _TAKES),
    # Which element goes depends on the order of hashes.
    Row("builtins.set.pop", observes="hash order", mutates=("self",), wraps=True),
    *each(
        "builtins.set",
        "clear difference_update discard intersection_update remove symmetric_difference_update",
        _MUTATES,
    ),
    *methods(
        "builtins",
        "set frozenset",
        "copy difference intersection symmetric_difference union",
        HOLDS,
    ),
    *methods("builtins", "set frozenset", "isdisjoint issubset issuperset"),
    *each("builtins.bytearray", "append extend insert", _TAKES),
    *each("builtins.bytearray", "clear pop remove reverse", _MUTATES),
    *each("builtins.tuple", "count index"),
    *each(
        "builtins.str",
        "capitalize casefold center count encode endswith expandtabs find format format_map index "
        "isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable "
        "isspace istitle isupper join ljust lower lstrip maketrans partition removeprefix "
        "removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines "
        "startswith strip swapcase title translate upper zfill",
    ),
    *each("builtins.bytes", "decode hex join split startswith endswith find replace fromhex"),
    *each("builtins.int", "bit_length to_bytes from_bytes bit_count"),
    *each("builtins.float", "hex fromhex is_integer as_integer_ratio"),
    *each("collections", "deque OrderedDict defaultdict Counter ChainMap UserDict", HOLDS),
    Row("collections.namedtuple"),
    *each("collections.deque", "append appendleft extend extendleft insert pop popleft", _TAKES),
    *each("collections.deque", "clear remove reverse rotate", _MUTATES),
    Row("collections.deque.copy", wraps=True),
    *methods(
        "collections", "OrderedDict defaultdict Counter", "pop popitem setdefault update", _TAKES
    ),
    *methods("collections", "OrderedDict defaultdict Counter", "clear", _MUTATES),
    *methods("collections", "OrderedDict defaultdict Counter", "copy get items keys values", HOLDS),
    Row("collections.OrderedDict.move_to_end", mutates=("self",)),
    Row("collections.Counter.subtract", mutates=("self",)),
    *each("collections.Counter", "elements most_common total", HOLDS),
    *each("heapq", "heappush heappushpop heapreplace", Row("", mutates=("0",), wraps=True)),
    Row("heapq.heappop", mutates=("0",), wraps=True),
    Row("heapq.heapify", mutates=("0",)),
    *each("heapq", "nlargest nsmallest merge", HOLDS),
    *each("bisect", "bisect bisect_left bisect_right"),
    *each("bisect", "insort insort_left insort_right", Row("", mutates=("0",), wraps=True)),
)

_LANGUAGE = (
    *each("builtins", "hash id", Row("", observes="hash order")),
    *each(
        "builtins",
        "abs all any ascii bin bool bytearray bytes callable chr complex divmod float format "
        "hasattr hex int isinstance issubclass len oct ord pow range repr round str sum",
    ),
    # Their results hold the very elements that they were given.
    *each(
        "builtins",
        "dict enumerate filter frozenset getattr iter list map max memoryview min reversed set "
        "slice sorted super tuple type vars zip property staticmethod classmethod",
        HOLDS,
    ),
    Row("builtins.next", mutates=("0",), wraps=True),
    *each("builtins", "setattr", Row("", mutates=("0",), wraps=True)),
    Row("builtins.delattr", mutates=("0",)),
    Row("builtins.object"),
    Row("copy.copy", wraps=True),
    Row("copy.deepcopy"),
    *each(
        "itertools",
        "accumulate chain combinations combinations_with_replacement compress cycle dropwhile "
        "filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee "
        "zip_longest chain.from_iterable",
        HOLDS,
    ),
    Row("itertools.count"),
    *each(
        "functools",
        "cache cached_property lru_cache partial partialmethod reduce singledispatch "
        "total_ordering update_wrapper wraps",
        HOLDS,
    ),
    Row("functools.cmp_to_key", wraps=True),
    *each("operator", "attrgetter itemgetter methodcaller getitem", HOLDS),
    *each("operator", "add sub mul truediv floordiv mod neg eq ne lt le gt ge and_ or_ xor not_"),
    *each("operator", "setitem iadd isub imul", Row("", mutates=("0",), wraps=True)),
    *each("contextlib", "contextmanager closing nullcontext suppress ExitStack", HOLDS),
    *each("dataclasses", "dataclass field fields is_dataclass"),
    *each("dataclasses", "astuple asdict"),
    Row("dataclasses.replace", wraps=True),
    *each("argparse", "ArgumentParser Namespace"),
    *each(
        "argparse.ArgumentParser",
        "add_argument add_argument_group add_mutually_exclusive_group add_subparsers set_defaults",
        _TAKES,
    ),
    *each("argparse.ArgumentParser", "parse_args parse_known_args"),
    *each("gc", "collect disable enable"),
    *each("hashlib", "blake2b md5 sha1 sha256 sha512"),
    *each("re", "compile escape findall finditer fullmatch match search split sub subn"),
    *each("string", "Template"),
    *each("textwrap", "dedent fill indent wrap"),
    *each("struct", "calcsize pack unpack unpack_from"),
    *each("statistics", "fmean mean median mode pstdev pvariance stdev variance"),
    *each("base64", "b64decode b64encode"),
    *each("typing", "TypeVar NamedTuple NewType cast"),
    *each("enum", "Enum IntEnum Flag auto"),
    *each("importlib", "import_module"),
    *each("importlib.util", "find_spec"),
    *each(
        "math",
        "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist erf "
        "erfc exp exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot isclose isfinite "
        "isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nextafter perm pow prod "
        "radians remainder sin sinh sqrt tan tanh trunc ulp",
    ),
    *each("cmath", "cos exp log phase polar rect sin sqrt"),
)

ROWS: tuple[Row, ...] = (
    *_RANDOM,
    *_WORLD,
    *_EFFECTS,
    *_PARALLEL,
    *_CONTAINERS,
    *_LANGUAGE,
)
