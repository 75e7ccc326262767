"""JAX, Flax and Optax. Almost all of it is pure: random numbers are functions of their key.

Flax NNX is the exception: its `Rngs` is a sequential generator, and its modules change in place.
"""

from __future__ import annotations

from detrain.analysis.library.each import HOLDS, each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_ARRAY = Row("", makes="array")
_KEYED = Row("", keyed=True, makes="array")
_SELF = Row("", mutates=("self",))

_DISTRIBUTIONS = """
ball bernoulli beta binomial bits categorical cauchy chisquare choice dirichlet double_sided_maxwell
exponential f gamma generalized_normal geometric gumbel laplace loggamma logistic lognormal maxwell
multinomial multivariate_normal normal orthogonal pareto permutation poisson rademacher randint
rayleigh t triangular truncated_normal uniform wald weibull_min
"""
_INITIALIZERS = """
constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal
kaiming_uniform lecun_normal lecun_uniform normal ones orthogonal truncated_normal uniform
variance_scaling xavier_normal xavier_uniform zeros
"""

_JAX = (
    *each("jax.random", _DISTRIBUTIONS, _KEYED),
    *each("jax.random", "PRNGKey clone fold_in key split wrap_key_data", _KEYED),
    *each("jax.random", "key_data key_impl"),
    # They give functions that take a key.
    *each("jax.nn.initializers", _INITIALIZERS),
    *each("jax",
          "checkpoint closure_convert custom_gradient custom_jvp custom_vjp eval_shape grad "
          "hessian jacfwd jacobian jacrev jit jvp linear_transpose linearize make_jaxpr named_call "
          "remat value_and_grad vjp vmap", HOLDS),
    *each("jax", "pmap shard_map", Row("", parallel="map", wraps=True)),
    *each("jax.lax", "associative_scan cond custom_root fori_loop map reduce scan switch "
          "while_loop", HOLDS),
    *each("jax.lax", "all_gather all_to_all axis_index pmax pmean pmin ppermute psum psum_scatter",
          _ARRAY),
    *each("jax.lax",
          "abs add broadcast clamp concatenate conv conv_general_dilated cumsum div dot "
          "dot_general dynamic_slice dynamic_update_slice exp expand_dims full gather iota log "
          "log1p max min mul neg pad pow reduce_max reduce_sum reshape rsqrt select sign slice "
          "sort sqrt square squeeze stop_gradient sub tanh top_k transpose", _ARRAY),
    *each("jax.lax", "scatter scatter_add scatter_mul",
          Row("", makes="array", varies="on GPUs, equal indices are added up in any order")),
    Row("jax.lax.rng_bit_generator", keyed=True, makes="array"),
    Row("jax.lax.rng_uniform", makes="array", varies="its generator is the backend's own"),
    *each("jax", "device_get device_put block_until_ready", Row("", makes="array", wraps=True)),
    *each("jax", "device_count devices local_device_count local_devices default_backend "
          "process_count process_index", Row("", observes="host")),
    *each("jax", "clear_caches disable_jit ensure_compile_time_eval default_matmul_precision "
          "enable_x64 named_scope typeof"),
    Row("jax.config.update"),
    *each("jax.debug", "callback print", Row("", emits=True)),
    *each("jax.debug", "visualize_array_sharding", Row("", emits=True)),
    *each("jax", "pure_callback experimental.io_callback", Row("", emits=True, wraps=True)),
    *each("jax.distributed", "initialize shutdown", Row("", observes="environment")),
    *each("jax.profiler", "start_trace stop_trace trace save_device_memory_profile",
          Row("", emits=True)),
    *each("jax.sharding", "Mesh NamedSharding PartitionSpec"),
    Row("jax.make_mesh", observes="host"),
    *each("jax.tree",
          "all flatten flatten_with_path leaves leaves_with_path map map_with_path reduce "
          "structure transpose unflatten", HOLDS),
    *each("jax.tree_util",
          "Partial keystr register_dataclass register_pytree_node register_pytree_node_class "
          "tree_all tree_flatten tree_flatten_with_path tree_leaves tree_map tree_map_with_path "
          "tree_reduce tree_structure tree_transpose tree_unflatten", HOLDS),
    Row("jax.flatten_util.ravel_pytree", makes="array"),
    *each("jax.nn",
          "celu dot_product_attention elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh "
          "leaky_relu log_sigmoid log_softmax logsumexp mish one_hot relu relu6 selu sigmoid silu "
          "soft_sign softmax softplus squareplus standardize swish tanh", _ARRAY),
    # Arrays don't change: `put` and its like give a new one, and `empty` gives zeros.
    *each("jax.numpy",
          "abs absolute add all allclose amax amin angle any append apply_along_axis arange arccos "
          "arcsin arctan arctan2 argmax argmin argpartition argsort argwhere around array "
          "array_equal array_split asarray astype atleast_1d atleast_2d atleast_3d average "
          "bincount bitwise_and bitwise_or bitwise_xor broadcast_arrays broadcast_to cbrt ceil "
          "choose clip column_stack compress concatenate conj convolve copy corrcoef correlate cos "
          "cosh count_nonzero cov cross cumprod cumsum deg2rad delete diag diagonal diff digitize "
          "divide divmod dot dstack einsum empty empty_like equal exp exp2 expand_dims expm1 eye "
          "fill_diagonal flatnonzero flip fliplr flipud float_power floor floor_divide fmod full "
          "full_like gcd geomspace gradient greater greater_equal heaviside histogram hstack hypot "
          "identity imag indices inner insert interp intersect1d invert isclose isfinite isin "
          "isinf isnan kron less less_equal lexsort linspace log log10 log1p log2 logaddexp "
          "logical_and logical_not logical_or logical_xor logspace matmul max maximum mean median "
          "meshgrid min minimum mod moveaxis multiply nan_to_num nanargmax nanmax nanmean nanmin "
          "nanstd nansum nanvar ndim negative nonzero not_equal ones ones_like outer pad partition "
          "percentile piecewise place polyfit polyval positive power prod ptp put quantile ravel "
          "real reciprocal remainder repeat reshape resize result_type right_shift rint roll "
          "rollaxis rot90 round searchsorted select setdiff1d shape sign sin sinc sinh size sort "
          "split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh "
          "tensordot tile trace transpose trapezoid tri tril tril_indices triu triu_indices "
          "true_divide trunc union1d unique unravel_index vander var vdot vectorize vsplit vstack "
          "where zeros zeros_like load", _ARRAY),
    *each("jax.numpy", "save savez", Row("", emits=True)),
    *each("jax.numpy.linalg",
          "cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank "
          "multi_dot norm pinv qr slogdet solve svd", _ARRAY),
    *each("jax.Array",
          "all any argmax argmin argsort astype clip copy cumsum dot flatten item max mean min "
          "nonzero prod ravel repeat reshape round sort squeeze std sum swapaxes take to_device "
          "trace transpose var view", _ARRAY),
)  # fmt: skip

_LINEN = """
BatchNorm Bidirectional Conv ConvLSTMCell ConvLocal ConvTranspose Dense DenseGeneral Dropout Einsum
Embed GRUCell GroupNorm InstanceNorm LSTMCell LayerNorm MGUCell Module MultiHeadAttention
MultiHeadDotProductAttention OptimizedLSTMCell PReLU RMSNorm RNN SelfAttention Sequential SimpleCell
SpectralNorm WeightNorm
"""
_NNX_WEIGHTED = """
Conv ConvTranspose Einsum Embed GRUCell GroupNorm InstanceNorm LSTMCell LayerNorm Linear
LinearGeneral LoRA LoRALinear MultiHeadAttention OptimizedLSTMCell RMSNorm SimpleCell
"""
_NNX_PLAIN = "Bidirectional PReLU RNN Sequential WeightNorm"

_FLAX = (
    # A Linen module is a description; weights and running averages are in variables it is given.
    *each("flax.linen", _LINEN, Row("", makes="model", wraps=True)),
    *each("flax.linen.Module", "init init_with_output lazy_init", Row("", keyed=True)),
    *each("flax.linen.Module", "apply", Row("", keyed=True)),
    *each("flax.linen.Module", "make_rng param variable perturb", Row("", keyed=True, wraps=True)),
    *each("flax.linen.Module", "put_variable sow", _SELF),
    *each("flax.linen.Module", "bind clone copy get_variable unbind", HOLDS),
    *each("flax.linen.Module", "has_rng has_variable is_initializing tabulate"),
    *each("flax.linen", "compact jit nowrap remat scan vmap cond while_loop map_variables", HOLDS),
    *each("flax.linen",
          "avg_pool celu dot_product_attention elu gelu glu leaky_relu log_sigmoid log_softmax "
          "make_attention_mask make_causal_mask max_pool one_hot pool relu selu sigmoid silu "
          "soft_sign softmax softplus standardize swish tanh", _ARRAY),
    *each("flax.linen.initializers", _INITIALIZERS),
    *each("flax.nnx", "Rngs RngStream", Row("", makes="generator")),
    *each("flax.nnx.Rngs", f"{_DISTRIBUTIONS} __call__", Row("", draws="self", makes="array")),
    Row("flax.nnx.RngStream.__call__", draws="self", makes="array"),
    *each("flax.nnx.Rngs", "fork split", Row("", draws="self", makes="generator")),
    *each("flax.nnx", "reseed", Row("", seeds="argument", mutates=("0",))),
    *each("flax.nnx", _NNX_WEIGHTED, Row("", draws="argument", by="rngs", makes="model")),
    *each("flax.nnx", _NNX_PLAIN, Row("", makes="model", wraps=True)),
    Row("flax.nnx.Module", makes="model"),
    *methods("flax.nnx", _NNX_WEIGHTED, "__call__", _ARRAY),
    Row("flax.nnx.Dropout", draws="argument", by="rngs", makes="model"),
    Row("flax.nnx.Dropout.__call__", draws="self", makes="array"),
    *each("flax.nnx", "BatchNorm SpectralNorm", Row("", draws="argument", by="rngs",
                                                    makes="model")),
    *methods("flax.nnx", "BatchNorm SpectralNorm", "__call__",
             Row("", mutates=("self",), makes="array")),
    *each("flax.nnx.Module", "eval train sow", _SELF),
    *each("flax.nnx", "Param Variable BatchStat Cache", Row("", makes="array", wraps=True)),
    *each("flax.nnx", "Optimizer ModelAndOptimizer", Row("", makes="optimizer", wraps=True)),
    Row("flax.nnx.Optimizer.update", mutates=("0", "self")),
    Row("flax.nnx.ModelAndOptimizer.update", mutates=("parameters", "self")),
    *each("flax.nnx", "MultiMetric metrics.Accuracy metrics.Average", Row("", makes="handle")),
    *methods("flax.nnx", "MultiMetric metrics.Accuracy metrics.Average", "reset update", _SELF),
    *each("flax.nnx", "clone"),
    *each("flax.nnx", "pop update", Row("", mutates=("0",), wraps=True)),
    *each("flax.nnx", "graphdef iter_graph iter_modules merge split state variables", HOLDS),
    *each("flax.nnx",
          "cond custom_vjp eval_shape fori_loop grad jit remat scan value_and_grad vmap while_loop",
          HOLDS),
    *each("flax.nnx", "pmap shard_map", Row("", parallel="map", wraps=True)),
    *each("flax.nnx.initializers", "glorot_normal glorot_uniform he_normal lecun_normal normal "
          "ones uniform xavier_uniform zeros"),
    # A value that is replaced, never changed.
    Row("flax.training.train_state.TrainState", makes="model", wraps=True),
    *each("flax.training.train_state.TrainState", "apply_gradients create replace",
          Row("", makes="model", wraps=True)),
    *each("flax.training.checkpoints", "save_checkpoint", Row("", emits=True)),
    *each("flax.training.checkpoints", "latest_checkpoint restore_checkpoint",
          Row("", observes="directory")),
    *each("flax.training.dynamic_scale", "DynamicScale", Row("", makes="scaler")),
    *each("flax.training.early_stopping", "EarlyStopping"),
    *each("flax.jax_utils", "prefetch_to_device replicate unreplicate", HOLDS),
    *each("flax.serialization",
          "from_bytes from_state_dict msgpack_restore msgpack_serialize to_bytes to_state_dict"),
    *each("flax.core", "freeze unfreeze", HOLDS),
)  # fmt: skip

_OPTAX = (
    *each("optax",
          "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw adan amsgrad fromage "
          "lamb lars lbfgs lion nadam nadamw novograd optimistic_adam "
          "optimistic_gradient_descent polyak_sgd radam rmsprop rprop sgd sign_sgd sm3 yogi",
          Row("", makes="optimizer", wraps=True)),
    *each("optax", "add_noise noisy_sgd", Row("", keyed=True, makes="optimizer", wraps=True)),
    *each("optax",
          "GradientTransformation MultiSteps adaptive_grad_clip add_decayed_weights apply_every "
          "apply_if_finite centralize chain clip clip_by_block_rms clip_by_global_norm ema flatten "
          "freeze identity inject_hyperparams lookahead masked multi_transform named_chain "
          "normalize_by_update_norm partition scale scale_by_adam scale_by_learning_rate "
          "scale_by_rms scale_by_schedule scale_by_trust_ratio set_to_zero trace zero_nans",
          Row("", makes="optimizer", wraps=True)),
    # They take a state and give the next one.
    *each("optax.GradientTransformation", "init update"),
    *each("optax.MultiSteps", "init update gradient_transformation has_updated"),
    *each("optax", "apply_updates global_norm incremental_update periodic_update"),
    *each("optax",
          "constant_schedule cosine_decay_schedule cosine_onecycle_schedule exponential_decay "
          "join_schedules linear_onecycle_schedule linear_schedule piecewise_constant_schedule "
          "polynomial_schedule sgdr_schedule warmup_constant_schedule "
          "warmup_cosine_decay_schedule warmup_exponential_decay_schedule", HOLDS),
    *each("optax",
          "cosine_distance cosine_similarity ctc_loss hinge_loss huber_loss kl_divergence l2_loss "
          "log_cosh sigmoid_binary_cross_entropy sigmoid_focal_loss smooth_labels "
          "softmax_cross_entropy softmax_cross_entropy_with_integer_labels squared_error", _ARRAY),
    *each("optax", "tree_map_params", HOLDS),
)  # fmt: skip

ROWS: tuple[Row, ...] = (*_JAX, *_FLAX, *_OPTAX)
