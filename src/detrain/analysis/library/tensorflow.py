"""TensorFlow 2 and Keras 3.

Keras layers don't draw their weights from TensorFlow's generator: a layer or an initializer without
a seed takes one from Python's `random` when it is made, and its weights are a function of that.
Functions of `keras.random` without a seed move a global `SeedGenerator`, which counts here as
TensorFlow's generator. `tensorflow.keras` is an alias of `keras`.
"""

from __future__ import annotations

from detrain.analysis.library.each import HOLDS, each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_SELF = Row("", mutates=("self",))
_EMITS = Row("", emits=True)
_TENSOR = Row("", makes="array")
_KEYED = Row("", keyed=True, makes="array")
_DRAWS = Row("", draws="tensorflow", makes="array")
_DATASET = Row("", makes="dataset", wraps=True)
_WEIGHTS = ("get_weights", "set_weights")
_LAYER = Row("", makes="model", wraps=True, state=_WEIGHTS)
_BORN_RANDOM = Row("", draws="python", by="seed", makes="model", wraps=True, state=_WEIGHTS)

_RANDOM = (
    *each("tensorflow.random",
          "all_candidate_sampler categorical fixed_unigram_candidate_sampler gamma "
          "learned_unigram_candidate_sampler log_uniform_candidate_sampler normal poisson shuffle "
          "truncated_normal uniform uniform_candidate_sampler", _DRAWS),
    *each("tensorflow.random",
          "fold_in split stateless_binomial stateless_categorical stateless_gamma stateless_normal "
          "stateless_parameterized_truncated_normal stateless_poisson stateless_truncated_normal "
          "stateless_uniform experimental.index_shuffle experimental.stateless_fold_in "
          "experimental.stateless_shuffle experimental.stateless_split", _KEYED),
    Row("tensorflow.random.create_rng_state", keyed=True, makes="array"),
    Row("tensorflow.random.set_seed", seeds="tensorflow"),
    Row("tensorflow.random.get_global_generator", makes="generator", wraps=True),
    Row("tensorflow.random.set_global_generator", seeds="tensorflow", wraps=True),
    Row("tensorflow.random.Generator", makes="generator", wraps=True),
    *each("tensorflow.random.Generator", "from_key_counter from_seed from_state",
          Row("", keyed=True, makes="generator")),
    Row("tensorflow.random.Generator.from_non_deterministic_state", observes="entropy",
        makes="generator"),
    *each("tensorflow.random.Generator",
          "binomial make_seeds normal truncated_normal uniform uniform_full_int",
          Row("", draws="self", makes="array")),
    Row("tensorflow.random.Generator.split", draws="self", makes="generator"),
    *each("tensorflow.random.Generator", "reset reset_from_key_counter reset_from_seed skip",
          Row("", seeds="self", mutates=("self",))),
    *each("tensorflow.image",
          "random_brightness random_contrast random_crop random_flip_left_right "
          "random_flip_up_down random_hue random_jpeg_quality random_saturation "
          "sample_distorted_bounding_box", _DRAWS),
    *each("tensorflow.image",
          "stateless_random_brightness stateless_random_contrast stateless_random_crop "
          "stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue "
          "stateless_random_jpeg_quality stateless_random_saturation "
          "stateless_sample_distorted_bounding_box", _KEYED),
    *each("tensorflow.nn", "dropout fractional_avg_pool fractional_max_pool nce_loss "
          "sampled_softmax_loss", _DRAWS),
    Row("tensorflow.nn.experimental.stateless_dropout", keyed=True, makes="array"),
    # Seeds Python, NumPy and TensorFlow; a row can name one of them.
    Row("keras.utils.set_random_seed", seeds="tensorflow"),
    Row("tensorflow.config.experimental.enable_op_determinism"),
    *each("keras.random",
          "beta binomial categorical dropout gamma normal randint shuffle truncated_normal uniform",
          Row("", draws="tensorflow", by="seed", makes="array")),
    Row("keras.random.SeedGenerator", draws="python", by="seed", makes="generator"),
    Row("keras.random.SeedGenerator.next", draws="self", makes="array"),
)  # fmt: skip

_MAP = Row("", parallel="map", makes="dataset", wraps=True)
_SHUFFLED = Row("", draws="tensorflow", by="seed", makes="dataset", wraps=True)

_DATA = (
    Row("tensorflow.data.Dataset", makes="dataset"),
    *each("tensorflow.data.Dataset",
          "apply batch bucket_by_sequence_length cache choose_from_datasets concatenate counter "
          "enumerate filter flat_map from_generator from_tensor_slices from_tensors "
          "group_by_window padded_batch prefetch ragged_batch range rebatch repeat scan shard skip "
          "sparse_batch take take_while unbatch unique window with_options zip ignore_errors",
          _DATASET),
    *each("tensorflow.data.Dataset", "interleave map", _MAP),
    *each("tensorflow.data.Dataset", "random rejection_resample sample_from_datasets shuffle",
          _SHUFFLED),
    Row("tensorflow.data.Dataset.list_files", draws="tensorflow", by="seed", observes="directory",
        makes="dataset"),
    *each("tensorflow.data.Dataset", "load", Row("", makes="dataset")),
    *each("tensorflow.data.Dataset", "save snapshot", Row("", emits=True, wraps=True)),
    *each("tensorflow.data.Dataset", "as_numpy_iterator options reduce", HOLDS),
    *each("tensorflow.data.Dataset", "cardinality get_single_element"),
    *each("tensorflow.data", "FixedLengthRecordDataset TFRecordDataset TextLineDataset", _MAP),
    Row("tensorflow.data.Options"),
    *each("tensorflow.data.experimental", "make_csv_dataset",
          Row("", draws="tensorflow", parallel="map", makes="dataset")),
    *each("tensorflow.data.experimental", "prefetch_to_device assert_cardinality", HOLDS),
    # They sort what they find, and shuffle it by default.
    *each("keras.utils",
          "audio_dataset_from_directory image_dataset_from_directory text_dataset_from_directory",
          Row("", draws="numpy", by="seed", makes="dataset")),
    Row("keras.utils.timeseries_dataset_from_array", draws="numpy", by="seed", makes="dataset"),
    # Seeds Python's generator, with a draw of it if no seed is given.
    Row("keras.utils.split_dataset", draws="python", seeds="python", makes="dataset", wraps=True),
    *each("keras.utils", "PyDataset Sequence", Row("", makes="dataset")),
    *each("keras.datasets",
          "boston_housing.load_data california_housing.load_data cifar10.load_data "
          "cifar100.load_data fashion_mnist.load_data imdb.load_data mnist.load_data "
          "reuters.load_data imdb.get_word_index reuters.get_word_index"),
    Row("keras.utils.get_file", emits=True),
    *each("keras.utils", "array_to_img img_to_array load_img normalize pad_sequences "
          "to_categorical"),
)  # fmt: skip

_LAYERS_BORN_RANDOM = """
Bidirectional Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D
ConvLSTM2D ConvLSTM3D Dense DepthwiseConv1D DepthwiseConv2D EinsumDense Embedding GRU GRUCell
GroupQueryAttention LSTM LSTMCell MultiHeadAttention SeparableConv1D SeparableConv2D SimpleRNN
SimpleRNNCell
"""
# Their seed generator moves at each call while training.
_LAYERS_DRAWING = """
AlphaDropout AugMix CutMix Dropout GaussianDropout GaussianNoise MixUp RandAugment RandomBrightness
RandomColorDegeneration RandomColorJitter RandomContrast RandomCrop RandomElasticTransform
RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue RandomInvert RandomPerspective
RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear RandomTranslation
RandomZoom SpatialDropout1D SpatialDropout2D SpatialDropout3D
"""
_LAYERS_RUNNING = "BatchNormalization SpectralNormalization"
_LAYERS_PLAIN = """
Activation ActivityRegularization Add AdditiveAttention Attention AutoContrast Average
AveragePooling1D AveragePooling2D AveragePooling3D CategoryEncoding CenterCrop Concatenate
Cropping1D Cropping2D Cropping3D Discretization Dot ELU Flatten GlobalAveragePooling1D
GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D
GlobalMaxPooling3D GroupNormalization HashedCrossing Hashing Identity InputLayer IntegerLookup
Lambda Layer LayerNormalization LeakyReLU Masking MaxPooling1D MaxPooling2D MaxPooling3D Maximum
MelSpectrogram Minimum Multiply Normalization PReLU Permute RMSNormalization RNN ReLU RepeatVector
Rescaling Reshape Resizing Softmax Solarization StackedRNNCells StringLookup Subtract
TextVectorization TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D Wrapper
ZeroPadding1D ZeroPadding2D ZeroPadding3D
"""
_APPLICATIONS = """
ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge DenseNet121 DenseNet169
DenseNet201 EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4
EfficientNetB5 EfficientNetB6 EfficientNetB7 EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2
EfficientNetV2B3 EfficientNetV2L EfficientNetV2M EfficientNetV2S InceptionResNetV2 InceptionV3
MobileNet MobileNetV2 MobileNetV3Large MobileNetV3Small NASNetLarge NASNetMobile ResNet101
ResNet101V2 ResNet152 ResNet152V2 ResNet50 ResNet50V2 VGG16 VGG19 Xception
"""

_MODELS = (
    *each("keras", "Model Sequential", _LAYER),
    *each("keras.layers", _LAYERS_BORN_RANDOM, _BORN_RANDOM),
    *each("keras.layers", _LAYERS_DRAWING, _BORN_RANDOM),
    *each("keras.layers", f"{_LAYERS_RUNNING} {_LAYERS_PLAIN}", _LAYER),
    *methods("keras.layers", _LAYERS_DRAWING, "__call__", Row("", draws="self", makes="array")),
    *methods("keras.layers", _LAYERS_RUNNING, "__call__",
             Row("", mutates=("self",), makes="array")),
    # The first call of a layer makes its weights.
    *methods("keras.layers", f"{_LAYERS_BORN_RANDOM} {_LAYERS_PLAIN}", "__call__",
             Row("", mutates=("self",), makes="array")),
    *each("keras.applications", _APPLICATIONS, Row("", draws="python", makes="model",
                                                   state=_WEIGHTS)),
    *each("keras", "Input layers.Input", _TENSOR),
    *each("keras.layers", "add average concatenate dot maximum minimum multiply subtract", HOLDS),
    *each("keras.Model", "fit train_on_batch",
          Row("", draws="tensorflow", mutates=("parameters", "self"), emits=True)),
    # Metrics are counted in the model.
    *each("keras.Model", "evaluate test_on_batch", Row("", mutates=("self",), emits=True)),
    *each("keras.Model", "predict", Row("", emits=True, makes="array")),
    *each("keras.Model", "predict_on_batch", _TENSOR),
    *each("keras.Model", "train_step",
          Row("", draws="tensorflow", mutates=("parameters", "self"))),
    *each("keras.Model", "compile add_loss add_metric add_weight",
          Row("", mutates=("self",), wraps=True)),
    *each("keras.Model",
          "build load_weights reset_metrics set_weights set_state_tree test_step", _SELF),
    *each("keras.Model", "export save save_weights summary", _EMITS),
    *each("keras.Model", "get_layer", HOLDS),
    *each("keras.Model", "count_params get_config get_metrics_result get_state_tree get_weights "
          "compute_loss to_json predict_step stateless_call"),
    *each("keras.models", "load_model clone_model",
          Row("", draws="python", makes="model", state=_WEIGHTS)),
    *each("keras.models", "save_model", _EMITS),
    *each("keras.initializers",
          "GlorotNormal GlorotUniform HeNormal HeUniform LecunNormal LecunUniform Orthogonal "
          "RandomNormal RandomUniform TruncatedNormal VarianceScaling",
          Row("", draws="python", by="seed")),
    *methods("keras.initializers",
             "GlorotNormal GlorotUniform HeNormal HeUniform LecunNormal LecunUniform Orthogonal "
             "RandomNormal RandomUniform TruncatedNormal VarianceScaling", "__call__", _KEYED),
    *each("keras.initializers", "Constant Identity Ones Zeros get"),
    *each("keras.utils", "plot_model", _EMITS),
    Row("keras.utils.Progbar", emits=True, makes="writer"),
    *each("keras.backend", "clear_session epsilon floatx set_floatx image_data_format"),
)  # fmt: skip

_OPTIMIZERS = """
Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion LossScaleOptimizer Muon Nadam Optimizer
RMSprop SGD
"""

_TRAINING = (
    *each("keras.optimizers", _OPTIMIZERS,
          Row("", makes="optimizer", wraps=True,
              state=("save_own_variables", "load_own_variables"))),
    # The variables come with the gradients, or were given to build.
    *each("keras.optimizers.Optimizer", "apply apply_gradients",
          Row("", mutates=("0", "1", "parameters", "self"))),
    *each("keras.optimizers.Optimizer",
          "assign assign_add assign_sub update_step finalize_variable_values",
          Row("", mutates=("0", "parameters", "self"))),
    *each("keras.optimizers.Optimizer",
          "build exclude_from_weight_decay load_own_variables set_weights",
          Row("", mutates=("self",), wraps=True)),
    *each("keras.optimizers.Optimizer", "get_config scale_loss stateless_apply"),
    Row("keras.optimizers.Optimizer.save_own_variables", mutates=("0",)),
    # Functions of the step, without state.
    *each("keras.optimizers.schedules",
          "CosineDecay CosineDecayRestarts ExponentialDecay InverseTimeDecay LearningRateSchedule "
          "PiecewiseConstantDecay PolynomialDecay"),
    *each("keras.losses",
          "BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalHinge "
          "CosineSimilarity Dice Hinge Huber KLDivergence LogCosh Loss MeanAbsoluteError "
          "MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson "
          "SparseCategoricalCrossentropy SquaredHinge Tversky"),
    Row("keras.losses.Loss.__call__", makes="array"),
    *each("keras.losses",
          "binary_crossentropy categorical_crossentropy hinge huber kl_divergence "
          "mean_absolute_error mean_squared_error poisson sparse_categorical_crossentropy",
          _TENSOR),
    *each("keras.metrics",
          "AUC Accuracy BinaryAccuracy BinaryCrossentropy CategoricalAccuracy "
          "CategoricalCrossentropy F1Score IoU Mean MeanAbsoluteError MeanIoU MeanSquaredError "
          "Metric Precision R2Score Recall RootMeanSquaredError SparseCategoricalAccuracy "
          "SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy Sum TopKCategoricalAccuracy",
          Row("", makes="handle")),
    *each("keras.metrics.Metric", "reset_state update_state __call__", _SELF),
    Row("keras.metrics.Metric.result", makes="array"),
    *each("keras.callbacks",
          "BackupAndRestore CSVLogger Callback CallbackList EarlyStopping History LambdaCallback "
          "LearningRateScheduler ModelCheckpoint ProgbarLogger ReduceLROnPlateau RemoteMonitor "
          "SwapEMAWeights TensorBoard TerminateOnNaN", Row("", makes="handle", wraps=True)),
    Row("tensorflow.GradientTape", makes="handle"),
    *each("tensorflow.GradientTape", "batch_jacobian gradient jacobian",
          Row("", mutates=("self",), makes="array")),
    *each("tensorflow.GradientTape", "reset watch", _SELF),
    *each("tensorflow.GradientTape", "stop_recording watched_variables", HOLDS),
    Row("tensorflow.gradients", makes="array"),
    Row("tensorflow.Variable", makes="array"),
    *each("tensorflow.Variable",
          "assign assign_add assign_sub batch_scatter_update scatter_add scatter_div scatter_max "
          "scatter_min scatter_mul scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub "
          "scatter_update", _SELF),
    *each("tensorflow.Variable", "read_value value", _TENSOR),
    Row("keras.Variable", makes="array"),
    *each("keras.Variable", "assign assign_add assign_sub", _SELF),
    Row("keras.Variable.numpy", makes="array", wraps=True),
    Row("tensorflow.Module", makes="model"),
    Row("tensorflow.train.ExponentialMovingAverage", makes="average"),
    Row("tensorflow.train.ExponentialMovingAverage.apply", mutates=("self",)),
    Row("tensorflow.function", wraps=True),
    *each("tensorflow", "custom_gradient recompute_grad", HOLDS),
    *each("tensorflow", "numpy_function py_function", HOLDS),
    *each("tensorflow", "cond map_fn scan vectorized_map while_loop", HOLDS),
)  # fmt: skip

_EFFECTS = (
    *each("tensorflow.train", "Checkpoint CheckpointManager", Row("", makes="handle", wraps=True)),
    *each("tensorflow.train.Checkpoint", "save write", Row("", emits=True, mutates=("self",))),
    *each("tensorflow.train.Checkpoint", "read restore", _SELF),
    *each("tensorflow.train.CheckpointManager", "save", Row("", emits=True, mutates=("self",))),
    Row("tensorflow.train.CheckpointManager.restore_or_initialize", mutates=("self",),
        observes="directory"),
    Row("tensorflow.train.latest_checkpoint", observes="directory"),
    *each("tensorflow.train", "list_variables load_checkpoint load_variable"),
    *each("tensorflow.summary",
          "audio flush graph histogram image scalar text trace_export trace_off trace_on write",
          _EMITS),
    Row("tensorflow.summary.create_file_writer", emits=True, makes="writer"),
    Row("tensorflow.summary.create_noop_writer", makes="writer"),
    *each("tensorflow.summary.SummaryWriter", "close flush", _EMITS),
    Row("tensorflow.summary.SummaryWriter.as_default", makes="handle"),
    Row("tensorflow.saved_model.save", emits=True),
    Row("tensorflow.saved_model.load", makes="model"),
    Row("tensorflow.print", emits=True),
    Row("tensorflow.timestamp", observes="clock"),
    *each("tensorflow.io", "write_file write_graph", _EMITS),
    Row("tensorflow.io.TFRecordWriter", emits=True, makes="writer"),
    *each("tensorflow.io.TFRecordWriter", "close flush write", _EMITS),
    Row("tensorflow.io.gfile.GFile", emits=True, makes="handle"),
    *each("tensorflow.io.gfile", "exists glob isdir listdir stat walk",
          Row("", observes="directory")),
    *each("tensorflow.io.gfile", "copy makedirs mkdir remove rename rmtree", _EMITS),
    Row("tensorflow.io.gfile.join"),
    *each("tensorflow.io",
          "decode_csv decode_gif decode_image decode_jpeg decode_png decode_raw encode_jpeg "
          "encode_png parse_example parse_sequence_example parse_single_example parse_tensor "
          "read_file serialize_tensor", _TENSOR),
    *each("tensorflow.config", "list_logical_devices list_physical_devices get_visible_devices",
          Row("", observes="host")),
    *each("tensorflow.config",
          "set_visible_devices set_soft_device_placement experimental.set_memory_growth "
          "run_functions_eagerly threading.set_inter_op_parallelism_threads "
          "threading.set_intra_op_parallelism_threads"),
    *each("tensorflow.distribute",
          "MirroredStrategy MultiWorkerMirroredStrategy OneDeviceStrategy ParameterServerStrategy "
          "TPUStrategy", Row("", makes="handle", observes="host")),
    *each("tensorflow.distribute", "get_strategy has_strategy"),
    Row("tensorflow.distribute.Strategy.run", parallel="map", wraps=True),
    Row("tensorflow.distribute.Strategy.reduce", makes="array"),
    Row("tensorflow.distribute.Strategy.scope", makes="handle"),
    *each("tensorflow.distribute.Strategy",
          "distribute_datasets_from_function experimental_distribute_dataset", _DATASET),
    *each("tensorflow", "device name_scope control_dependencies", Row("", makes="handle")),
)  # fmt: skip

_TENSORS = (
    *each("tensorflow",
          "abs add add_n argmax argmin argsort boolean_mask broadcast_to cast clip_by_global_norm "
          "clip_by_norm clip_by_value concat constant convert_to_tensor cos cumsum divide "
          "einsum equal exp expand_dims eye fill floor gather_nd greater greater_equal identity "
          "less less_equal linspace logical_and logical_not logical_or matmul maximum meshgrid "
          "minimum multiply negative norm not_equal one_hot ones ones_like pad pow range rank "
          "reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod "
          "reduce_sum repeat reshape reverse roll round searchsorted sequence_mask shape sigmoid "
          "sign sin size slice sort split sqrt square squeeze stack stop_gradient subtract tanh "
          "tensordot tile transpose truediv unique unstack where zeros zeros_like", _TENSOR),
    *each("tensorflow", "executing_eagerly is_tensor get_static_value"),
    *each("tensorflow.math",
          "abs add argmax argmin ceil cos cumsum divide equal exp floor greater is_finite is_inf "
          "is_nan less log log1p log_sigmoid maximum minimum mod multiply pow reduce_max "
          "reduce_mean reduce_min reduce_std reduce_sum reduce_variance round rsqrt sigmoid sign "
          "sin softplus sqrt square subtract tanh top_k", _TENSOR),
    *each("tensorflow.nn",
          "avg_pool avg_pool2d conv1d conv2d conv3d ctc_loss depthwise_conv2d elu "
          "embedding_lookup gelu l2_loss l2_normalize leaky_relu log_softmax max_pool max_pool2d "
          "moments relu relu6 selu sigmoid sigmoid_cross_entropy_with_logits silu softmax "
          "softmax_cross_entropy_with_logits softplus sparse_softmax_cross_entropy_with_logits "
          "swish tanh top_k", _TENSOR),
    *each("tensorflow.linalg", "cholesky det diag eigh einsum inv matmul matvec norm qr solve svd "
          "trace", _TENSOR),
    *each("tensorflow.image",
          "adjust_brightness adjust_contrast adjust_hue adjust_saturation central_crop "
          "convert_image_dtype crop_to_bounding_box decode_image decode_jpeg decode_png "
          "flip_left_right flip_up_down grayscale_to_rgb pad_to_bounding_box "
          "per_image_standardization resize resize_with_crop_or_pad resize_with_pad "
          "rgb_to_grayscale rot90 transpose", _TENSOR),
    *each("tensorflow",
          "gather math.bincount math.segment_sum math.unsorted_segment_mean "
          "math.unsorted_segment_sum nn.bias_add image.crop_and_resize tensor_scatter_nd_add "
          "tensor_scatter_nd_update scatter_nd",
          Row("", makes="array",
              varies="unless op determinism is enabled, GPUs add up in any order")),
)  # fmt: skip

ROWS: tuple[Row, ...] = (*_RANDOM, *_DATA, *_MODELS, *_TRAINING, *_EFFECTS, *_TENSORS)
