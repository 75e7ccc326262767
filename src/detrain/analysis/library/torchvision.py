"""torchvision. A random transform draws when it is called, from torch's generator.

The first generation's `RandomChoice` and `RandomOrder` are the exception: they draw from Python's.
"""

from __future__ import annotations

from detrain.analysis.library.each import HOLDS, PURE, each, methods
from detrain.analysis.library.row import Row

__all__ = ["ROWS"]

_DRAWS = Row("", draws="torch")
_TENSOR = Row("", makes="array")
_STATE = ("state_dict", "load_state_dict")

_RANDOM = """
AugMix AutoAugment ColorJitter ElasticTransform GaussianBlur RandAugment RandomAdjustSharpness
RandomAffine RandomAutocontrast RandomCrop RandomEqualize RandomErasing RandomGrayscale
RandomHorizontalFlip RandomInvert RandomPerspective RandomPosterize RandomResizedCrop RandomRotation
RandomSolarize RandomVerticalFlip TrivialAugmentWide
"""
_RANDOM_V2 = """
CutMix GaussianNoise JPEG MixUp RandomChannelPermutation RandomIoUCrop RandomPhotometricDistort
RandomResize RandomShortestSize RandomZoomOut ScaleJitter
"""
_FIXED = """
CenterCrop ConvertImageDtype FiveCrop Grayscale LinearTransformation Normalize PILToTensor Pad
Resize TenCrop ToPILImage ToTensor
"""
_FIXED_V2 = """
ClampBoundingBoxes ConvertBoundingBoxFormat Identity RGB SanitizeBoundingBoxes ToDtype ToImage
ToPureTensor UniformTemporalSubsample
"""
_FUNCTIONAL = """
adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation adjust_sharpness affine
autocontrast center_crop convert_image_dtype crop elastic_transform equalize erase five_crop
gaussian_blur get_dimensions get_image_size hflip invert normalize pad perspective pil_to_tensor
posterize resize resized_crop rgb_to_grayscale rotate solarize ten_crop to_grayscale to_pil_image
to_tensor vflip
"""
_V1 = "torchvision.transforms"
_V2 = "torchvision.transforms.v2"

_TRANSFORMS = (
    *each(_V1, f"{_RANDOM} {_FIXED} InterpolationMode AutoAugmentPolicy", HOLDS),
    *methods(_V1, _RANDOM, "__call__", _DRAWS),
    *methods(_V1, _FIXED, "__call__", PURE),
    # They run transforms that are given: what those draw is theirs to say.
    *each(_V1, "Compose Lambda RandomApply RandomChoice RandomOrder", HOLDS),
    *each(_V1, "Compose.__call__ Lambda.__call__"),
    Row(f"{_V1}.RandomApply.__call__", draws="torch"),
    *methods(_V1, "RandomChoice RandomOrder", "__call__", Row("", draws="python")),
    *each(f"{_V1}.functional", _FUNCTIONAL),
    *each(f"{_V1}.RandomCrop", "get_params", _DRAWS),
    *each(f"{_V1}.RandomResizedCrop", "get_params", _DRAWS),
    *each(f"{_V1}.RandomAffine", "get_params", _DRAWS),
    *each(f"{_V1}.RandomRotation", "get_params", _DRAWS),
    *each(f"{_V1}.ColorJitter", "get_params", _DRAWS),
    *each(_V2, f"{_RANDOM} {_RANDOM_V2} {_FIXED} {_FIXED_V2} InterpolationMode Transform", HOLDS),
    *methods(_V2, f"{_RANDOM} {_RANDOM_V2}", "__call__", _DRAWS),
    *methods(_V2, f"{_FIXED} {_FIXED_V2}", "__call__", PURE),
    *each(_V2, "Compose Lambda RandomApply RandomChoice RandomOrder", HOLDS),
    *each(_V2, "Compose.__call__ Lambda.__call__"),
    *methods(_V2, "RandomApply RandomChoice RandomOrder", "__call__", _DRAWS),
    *each(f"{_V2}.functional", f"{_FUNCTIONAL} to_dtype to_image"),
    Row(f"{_V2}.functional.gaussian_noise", draws="torch"),
)

# Making one may download it; what comes is checked against a hash, so that it is no observation.
# Those that read a folder sort what they find.
_DATASETS = """
CIFAR10 CIFAR100 CLEVRClassification Caltech101 Caltech256 CelebA Cityscapes CocoCaptions
CocoDetection Country211 DTD DatasetFolder EMNIST EuroSAT FER2013 FGVCAircraft FashionMNIST
Flickr30k Flickr8k Flowers102 FlyingChairs Food101 GTSRB HMDB51 INaturalist ImageFolder ImageNet
Imagenette KMNIST Kinetics Kitti LFWPairs LFWPeople LSUN MNIST MovingMNIST Omniglot OxfordIIITPet
PCAM PhotoTour Places365 QMNIST RenderedSST2 SBDataset SBU SEMEION STL10 SUN397 SVHN Sintel
StanfordCars UCF101 USPS VOCDetection VOCSegmentation VisionDataset WIDERFace
"""

_MODELS = """
alexnet convnext_base convnext_large convnext_small convnext_tiny densenet121 densenet161
densenet169 densenet201 efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3
efficientnet_b4 efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_l efficientnet_v2_m
efficientnet_v2_s get_model googlenet inception_v3 maxvit_t mnasnet0_5 mnasnet0_75 mnasnet1_0
mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_16gf regnet_x_1_6gf
regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf regnet_y_128gf regnet_y_16gf
regnet_y_1_6gf regnet_y_32gf regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf resnet101
resnet152 resnet18 resnet34 resnet50 resnext101_32x8d resnext101_64x4d resnext50_32x4d
shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0
squeezenet1_1 swin_b swin_s swin_t swin_v2_b swin_v2_s swin_v2_t vgg11 vgg11_bn vgg13 vgg13_bn vgg16
vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 vit_h_14 vit_l_16 vit_l_32 wide_resnet101_2
wide_resnet50_2 detection.fasterrcnn_mobilenet_v3_large_320_fpn
detection.fasterrcnn_mobilenet_v3_large_fpn detection.fasterrcnn_resnet50_fpn
detection.fasterrcnn_resnet50_fpn_v2 detection.fcos_resnet50_fpn detection.keypointrcnn_resnet50_fpn
detection.maskrcnn_resnet50_fpn detection.maskrcnn_resnet50_fpn_v2 detection.retinanet_resnet50_fpn
detection.retinanet_resnet50_fpn_v2 detection.ssd300_vgg16 detection.ssdlite320_mobilenet_v3_large
optical_flow.raft_large optical_flow.raft_small segmentation.deeplabv3_mobilenet_v3_large
segmentation.deeplabv3_resnet101 segmentation.deeplabv3_resnet50 segmentation.fcn_resnet101
segmentation.fcn_resnet50 segmentation.lraspp_mobilenet_v3_large video.mc3_18 video.mvit_v1_b
video.mvit_v2_s video.r2plus1d_18 video.r3d_18 video.s3d video.swin3d_b video.swin3d_s
video.swin3d_t
"""

ROWS: tuple[Row, ...] = (
    *_TRANSFORMS,
    *each("torchvision.datasets", _DATASETS, Row("", makes="dataset", wraps=True)),
    Row("torchvision.datasets.FakeData", keyed=True, makes="dataset", wraps=True),
    Row("torchvision.datasets.wrap_dataset_for_transforms_v2", makes="dataset", wraps=True),
    Row("torchvision.datasets.utils.download_url", emits=True),
    Row("torchvision.datasets.utils.download_and_extract_archive", emits=True),
    *each("torchvision.models", _MODELS, Row("", draws="torch", makes="model", state=_STATE)),
    *each("torchvision.models", "get_model_weights get_weight list_models"),
    Row("torchvision.models.feature_extraction.create_feature_extractor", makes="model", wraps=True,
        state=_STATE),
    Row("torchvision.utils.save_image", emits=True),
    *each("torchvision.utils",
          "draw_bounding_boxes draw_keypoints draw_segmentation_masks flow_to_image make_grid",
          _TENSOR),
    *each("torchvision.io", "write_file write_jpeg write_png", Row("", emits=True)),
    *each("torchvision.io",
          "decode_image decode_jpeg decode_png encode_jpeg encode_png read_file read_image",
          _TENSOR),
    *each("torchvision.ops",
          "batched_nms box_area box_convert box_iou clip_boxes_to_image complete_box_iou "
          "distance_box_iou generalized_box_iou masks_to_boxes nms remove_small_boxes "
          "sigmoid_focal_loss", _TENSOR),
    *each("torchvision.ops", "deform_conv2d ps_roi_align ps_roi_pool roi_align roi_pool",
          Row("", makes="array", varies="CUDA adds up the gradient in any order")),
    *each("torchvision.ops", "drop_block2d drop_block3d stochastic_depth",
          Row("", draws="torch", makes="array")),
    *each("torchvision.ops", "DropBlock2d DropBlock3d FrozenBatchNorm2d MultiScaleRoIAlign "
          "StochasticDepth", Row("", makes="model", state=_STATE)),
    *methods("torchvision.ops", "DropBlock2d DropBlock3d StochasticDepth", "__call__",
             Row("", draws="torch", makes="array")),
    *each("torchvision.ops", "Conv2dNormActivation Conv3dNormActivation DeformConv2d "
          "FeaturePyramidNetwork MLP SqueezeExcitation",
          Row("", draws="torch", makes="model", state=_STATE)),
)  # fmt: skip
