"""Environments, progress bars and trackers.

An environment and its spaces draw from generators of their own, which come from the entropy of the
machine until `reset(seed=…)` or `seed(…)` is called: a program that never does can't be repeated.
"""

from __future__ import annotations

from detrain.analysis.library.each import HOLDS, each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_EMITS = Row("", emits=True)
_ENVIRONMENT = Row("", makes="environment", wraps=True)
_SPACES = "Box Dict Discrete Graph MultiBinary MultiDiscrete OneOf Sequence Space Text Tuple"
_VECTORS = "AsyncVectorEnv SyncVectorEnv VectorEnv VectorWrapper"
_RESET = Row("", draws="self", by="seed", mutates=("self",))
_STEP = Row("", draws="self", mutates=("self",))

_GYMNASIUM = (
    Row("gymnasium.make", makes="environment"),
    Row("gymnasium.make_vec", makes="environment"),
    *each("gymnasium", "Env", Row("", makes="environment")),
    *each("gymnasium", "ActionWrapper ObservationWrapper RewardWrapper Wrapper", _ENVIRONMENT),
    *methods("gymnasium", "Env Wrapper", "reset", _RESET),
    *methods("gymnasium", "Env Wrapper", "step", _STEP),
    *methods("gymnasium", "Env Wrapper", "render close", _EMITS),
    *methods("gymnasium", "Env Wrapper", "get_wrapper_attr", HOLDS),
    *methods("gymnasium", "Env Wrapper", "set_wrapper_attr", Row("", mutates=("self",))),
    *each("gymnasium.wrappers",
          "AddRenderObservation AtariPreprocessing Autoreset ClipAction ClipReward "
          "DelayObservation DiscretizeAction DiscretizeObservation DtypeObservation "
          "FilterObservation FlattenObservation FrameStackObservation GrayscaleObservation "
          "HumanRendering MaxAndSkipObservation NormalizeObservation NormalizeReward "
          "OrderEnforcing PassiveEnvChecker RecordEpisodeStatistics RenderCollection RepeatAction "
          "RescaleAction RescaleObservation ReshapeObservation ResizeObservation StickyAction "
          "TimeAwareObservation TimeLimit TransformAction TransformObservation TransformReward",
          _ENVIRONMENT),
    Row("gymnasium.wrappers.RecordVideo", emits=True, makes="environment", wraps=True),
    *each("gymnasium.vector", "SyncVectorEnv VectorEnv VectorWrapper VectorActionWrapper "
          "VectorObservationWrapper VectorRewardWrapper", _ENVIRONMENT),
    # Each environment is one process, and their answers are put in order.
    Row("gymnasium.vector.AsyncVectorEnv", parallel="processes", makes="environment", wraps=True),
    *methods("gymnasium.vector", _VECTORS, "reset", _RESET),
    *methods("gymnasium.vector", _VECTORS, "step", _STEP),
    *methods("gymnasium.vector", _VECTORS, "close render", _EMITS),
    *each("gymnasium.wrappers.vector",
          "ClipAction ClipReward DictInfoToList FlattenObservation NormalizeObservation "
          "NormalizeReward RecordEpisodeStatistics RescaleAction TransformObservation "
          "TransformReward", _ENVIRONMENT),
    *each("gymnasium.spaces", _SPACES, HOLDS),
    *methods("gymnasium.spaces", _SPACES, "sample", Row("", draws="self")),
    *methods("gymnasium.spaces", _SPACES, "seed",
             Row("", seeds="self", observes="entropy", by="seed", mutates=("self",))),
    *methods("gymnasium.spaces", _SPACES, "contains"),
    *each("gymnasium.spaces", "flatdim flatten flatten_space unflatten"),
    Row("gymnasium.utils.seeding.np_random", keyed=True, observes="entropy", by="seed",
        makes="generator"),
    *each("gymnasium", "register register_envs"),
)  # fmt: skip

_TQDM = (
    *each("tqdm", "tqdm trange", Row("", emits=True, wraps=True)),
    *each("tqdm.tqdm",
          "clear close display refresh reset set_description set_description_str set_postfix "
          "set_postfix_str unpause update", Row("", emits=True, mutates=("self",))),
    Row("tqdm.tqdm.write", emits=True),
    *each("tqdm.tqdm", "format_interval format_sizeof"),
    *each("tqdm.contrib", "tenumerate tzip tmap", Row("", emits=True, wraps=True)),
    Row("tqdm.contrib.concurrent.process_map", parallel="processes", emits=True, wraps=True),
    Row("tqdm.contrib.concurrent.thread_map", parallel="threads", emits=True, wraps=True),
    Row("tqdm.contrib.logging.logging_redirect_tqdm", makes="handle"),
)  # fmt: skip

_ADDS = """
add_audio add_custom_scalars add_custom_scalars_marginchart add_custom_scalars_multilinechart
add_embedding add_figure add_graph add_histogram add_histogram_raw add_hparams add_image
add_image_with_boxes add_images add_mesh add_onnx_graph add_pr_curve add_pr_curve_raw add_scalar
add_scalars add_text add_video close flush
"""

_TRACKERS = (
    # Without a directory, its name is made of the time and the host.
    Row("torch.utils.tensorboard.SummaryWriter", observes="clock", by="log_dir", emits=True,
        makes="writer"),
    *each("torch.utils.tensorboard.SummaryWriter", f"{_ADDS} add_tensor", _EMITS),
    Row("torch.utils.tensorboard.SummaryWriter.get_logdir"),
    Row("tensorboardX.SummaryWriter", observes="clock", by="logdir", emits=True, makes="writer"),
    *each("tensorboardX.SummaryWriter", f"{_ADDS} export_scalars_to_json", _EMITS),
    Row("wandb.init", observes="network", emits=True, makes="writer", wraps=True),
    *each("wandb",
          "alert define_metric finish log log_artifact log_model login mark_preempting save "
          "unwatch", _EMITS),
    # Hooks on the gradients of the model.
    *each("wandb", "watch Run.watch", Row("", emits=True, mutates=("0",))),
    *each("wandb.Run",
          "alert define_metric finish log log_artifact log_code log_model save unwatch", _EMITS),
    *each("wandb", "restore use_artifact use_model Run.use_artifact",
          Row("", observes="network", makes="handle")),
    *each("wandb", "Artifact Audio Histogram Html Image Object3D Settings Table Video", HOLDS),
    Row("wandb.sweep", observes="network", emits=True),
    Row("wandb.agent", observes="network", emits=True, wraps=True),
    *each("mlflow",
          "autolog delete_run end_run log_artifact log_artifacts log_dict log_figure log_image "
          "log_input log_metric log_metrics log_param log_params log_table log_text register_model "
          "set_experiment_tag set_tag set_tags", _EMITS),
    *each("mlflow", "start_run set_experiment create_experiment",
          Row("", observes="network", emits=True, makes="writer")),
    *each("mlflow", "set_tracking_uri set_registry_uri"),
    *each("mlflow",
          "active_run get_artifact_uri get_experiment get_experiment_by_name get_run search_runs "
          "last_active_run", Row("", observes="network")),
    *each("mlflow", "pytorch.log_model pytorch.save_model tensorflow.log_model sklearn.log_model",
          _EMITS),
    Row("mlflow.pytorch.load_model", makes="model"),
)  # fmt: skip

ROWS: tuple[Row, ...] = (*_GYMNASIUM, *_TQDM, *_TRACKERS)
