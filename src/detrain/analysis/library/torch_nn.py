"""PyTorch: modules, optimizers, schedulers, scalers and averages."""

from __future__ import annotations

from detrain.analysis.library.each import each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_STATE = ("state_dict", "load_state_dict")
_SELF = Row("", mutates=("self",))
_TENSOR = Row("", makes="array")
_MODULE = Row("", makes="model", state=_STATE)
_BORN_RANDOM = Row("", draws="torch", makes="model", state=_STATE)
_HOLDER = Row("", makes="model", wraps=True, state=_STATE)
_DRAWS = Row("", draws="torch", makes="array")
_RUNNING = Row("", mutates=("self",), makes="array")

# Initial weights are drawn when the module is made.
_CONVOLUTIONS = "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
_WEIGHTED = (
    "AdaptiveLogSoftmaxWithLoss Bilinear Embedding EmbeddingBag GRUCell LSTMCell Linear RNNCell"
)
# These have dropout inside, though it may be zero.
_WEIGHTED_DRAWING = """
GRU LSTM MultiheadAttention RNN Transformer TransformerDecoderLayer TransformerEncoderLayer
"""
_COPYING_DRAWING = "TransformerDecoder TransformerEncoder"  # copies of the layer that is given
_LAZY = """
LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
LazyLinear
"""
_DROPOUT = """
AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout FractionalMaxPool2d
FractionalMaxPool3d RReLU
"""
_NORMS_RUNNING = """
BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyBatchNorm1d
LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
SyncBatchNorm
"""
_PLAIN = """
AdaptiveAvgPool1d AdaptiveMaxPool1d AdaptiveMaxPool3d AvgPool1d AvgPool2d BCELoss BCEWithLogitsLoss
CELU ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d
ConstantPad3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss CrossMapLRN2d ELU Flatten Fold
GELU GLU GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss
HuberLoss Identity KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LayerNorm LeakyReLU LocalResponseNorm
LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d Mish MultiLabelMarginLoss
MultiLabelSoftMarginLoss MultiMarginLoss PReLU PairwiseDistance PixelShuffle PixelUnshuffle
PoissonNLLLoss RMSNorm ReLU ReLU6 SELU SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d
Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold TripletMarginLoss
TripletMarginWithDistanceLoss Unflatten Unfold UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
"""
# Of the documentation of `torch.use_deterministic_algorithms`, as in `torch`.
_NEVER_GRAD = "CUDA adds up the gradient in any order"
_UNLESS_GRAD = f"unless deterministic algorithms are asked for, {_NEVER_GRAD}"
_UNLESS_CONV = "unless deterministic algorithms are asked for, cuDNN picks any algorithm"
_VARYING_GRAD = """
AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool2d AvgPool3d CTCLoss ReflectionPad1d
ReflectionPad2d ReflectionPad3d Upsample UpsamplingBilinear2d
"""
_VARYING_GRAD_UNLESS = "MaxPool3d ReplicationPad1d ReplicationPad2d ReplicationPad3d"
_VARYING = "MaxUnpool1d MaxUnpool2d MaxUnpool3d NLLLoss"

_MODULES = (
    Row("torch.nn.Module", makes="model", state=_STATE),
    *each("torch.nn", f"{_CONVOLUTIONS} {_WEIGHTED} {_WEIGHTED_DRAWING}", _BORN_RANDOM),
    *each("torch.nn", f"{_COPYING_DRAWING} {_LAZY} {_DROPOUT} {_NORMS_RUNNING}", _MODULE),
    *each("torch.nn", f"{_PLAIN} {_VARYING_GRAD} {_VARYING_GRAD_UNLESS} {_VARYING}", _MODULE),
    *each("torch.nn", "ModuleDict ModuleList ParameterDict ParameterList Sequential", _HOLDER),
    *each("torch.nn", "Buffer Parameter", Row("", makes="array", wraps=True)),
    *each(
        "torch.nn", "UninitializedBuffer UninitializedParameter", Row("", makes="array")
    ),
    *methods("torch.nn", f"{_WEIGHTED} {_PLAIN}", "__call__", _TENSOR),
    *methods("torch.nn", _CONVOLUTIONS, "__call__", Row("", makes="array", varies=_UNLESS_CONV)),
    *methods("torch.nn", f"{_WEIGHTED_DRAWING} {_COPYING_DRAWING}", "__call__", _DRAWS),
    # The first call makes the weights.
    *methods("torch.nn", _LAZY, "__call__",
             Row("", draws="torch", mutates=("self",), makes="array")),
    *methods("torch.nn", _DROPOUT, "__call__", _DRAWS),
    *methods("torch.nn", _NORMS_RUNNING, "__call__", _RUNNING),
    *methods("torch.nn", _VARYING_GRAD, "__call__", Row("", makes="array", varies=_NEVER_GRAD)),
    *methods("torch.nn", _VARYING_GRAD_UNLESS, "__call__",
             Row("", makes="array", varies=_UNLESS_GRAD)),
    *methods("torch.nn", _VARYING, "__call__",
             Row("", makes="array", varies="CUDA writes or adds up in any order")),
    *each("torch.nn.Module",
          "add_module register_buffer register_module register_parameter set_submodule", _SELF),
    # They give the module back.
    *each("torch.nn.Module",
          "bfloat16 cpu cuda double eval float half requires_grad_ share_memory to to_empty train "
          "type xpu", Row("", mutates=("self",), makes="model", wraps=True)),
    Row("torch.nn.Module.apply", mutates=("self",), makes="model", wraps=True),
    Row("torch.nn.Module.compile", mutates=("self",)),
    *each("torch.nn.Module", "load_state_dict set_extra_state", _SELF),
    Row("torch.nn.Module.zero_grad", mutates=("gradients",)),
    # Aliases of the live parameters, not copies.
    *each("torch.nn.Module",
          "buffers children get_buffer get_extra_state get_parameter get_submodule modules "
          "named_buffers named_children named_modules named_parameters parameters state_dict",
          Row("", wraps=True)),
    *each("torch.nn.Module",
          "register_backward_hook register_forward_hook register_forward_pre_hook "
          "register_full_backward_hook register_full_backward_pre_hook "
          "register_load_state_dict_post_hook register_state_dict_pre_hook",
          Row("", mutates=("self",), makes="handle", wraps=True)),
    *each("torch.nn.ModuleList", "append extend insert __setitem__",
          Row("", mutates=("self",), wraps=True)),
    *each("torch.nn.Sequential", "append extend insert __setitem__",
          Row("", mutates=("self",), wraps=True)),
    *each("torch.nn.ParameterList", "append extend __setitem__",
          Row("", mutates=("self",), wraps=True)),
    *each("torch.nn.ModuleDict", "clear pop update __setitem__",
          Row("", mutates=("self",), wraps=True)),
    *each("torch.nn.ModuleDict", "items keys values", Row("", wraps=True)),
)  # fmt: skip

_PARALLEL = (
    *each("torch.nn", "DataParallel", _HOLDER),
    Row("torch.nn.DataParallel.__call__", parallel="threads", makes="array"),
    # Rank 0 gives its parameters and buffers to the others.
    Row("torch.nn.parallel.DistributedDataParallel", mutates=("0",), makes="model", wraps=True,
        state=_STATE),
    Row("torch.nn.parallel.DistributedDataParallel.no_sync", makes="handle"),
    Row("torch.distributed.fsdp.FullyShardedDataParallel", mutates=("0",), makes="model",
        wraps=True, state=_STATE),
    Row("torch.distributed.fsdp.fully_shard", mutates=("0",), makes="model", wraps=True,
        state=_STATE),
    Row("torch.nn.SyncBatchNorm.convert_sync_batchnorm", mutates=("0",), makes="model", wraps=True),
)  # fmt: skip

_INIT = (
    *each(
        "torch.nn.init",
        "kaiming_normal_ kaiming_uniform_ normal_ orthogonal_ sparse_ trunc_normal_ uniform_ "
        "xavier_normal_ xavier_uniform_",
        Row("", draws="torch", by="generator", mutates=("0",), makes="array", wraps=True),
    ),
    *each(
        "torch.nn.init",
        "constant_ dirac_ eye_ ones_ zeros_",
        Row("", mutates=("0",), makes="array", wraps=True),
    ),
    Row("torch.nn.init.calculate_gain"),
)

_FUNCTIONAL = (
    # `inplace=True` is not modelled: it changes an activation, which doesn't outlive its step.
    *each("torch.nn.functional",
          "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout "
          "fractional_max_pool2d fractional_max_pool3d gumbel_softmax multi_head_attention_forward "
          "rrelu scaled_dot_product_attention", _DRAWS),
    Row("torch.nn.functional.rrelu_", draws="torch", mutates=("0",), makes="array", wraps=True),
    *each("torch.nn.functional",
          "celu_ elu_ hardtanh_ leaky_relu_ relu_ selu_ threshold_",
          Row("", mutates=("0",), makes="array", wraps=True)),
    # Running averages change in place while training.
    *each("torch.nn.functional", "batch_norm instance_norm",
          Row("", mutates=("1", "2", "running_mean", "running_var"), makes="array")),
    *each("torch.nn.functional",
          "adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool3d affine_grid avg_pool1d "
          "avg_pool2d bilinear binary_cross_entropy binary_cross_entropy_with_logits celu "
          "channel_shuffle cosine_embedding_loss cosine_similarity cross_entropy elu embedding "
          "embedding_bag fold gaussian_nll_loss gelu glu group_norm hardshrink hardsigmoid "
          "hardswish hardtanh hinge_embedding_loss huber_loss kl_div l1_loss layer_norm leaky_relu "
          "linear local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d "
          "margin_ranking_loss max_pool1d max_pool2d mish mse_loss multi_margin_loss "
          "multilabel_margin_loss multilabel_soft_margin_loss normalize one_hot pairwise_distance "
          "pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm selu "
          "sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink "
          "softsign tanh tanhshrink threshold triplet_margin_loss "
          "triplet_margin_with_distance_loss unfold upsample_nearest", _TENSOR),
    *each("torch.nn.functional",
          "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
          Row("", makes="array", varies=_UNLESS_CONV)),
    *each("torch.nn.functional",
          "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d avg_pool3d ctc_loss "
          "grid_sample interpolate upsample upsample_bilinear",
          Row("", makes="array", varies=_NEVER_GRAD)),
    *each("torch.nn.functional", "max_pool3d", Row("", makes="array", varies=_UNLESS_GRAD)),
    # Reflection and replication only.
    *each("torch.nn.functional", "pad", Row("", makes="array", varies=_NEVER_GRAD)),
    *each("torch.nn.functional", "max_unpool1d max_unpool2d max_unpool3d nll_loss",
          Row("", makes="array", varies="CUDA writes or adds up in any order")),
)  # fmt: skip

_UTILS = (
    *each("torch.nn.utils",
          "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_",
          Row("", mutates=("gradients",), makes="array")),
    Row("torch.nn.utils.get_total_norm", makes="array"),
    Row("torch.nn.utils.parameters_to_vector", makes="array"),
    Row("torch.nn.utils.vector_to_parameters", mutates=("1",)),
    # The vectors of the power iteration are drawn, and change at each call of the module.
    *each("torch.nn.utils", "spectral_norm parametrizations.spectral_norm",
          Row("", draws="torch", mutates=("0",), makes="model", wraps=True, state=_STATE)),
    *each("torch.nn.utils",
          "parametrizations.orthogonal parametrizations.weight_norm "
          "parametrize.register_parametrization parametrize.remove_parametrizations "
          "remove_spectral_norm remove_weight_norm weight_norm",
          Row("", mutates=("0",), makes="model", wraps=True, state=_STATE)),
    Row("torch.nn.utils.skip_init", observes="memory", makes="model", state=_STATE),
    *each("torch.nn.utils.rnn",
          "pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence unpad_sequence "
          "unpack_sequence", _TENSOR),
    *each("torch.nn.utils.prune", "random_structured random_unstructured",
          Row("", draws="torch", mutates=("0",), makes="model", wraps=True, state=_STATE)),
    *each("torch.nn.utils.prune", "identity l1_unstructured ln_structured remove",
          Row("", mutates=("0",), makes="model", wraps=True, state=_STATE)),
    Row("torch.nn.utils.prune.global_unstructured", mutates=("0",)),
)  # fmt: skip

_OPTIMIZERS = """
ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam Optimizer RAdam RMSprop Rprop SGD
SparseAdam
"""
_SCHEDULERS = """
ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR
LRScheduler LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau
SequentialLR StepLR
"""

_TRAINING = (
    *each("torch.optim", _OPTIMIZERS, Row("", makes="optimizer", wraps=True, state=_STATE)),
    Row("torch.distributed.optim.ZeroRedundancyOptimizer", makes="optimizer", wraps=True,
        state=_STATE),
    Row("torch.optim.Optimizer.step", mutates=("parameters", "self")),
    # Calls its closure, which computes the gradients anew.
    Row("torch.optim.LBFGS.step", mutates=("parameters", "gradients", "self")),
    Row("torch.optim.Optimizer.zero_grad", mutates=("gradients",)),
    Row("torch.optim.Optimizer.add_param_group", mutates=("self",), wraps=True),
    Row("torch.optim.Optimizer.load_state_dict", mutates=("self",)),
    Row("torch.optim.Optimizer.state_dict", wraps=True),
    *each("torch.optim.Optimizer",
          "register_load_state_dict_post_hook register_state_dict_pre_hook register_step_post_hook "
          "register_step_pre_hook", Row("", mutates=("self",), makes="handle", wraps=True)),
    # Making a scheduler already sets the optimizer's rate.
    *each("torch.optim.lr_scheduler", _SCHEDULERS,
          Row("", mutates=("0",), makes="scheduler", wraps=True, state=_STATE)),
    *each("torch.optim.lr_scheduler.LRScheduler", "load_state_dict step", _SELF),
    Row("torch.optim.lr_scheduler.LRScheduler.state_dict", wraps=True),
    *each("torch.optim.lr_scheduler.LRScheduler", "get_last_lr get_lr"),
    Row("torch.optim.swa_utils.SWALR", mutates=("0",), makes="scheduler", wraps=True, state=_STATE),
    # A deep copy of the model.
    Row("torch.optim.swa_utils.AveragedModel", makes="average", state=_STATE),
    Row("torch.optim.swa_utils.AveragedModel.update_parameters", mutates=("self",)),
    Row("torch.optim.swa_utils.update_bn", mutates=("1", "model")),
    *each("torch.optim.swa_utils", "get_ema_avg_fn get_ema_multi_avg_fn get_swa_avg_fn"),
    Row("torch.amp.GradScaler", makes="scaler", state=_STATE),
    Row("torch.amp.GradScaler.scale", mutates=("self",), makes="array"),
    Row("torch.amp.GradScaler.unscale_", mutates=("gradients", "self")),
    Row("torch.amp.GradScaler.step", mutates=("0", "parameters", "gradients", "self")),
    *each("torch.amp.GradScaler",
          "load_state_dict set_backoff_factor set_growth_factor set_growth_interval update", _SELF),
    *each("torch.amp.GradScaler", "get_scale is_enabled state_dict"),
    *each("torch.amp", "autocast", Row("", makes="handle")),
    *each("torch.amp", "custom_bwd custom_fwd", Row("", wraps=True)),
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    *_MODULES,
    *_PARALLEL,
    *_INIT,
    *_FUNCTIONAL,
    *_UTILS,
    *_TRAINING,
)
