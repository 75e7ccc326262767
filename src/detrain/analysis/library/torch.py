"""PyTorch: functions, tensors, generators, gradients, data and processes.

Modules and what trains them are in `torch_nn`. What acts at the call of an object, and not when it
is made, stands in a row of its own: `torch.nn.Dropout.__call__` draws, `torch.nn.Dropout` doesn't.
"""

from __future__ import annotations

from detrain.analysis.library.each import HOLDS, each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_TENSOR = Row("", makes="array")
_OUT = Row("", makes="array", mutates=("out",))
_VIEW = Row("", makes="array", wraps=True)
_SELF = Row("", mutates=("self",))
_HOST = Row("", observes="host")
_HANDLE = Row("", makes="handle")
_MEMORY = Row("", makes="array", observes="memory")
_DRAWS = Row("", draws="torch", by="generator", makes="array")
_DRAWS_HERE = Row("", draws="torch", by="generator", mutates=("self",))

_RANDOM = (
    *each(
        "torch",
        "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like "
        "randperm binomial",
        Row("", draws="torch", by="generator", makes="array", mutates=("out",)),
    ),
    *each("torch.Tensor", "bernoulli multinomial", _DRAWS),
    *each(
        "torch.Tensor",
        "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
        _DRAWS_HERE,
    ),
    *each(
        "torch",
        "alpha_dropout dropout feature_alpha_dropout feature_dropout native_dropout rrelu",
        Row("", draws="torch", makes="array"),
    ),
    *each(
        "torch",
        "alpha_dropout_ dropout_ feature_alpha_dropout_ feature_dropout_ rrelu_",
        Row("", draws="torch", mutates=("0",), wraps=True),
    ),
    # Randomised factorisations.
    *each("torch", "pca_lowrank svd_lowrank lobpcg", Row("", draws="torch", makes="array")),
    *each("torch", "manual_seed set_rng_state", Row("", seeds="torch")),
    *each(
        "torch.cuda",
        "manual_seed manual_seed_all set_rng_state set_rng_state_all",
        Row("", seeds="torch"),
    ),
    Row("torch.seed", seeds="torch", observes="entropy"),
    *each("torch.cuda", "seed seed_all", Row("", seeds="torch", observes="entropy")),
    *each("torch", "initial_seed"),  # fixed from one seeding to the next
    Row("torch.cuda.initial_seed"),
    # Reading where a generator stands is as good as a draw: the answer depends on all draws before.
    Row("torch.get_rng_state", draws="torch"),
    *each("torch.cuda", "get_rng_state get_rng_state_all", Row("", draws="torch")),
    Row("torch.random.fork_rng", makes="handle"),
    Row("torch.Generator", makes="generator", state=("get_state", "set_state")),  # a fixed seed
    *each("torch.Generator", "manual_seed set_state", Row("", seeds="self", mutates=("self",))),
    Row("torch.Generator.seed", seeds="self", observes="entropy", mutates=("self",)),
    Row("torch.Generator.get_state", draws="self"),
    Row("torch.Generator.clone_state", draws="self", makes="generator"),
    Row("torch.Generator.initial_seed"),
    Row("torch.quasirandom.SobolEngine", draws="torch", by="seed", makes="generator"),
    *each("torch.quasirandom.SobolEngine", "draw draw_base2", Row("", draws="self")),
    *each("torch.quasirandom.SobolEngine", "fast_forward reset", _SELF),
)

_FAMILIES = """
Bernoulli Beta Binomial Categorical Cauchy Chi2 ContinuousBernoulli Dirichlet Distribution
Exponential FisherSnedecor Gamma Geometric Gumbel HalfCauchy HalfNormal Independent InverseGamma
Kumaraswamy LKJCholesky Laplace LogNormal LogisticNormal LowRankMultivariateNormal MixtureSameFamily
Multinomial MultivariateNormal NegativeBinomial Normal OneHotCategorical
OneHotCategoricalStraightThrough Pareto Poisson RelaxedBernoulli RelaxedOneHotCategorical StudentT
TransformedDistribution Uniform VonMises Weibull Wishart
"""

_DISTRIBUTIONS = (
    *each("torch.distributions", _FAMILIES, HOLDS),
    *methods(
        "torch.distributions",
        _FAMILIES,
        "sample sample_n rsample",
        Row("", draws="torch", makes="array"),
    ),
    *methods("torch.distributions", _FAMILIES, "entropy log_prob cdf icdf", _TENSOR),
    *each("torch.distributions", "kl_divergence kl.kl_divergence", _TENSOR),
)

# Of the documentation of `torch.use_deterministic_algorithms`. What starts with "unless" becomes
# deterministic when it is asked to; the rest then refuses to run. Layers are in `torch_nn`.
_UNLESS = "unless deterministic algorithms are asked for, "
_WRITES = f"{_UNLESS}equal indices are written in any order"
_ADDS = f"{_UNLESS}CUDA adds up in any order"
_GRADS = f"{_UNLESS}CUDA adds up the gradient in any order"
_NEVER = "CUDA adds up in any order"

_VARIES = (
    *each("torch", "bmm", Row("", makes="array", mutates=("out",), varies=_ADDS)),  # if sparse
    *each("torch", "index_add scatter scatter_add scatter_reduce",
          Row("", makes="array", varies=_ADDS)),
    *each("torch", "gather index_select",
          Row("", makes="array", mutates=("out",), varies=_GRADS)),
    Row("torch.repeat_interleave", makes="array", varies=_GRADS),
    *each("torch", "index_copy index_put", Row("", makes="array", varies=_WRITES)),
    *each("torch", "cumsum histc", Row("", makes="array", mutates=("out",), varies=_NEVER)),
    *each("torch", "bincount index_reduce", Row("", makes="array", varies=_NEVER)),
    Row("torch.median", makes="array", mutates=("out",),
        varies="which of equal values gives the index is not fixed on CUDA"),
    Row("torch.put", makes="array", varies="equal indices are written in any order"),
    Row("torch.index_put_", mutates=("0",), wraps=True, varies=_WRITES),
    *each("torch.Tensor", "bmm index_add scatter scatter_add scatter_reduce",
          Row("", makes="array", varies=_ADDS)),
    *each("torch.Tensor", "gather index_select repeat_interleave",
          Row("", makes="array", varies=_GRADS)),
    *each("torch.Tensor", "index_copy index_put", Row("", makes="array", varies=_WRITES)),
    *each("torch.Tensor", "bincount cumsum histc index_reduce",
          Row("", makes="array", varies=_NEVER)),
    Row("torch.Tensor.median", makes="array",
        varies="which of equal values gives the index is not fixed on CUDA"),
    Row("torch.Tensor.put", makes="array", varies="equal indices are written in any order"),
    *each("torch.Tensor", "index_add_ scatter_ scatter_add_ scatter_reduce_",
          Row("", mutates=("self",), makes="array", wraps=True, varies=_ADDS)),
    *each("torch.Tensor", "index_copy_ index_put_",
          Row("", mutates=("self",), makes="array", wraps=True, varies=_WRITES)),
    Row("torch.Tensor.__setitem__", mutates=("self",), varies=_WRITES),
    *each("torch.Tensor", "cumsum_ index_reduce_",
          Row("", mutates=("self",), makes="array", wraps=True, varies=_NEVER)),
    Row("torch.Tensor.put_", mutates=("self",), makes="array", wraps=True,
        varies="equal indices are written in any order"),
    Row("torch.Tensor.resize_", mutates=("self",), makes="array", wraps=True, observes="memory"),
)  # fmt: skip

_MADE = (
    *each("torch", "empty empty_like empty_permuted empty_strided Tensor", _MEMORY),
    *each("torch.Tensor", "new_empty new_empty_strided new", _MEMORY),
    *each(
        "torch",
        "arange bartlett_window blackman_window eye full full_like hamming_window hann_window "
        "kaiser_window linspace logspace ones ones_like range scalar_tensor sparse_bsc_tensor "
        "sparse_bsr_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor "
        "sparse_compressed_tensor tensor tril_indices triu_indices zeros zeros_like",
        _OUT,
    ),
    *each("torch.Tensor", "new_full new_ones new_tensor new_zeros", _TENSOR),
    *each(
        "torch",
        "as_tensor asarray from_dlpack from_file from_numpy frombuffer to_dlpack "
        "utils.dlpack.from_dlpack utils.dlpack.to_dlpack",
        _VIEW,
    ),
    Row("torch.save", emits=True),
    Row("torch.load"),
    *each("torch.jit", "script trace freeze", Row("", makes="model", wraps=True)),
    Row("torch.jit.save", emits=True),
    Row("torch.jit.load", makes="model"),
    Row("torch.onnx.export", emits=True),
    Row("torch.compile", wraps=True, varies="kernels may be chosen by measuring their speed"),
    *each("torch.hub", "load", Row("", makes="model", draws="torch", observes="network")),
    Row("torch.hub.load_state_dict_from_url"),
)

_IN_PLACE = """
abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ apply_ arccos_
arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan2_ atan_ atanh_
baddbmm_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_
ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ copy_ copysign_ cos_ cosh_ cumprod_ deg2rad_
detach_ digamma_ div_ divide_ eq_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_ fill_ fill_diagonal_ fix_
float_power_ floor_ floor_divide_ fmod_ frac_ gcd_ ge_ greater_ greater_equal_ gt_ heaviside_ hypot_
i0_ igamma_ igammac_ index_fill_ lcm_ ldexp_ le_ lerp_ less_ less_equal_ lgamma_ log10_ log1p_ log2_
log_ logical_and_ logical_not_ logical_or_ logical_xor_ logit_ lt_ map2_ map_ masked_fill_
masked_scatter_ mul_ multiply_ mvlgamma_ nan_to_num_ ne_ neg_ negative_ nextafter_ not_equal_
polygamma_ pow_ rad2deg_ reciprocal_ relu_ remainder_ renorm_ requires_grad_ resize_as_
resize_as_sparse_ round_ rsqrt_ set_ sgn_ share_memory_ sigmoid_ sign_ sin_ sinc_ sinh_
sparse_resize_ sparse_resize_and_clear_ sqrt_ square_ squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_
tan_ tanh_ transpose_ tril_ triu_ true_divide_ trunc_ unsqueeze_ xlogy_ zero_ __iadd__ __iand__
__idiv__ __ifloordiv__ __ilshift__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__
__itruediv__ __ixor__
"""
_IN_PLACE_FUNCTIONS = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_
atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_
detach_ embedding_renorm_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ lcm_ ldexp_
log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_
resize_as_sparse_ round_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_
trunc_ xlogy_ zero_
"""

_FUNCTIONS_OUT = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any asin
asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor bucketize cat ceil chain_matmul cholesky cholesky_inverse
cholesky_solve clamp clip column_stack complex concat concatenate conj_physical copysign cos cosh
cross cummax cummin cumprod deg2rad diag diff digamma div divide dot dstack eq erf erfc erfinv exp
exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac frexp gcd ge geqrf ger greater
greater_equal gt heaviside histogram histogramdd hspmm hstack hypot i0 igamma igammac inner inverse
isneginf isposinf kron lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logaddexp
logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt lu
lu_solve lu_unpack masked_select matmul matrix_power max maximum mean min minimum mm msort mul
multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile narrow_copy ne neg negative nextafter
nonzero norm not_equal ormqr outer polar polygamma pow qr quantile rad2deg reciprocal remainder
renorm round row_stack rsqrt searchsorted sgn sigmoid sign signbit sin sinc sinh sort sqrt square
sspaddmm stack std std_mean sub subtract svd tan tanh topk triangular_solve tril triu trunc var
var_mean vdot vstack where xlogy absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh
argmax argmin argsort kthvalue mode softmax log_softmax sum prod nansum take take_along_dim
true_divide clamp_max clamp_min
"""
_FUNCTIONS = """
adaptive_avg_pool1d alias_copy argwhere as_strided_copy as_strided_scatter avg_pool1d bilinear
block_diag cartesian_prod cdist celu channel_shuffle clone combinations conv1d conv2d conv3d
conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d corrcoef cosine_embedding_loss
cosine_similarity count_nonzero cov ctc_loss cumulative_trapezoid dequantize det detach_copy
diag_embed diagflat diagonal_scatter dist einsum embedding embedding_bag fill flip fliplr flipud
gradient group_norm hardshrink hash_tensor hinge_embedding_loss index_fill isclose isfinite isin
isinf isnan isreal istft kl_div layer_norm logdet margin_ranking_loss masked_fill masked_scatter
matrix_exp max_pool1d max_pool2d max_pool3d nonzero_static orgqr pairwise_distance pdist pinverse
pixel_shuffle pixel_unshuffle poisson_nll_loss positive prelu relu rms_norm roll rot90 rsub
segment_reduce select_scatter selu slice_scatter slogdet smm stft tensordot threshold tile trace
trapezoid trapz triplet_margin_loss unique unique_consecutive unravel_index vander
"""
_FUNCTION_VIEWS = """
adjoint as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to chunk conj detach
diagonal dsplit flatten hsplit imag meshgrid moveaxis movedim narrow permute ravel real reshape
resolve_conj resolve_neg select split split_with_sizes squeeze swapaxes swapdims t tensor_split
transpose unbind unflatten unsafe_chunk unsafe_split unsqueeze view_as_complex view_as_real vsplit
"""
_QUESTIONS = """
allclose are_deterministic_algorithms_enabled broadcast_shapes can_cast equal get_default_device
get_default_dtype is_complex is_conj is_floating_point is_grad_enabled is_inference is_nonzero
is_storage is_tensor numel promote_types result_type typename device Size finfo iinfo
"""
_SETTINGS = """
set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode
set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
set_printoptions use_deterministic_algorithms
"""

_FUNCTIONS_ALL = (
    *each("torch", _IN_PLACE_FUNCTIONS, Row("", mutates=("0",), makes="array", wraps=True)),
    *each("torch", _FUNCTIONS_OUT, _OUT),
    *each("torch", _FUNCTIONS, _TENSOR),
    *each("torch", _FUNCTION_VIEWS, _VIEW),
    *each("torch", _QUESTIONS),
    *each("torch", _SETTINGS),
    *each("torch", "get_num_threads get_num_interop_threads", _HOST),
    *each("torch", "vmap cond while_loop", HOLDS),
    *each("torch.func", "functional_call grad grad_and_value hessian jacfwd jacrev jvp vjp vmap",
          HOLDS),
    # Running averages are changed in place while training.
    Row("torch.batch_norm", makes="array", mutates=("3", "4")),
    Row("torch.instance_norm", makes="array", mutates=("3", "4")),
    *each("torch.linalg",
          "cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh householder_product inv "
          "inv_ex ldl_factor ldl_solve lstsq lu lu_factor lu_solve matmul matrix_exp matrix_norm "
          "matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_triangular svd "
          "svdvals tensorinv tensorsolve vander vecdot vector_norm", _OUT),
    Row("torch.linalg.diagonal", makes="array", wraps=True),
    *each("torch.fft",
          "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 "
          "ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn", _OUT),
    *each("torch.special",
          "digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 i0e "
          "i1 i1e log1p log_ndtr log_softmax logit logsumexp multigammaln ndtr ndtri polygamma psi "
          "round sinc softmax xlog1py xlogy zeta", _OUT),
)  # fmt: skip

_METHODS = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any
arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere
as_strided_scatter asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor ceil cholesky cholesky_inverse cholesky_solve clamp
clamp_max clamp_min clip clone coalesce copysign corrcoef cos cosh count_nonzero cov cross cummax
cummin cumprod deg2rad dequantize det diag diag_embed diagflat diagonal_scatter diff digamma dist
div divide dot eq erf erfc erfinv exp exp2 expm1 fix flip fliplr flipud float_power floor
floor_divide fmax fmin fmod frac frexp gcd ge geqrf ger greater greater_equal gt hardshrink
heaviside histogram hypot i0 igamma igammac index_fill inner int_repr inverse isclose isfinite isinf
isnan isneginf isposinf isreal istft kron kthvalue lcm ldexp le lerp less less_equal lgamma log
log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not
logical_or logical_xor logit logsumexp lt lu lu_solve masked_fill masked_scatter masked_select
matmul matrix_exp matrix_power max maximum mean min minimum mm mode msort mul multiply mv mvlgamma
nan_to_num nanmean nanmedian nanquantile nansum narrow_copy ne neg negative nextafter nonzero
nonzero_static norm not_equal orgqr ormqr outer pin_memory pinverse polygamma positive pow prelu
prod qr quantile rad2deg reciprocal relu remainder renorm repeat roll rot90 round rsqrt
select_scatter sgn sigmoid sign signbit sin sinc sinh slice_scatter slogdet smm softmax sort
sparse_mask sqrt square std stft sub subtract sum sum_to_size svd take take_along_dim tan tanh tile
to_sparse to_sparse_coo to_sparse_csr topk trace triangular_solve tril triu true_divide trunc unique
unique_consecutive var vdot where xlogy
"""
# A change of type or device gives the tensor itself when there is nothing to change.
_METHOD_VIEWS = """
adjoint as_strided as_subclass bfloat16 bool broadcast_to byte cdouble cfloat chalf char chunk conj
conj_physical contiguous cpu cuda detach diagonal double dsplit expand expand_as flatten float half
hsplit indices int long moveaxis movedim narrow numpy permute ravel reshape reshape_as resolve_conj
resolve_neg select short split split_with_sizes squeeze storage swapaxes swapdims t tensor_split to
to_dense transpose type type_as unbind unflatten unfold unsafe_chunk unsafe_split unsqueeze
untyped_storage values view view_as vsplit xpu
"""
_METHOD_QUESTIONS = """
allclose dense_dim dim element_size equal get_device is_coalesced is_complex is_conj is_contiguous
is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared
is_signed item ndimension nelement numel size sparse_dim storage_offset stride tolist
"""

_TENSORS = (
    *each("torch.Tensor", _IN_PLACE, Row("", mutates=("self",), makes="array", wraps=True)),
    *each("torch.Tensor", _METHODS, _TENSOR),
    *each("torch.Tensor", _METHOD_VIEWS, _VIEW),
    *each("torch.Tensor", _METHOD_QUESTIONS),
    Row("torch.Tensor.__getitem__", makes="array", wraps=True,
        varies=f"{_UNLESS}the gradient by lists of indices is added up in any order"),
    Row("torch.Tensor.data_ptr", observes="hash order"),
    Row("torch.Tensor.backward", mutates=("gradients",)),
    *each("torch.Tensor", "register_hook register_post_accumulate_grad_hook",
          Row("", mutates=("self",), makes="handle", wraps=True)),
    Row("torch.Tensor.retain_grad", mutates=("self",)),
)  # fmt: skip

_GRADIENTS = (
    Row("torch.autograd.backward", mutates=("gradients",)),
    # Gives the gradients instead of adding them to what the leaves hold.
    Row("torch.autograd.grad"),
    *each("torch.autograd.functional", "hessian hvp jacobian jvp vhp vjp", _TENSOR),
    *each("torch.autograd", "gradcheck set_detect_anomaly detect_anomaly"),
    *each("torch", "enable_grad inference_mode no_grad set_grad_enabled", _HANDLE),
    Row("torch.autograd.Function"),
    *each("torch.utils.checkpoint", "checkpoint checkpoint_sequential", HOLDS),
)

_DATA = (
    # Each pass draws a seed for its workers, and one for the order when shuffling.
    Row("torch.utils.data.DataLoader", draws="torch", by="generator", parallel="loader",
        makes="loader", wraps=True),
    *each("torch.utils.data",
          "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset "
          "IterDataPipe MapDataPipe", Row("", makes="dataset", wraps=True)),
    Row("torch.utils.data.random_split", draws="torch", by="generator", makes="dataset",
        wraps=True),
    *each("torch.utils.data", "RandomSampler SubsetRandomSampler WeightedRandomSampler",
          Row("", draws="torch", by="generator", makes="sampler", wraps=True)),
    *each("torch.utils.data", "BatchSampler Sampler SequentialSampler",
          Row("", makes="sampler", wraps=True)),
    # Its order is a function of its seed and of the epoch that is set.
    Row("torch.utils.data.DistributedSampler", keyed=True, makes="sampler", wraps=True),
    Row("torch.utils.data.DistributedSampler.set_epoch", seeds="self", mutates=("self",)),
    *each("torch.utils.data", "default_collate default_convert"),
    Row("torch.utils.data.get_worker_info"),
)  # fmt: skip

_ORDER = "in which order the ranks are added up depends on the algorithm that the backend picks"

_PROCESSES = (
    *each("torch.distributed", "all_reduce reduce reduce_scatter reduce_scatter_tensor",
          Row("", mutates=("0",), makes="handle", varies=_ORDER)),
    *each("torch.distributed",
          "all_gather all_gather_into_tensor all_gather_object all_to_all all_to_all_single "
          "broadcast broadcast_object_list scatter scatter_object_list",
          Row("", mutates=("0",), makes="handle")),
    *each("torch.distributed", "recv irecv recv_object_list",
          Row("", mutates=("0",), makes="handle", varies="without src, the first that sends")),
    Row("torch.distributed.gather", mutates=("1", "gather_list"), makes="handle"),
    Row("torch.distributed.gather_object", mutates=("1", "object_gather_list")),
    *each("torch.distributed", "batch_isend_irecv isend send send_object_list", _HANDLE),
    *each("torch.distributed", "barrier monitored_barrier destroy_process_group is_available"),
    *each("torch.distributed",
          "get_backend get_rank get_node_local_rank get_world_size is_initialized",
          Row("", observes="environment")),
    *each("torch.distributed", "init_process_group new_group init_device_mesh",
          Row("", observes="environment", makes="handle")),
    *each("torch.multiprocessing", "Process spawn start_processes",
          Row("", parallel="processes", makes="handle", wraps=True)),
    *each("torch.multiprocessing", "set_sharing_strategy set_start_method get_context"),
)  # fmt: skip

_DEVICES = (
    *each("torch.cuda",
          "current_device device_count get_device_capability get_device_name "
          "get_device_properties is_available is_bf16_supported max_memory_allocated "
          "max_memory_reserved mem_get_info memory_allocated memory_reserved memory_summary "
          "utilization", _HOST),
    *each("torch", "backends.mps.is_available backends.cudnn.is_available "
          "backends.cudnn.version mps.device_count xpu.is_available accelerator.is_available "
          "accelerator.current_accelerator", _HOST),
    *each("torch.cuda", "empty_cache reset_peak_memory_stats set_device synchronize"),
    *each("torch.cuda", "Event Stream device stream graph CUDAGraph", _HANDLE),
    Row("torch.cuda.Event.elapsed_time", observes="clock"),
    *each("torch", "mps.synchronize mps.empty_cache"),
    Row("torch.mps.manual_seed", seeds="torch"),
    Row("torch.xpu.manual_seed", seeds="torch"),
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    *_RANDOM,
    *_DISTRIBUTIONS,
    *_VARIES,
    *_MADE,
    *_FUNCTIONS_ALL,
    *_TENSORS,
    *_GRADIENTS,
    *_DATA,
    *_PROCESSES,
    *_DEVICES,
)
