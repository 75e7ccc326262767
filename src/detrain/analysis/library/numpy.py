"""NumPy. Functions that take `out` mutate it: nothing changes where it isn't given."""

from __future__ import annotations

from detrain.analysis.library.each import PURE, each
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_ARRAY = Row("", makes="array")
_VIEW = Row("", makes="array", wraps=True)
_OUT = Row("", makes="array", mutates=("out",))
_EMITS = Row("", emits=True)
_MEMORY = Row("", makes="array", observes="memory")
_SEEDED = Row("", keyed=True, observes="entropy", by="seed", makes="generator")

_DISTRIBUTIONS = """
beta binomial bytes chisquare dirichlet exponential f gamma geometric gumbel hypergeometric laplace
logistic lognormal logseries multinomial multivariate_normal negative_binomial noncentral_chisquare
noncentral_f normal pareto permutation poisson power random rayleigh standard_cauchy
standard_exponential standard_gamma standard_normal standard_t triangular uniform vonmises wald
weibull zipf choice
"""
_LEGACY = "rand randint randn random_sample"

_RANDOM = (
    *each("numpy.random", f"{_DISTRIBUTIONS} {_LEGACY} ranf sample", Row("", draws="numpy")),
    Row("numpy.random.random_integers", draws="numpy"),
    Row("numpy.random.shuffle", draws="numpy", mutates=("0",)),
    Row("numpy.random.seed", seeds="numpy", observes="entropy", by="seed"),
    # Reading where a generator stands is as good as a draw: the answer depends on all draws before.
    Row("numpy.random.get_state", draws="numpy"),
    Row("numpy.random.set_state", seeds="numpy"),
    Row(
        "numpy.random.RandomState", keyed=True, observes="entropy", by="seed", makes="generator",
        state=("get_state", "set_state"),
    ),
    *each("numpy.random.RandomState", f"{_DISTRIBUTIONS} {_LEGACY}", Row("", draws="self")),
    *each("numpy.random.RandomState", "random_integers tomaxint", Row("", draws="self")),
    Row("numpy.random.RandomState.shuffle", draws="self", mutates=("0",)),
    Row(
        "numpy.random.RandomState.seed", seeds="self", observes="entropy", by="seed",
        mutates=("self",),
    ),
    Row("numpy.random.RandomState.get_state", draws="self"),
    Row("numpy.random.RandomState.set_state", seeds="self", mutates=("self",)),
    # A generator that is given as the seed comes back as it is.
    Row(
        "numpy.random.default_rng", keyed=True, observes="entropy", by="seed", makes="generator",
        wraps=True,
    ),
    Row("numpy.random.Generator", makes="generator", wraps=True),
    *each("numpy.random.Generator", f"{_DISTRIBUTIONS} integers", Row("", draws="self")),
    Row("numpy.random.Generator.multivariate_hypergeometric", draws="self"),
    Row("numpy.random.Generator.permuted", draws="self", mutates=("out",)),
    Row("numpy.random.Generator.shuffle", draws="self", mutates=("0",)),
    Row("numpy.random.Generator.spawn", mutates=("self",), makes="generator"),
    *each("numpy.random", "MT19937 PCG64 PCG64DXSM Philox SFC64", _SEEDED),
    Row("numpy.random.SeedSequence", keyed=True, observes="entropy", by="entropy"),
    Row("numpy.random.SeedSequence.spawn", mutates=("self",)),
    Row("numpy.random.SeedSequence.generate_state", makes="array"),
)  # fmt: skip

_MADE = (
    *each("numpy", "empty empty_like ndarray", _MEMORY),
    *each(
        "numpy",
        "arange array bartlett blackman copy diag_indices eye fromfunction fromiter fromregex "
        "fromstring full full_like geomspace hamming hanning identity indices kaiser linspace "
        "logspace meshgrid ones ones_like tri tril_indices triu_indices vander zeros zeros_like",
        _ARRAY,
    ),
    *each(
        "numpy",
        "asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray asmatrix matrix "
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to diag diagonal expand_dims "
        "flip fliplr flipud from_dlpack frombuffer imag ix_ matrix_transpose moveaxis "
        "permute_dims ravel real real_if_close require reshape rollaxis rot90 squeeze swapaxes "
        "transpose array_split dsplit hsplit split unstack vsplit astype nditer ndenumerate",
        _VIEW,
    ),
    *each("numpy", "load loadtxt genfromtxt fromfile", _ARRAY),
    # What is written to a map goes to its file.
    Row("numpy.memmap", makes="array", emits=True),
    Row("numpy.memmap.flush", emits=True),
    *each("numpy", "save savez savez_compressed savetxt", _EMITS),
)

_CHANGED = (
    Row("numpy.nan_to_num", makes="array", mutates=("0",), wraps=True),  # with copy=False
    *each(
        "numpy", "copyto fill_diagonal place put put_along_axis putmask", Row("", mutates=("0",))
    ),
    *each(
        "numpy.ndarray",
        "byteswap fill partition put resize setfield setflags sort __setitem__ __iadd__ "
        "__isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__",
        Row("", mutates=("self",)),
    ),
    *(
        Row(f"numpy.{ufunc}.at", mutates=("0",))
        for ufunc in [
            "add",
            "subtract",
            "multiply",
            "divide",
            "maximum",
            "minimum",
            "logical_or",
            "logical_and",
        ]
    ),
    *each("numpy.ndarray", "dump tofile", _EMITS),
)

_UFUNCS = """
abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
atan2 atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide
divmod equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater
greater_equal heaviside hypot invert isfinite isinf isnan isnat lcm ldexp left_shift less less_equal
log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul
maximum minimum mod modf multiply negative nextafter not_equal positive pow power rad2deg radians
reciprocal remainder right_shift rint sign signbit sin sinh spacing sqrt square subtract tan tanh
true_divide trunc vecdot
"""
_WITH_OUT = """
all amax amin any argmax argmin around choose clip compress concat concatenate cumprod cumsum
cumulative_prod cumulative_sum dot einsum fix isneginf isposinf max mean median min nanargmax
nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile
nanstd nansum nanvar outer percentile prod ptp quantile round stack std sum take trace var
"""
_NEW = """
angle append apply_along_axis apply_over_axes argpartition argsort argwhere average bincount block
column_stack convolve corrcoef correlate count_nonzero cov cross delete diagflat diff digitize
dstack ediff1d extract flatnonzero gradient histogram histogram2d histogram_bin_edges histogramdd
hstack i0 inner insert interp intersect1d isclose iscomplex isin isreal kron lexsort nonzero
packbits pad partition piecewise poly polyadd polyder polydiv polyfit polyint polymul polysub
polyval ravel_multi_index repeat resize roll roots searchsorted select setdiff1d setxor1d sinc sort
sort_complex take_along_axis tensordot tile trapezoid tril trim_zeros triu union1d unique unique_all
unique_counts unique_inverse unique_values unpackbits unravel_index unwrap vdot vstack where
"""
_PLAIN = """
allclose array2string array_equal array_equiv array_repr array_str base_repr binary_repr
broadcast_shapes can_cast common_type dtype einsum_path errstate finfo iinfo iscomplexobj isdtype
isfortran isrealobj isscalar issubdtype iterable may_share_memory min_scalar_type ndim ndindex
printoptions promote_types result_type set_printoptions seterr shape shares_memory size typename
bool_ float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8 datetime64
timedelta64 bool complex64 complex128 double half int_ intp longlong single uint geterr
get_printoptions poly1d
"""

_COMPUTED = (
    *each("numpy", _UFUNCS, _OUT),
    *each("numpy", _WITH_OUT, _OUT),
    *each("numpy", _NEW, _ARRAY),
    *each("numpy", _PLAIN, PURE),
    Row("numpy.vectorize", wraps=True),
    Row("numpy.frompyfunc", wraps=True),
    *each(
        "numpy.linalg",
        "cholesky cond cross det eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm "
        "matrix_power matrix_rank norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv "
        "tensorsolve trace vecdot vector_norm",
        _ARRAY,
    ),
    Row("numpy.linalg.multi_dot", makes="array", mutates=("out",)),
    *each("numpy.linalg", "diagonal matrix_transpose", _VIEW),
    *each(
        "numpy.fft",
        "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        _OUT,
    ),
    *each("numpy.fft", "fftfreq fftshift ifftshift rfftfreq", _ARRAY),
)

_METHODS = (
    *each(
        "numpy.ndarray",
        "all any argmax argmin choose clip compress cumprod cumsum dot max mean min prod round std "
        "sum take trace var",
        _OUT,
    ),
    *each(
        "numpy.ndarray",
        "argpartition argsort copy flatten nonzero repeat searchsorted",
        _ARRAY,
    ),
    *each(
        "numpy.ndarray",
        "astype conj conjugate diagonal getfield ravel reshape squeeze swapaxes to_device "
        "transpose view __getitem__",
        _VIEW,
    ),
    *each("numpy.ndarray", "dumps item tobytes tolist"),
)

ROWS: tuple[Row, ...] = (*_RANDOM, *_MADE, *_CHANGED, *_COMPUTED, *_METHODS)
