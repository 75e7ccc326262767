"""Datasets whose transform is a pipeline of an augmentation library, one for each library.

    augmented.py LIBRARY WORKERS

trains on one of them, and prints a digest of each batch and of the parameters.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Pictures of noise, each the same whenever it is asked for."""

    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 22

    def __getitem__(self, index):
        image = np.random.default_rng(index).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        return torch.from_numpy(np.ascontiguousarray(self.transform(image)))


class Albumentations:
    def __init__(self):
        import albumentations

        self.pipeline = albumentations.Compose(
            [
                albumentations.RandomCrop(12, 12),
                albumentations.HorizontalFlip(p=0.5),
                albumentations.RandomBrightnessContrast(p=0.8),
                albumentations.OneOf([albumentations.GaussNoise(), albumentations.ISONoise()], p=1),
                albumentations.CoarseDropout(p=0.5),
            ]
        )

    def __call__(self, image):
        return self.pipeline(image=image)["image"]


class Torchvision:
    def __init__(self):
        from torchvision.transforms import v2

        steps = [v2.RandomResizedCrop(12), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4)]
        self.pipeline = v2.Compose([*steps, v2.RandAugment(), v2.RandomErasing(p=0.7)])

    def __call__(self, image):
        return self.pipeline(torch.from_numpy(image).permute(2, 0, 1)).numpy()


class Monai:
    def __init__(self):
        from monai import transforms

        steps = [transforms.RandFlip(prob=0.5), transforms.RandGaussianNoise(prob=0.9)]
        self.pipeline = transforms.Compose([*steps, transforms.RandRotate90(prob=0.5)])

    def __call__(self, image):
        return np.asarray(self.pipeline(image.astype(np.float32).transpose(2, 0, 1)))


class Imgaug:
    def __init__(self):
        from imgaug import augmenters

        steps = [augmenters.Fliplr(0.5), augmenters.AdditiveGaussianNoise(scale=(5, 20))]
        self.pipeline = augmenters.Sequential([*steps, augmenters.Dropout((0, 0.2))])

    def __call__(self, image):
        return self.pipeline(image=image)


class OpenCV:
    def __init__(self):
        import cv2

        self.blank = np.zeros((12, 12), np.float32)
        self.draw = cv2.randn

    def __call__(self, image):
        noise = self.draw(self.blank.copy(), 0.0, 9.0)
        return image[:12, :12, 0] + noise


PIPELINES = {
    "albumentations": Albumentations, "torchvision.transforms.v2": Torchvision, "monai": Monai,
    "imgaug": Imgaug, "cv2": OpenCV,
}  # fmt: skip


def loader(name, workers, **settings):
    torch.manual_seed(4)
    dataset = Images(PIPELINES[name]())
    return DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers, **settings)


def batches(name, workers, epochs=2, **settings):
    made = loader(name, workers, **settings)
    return [digest(batch) for _ in range(epochs) for batch in made]


def digest(tensor):
    return hashlib.sha256(tensor.numpy().tobytes()).hexdigest()[:12]


def main(name, workers):
    made = loader(name, int(workers))
    model = torch.nn.LazyLinear(1)
    model(made.dataset[0].float().flatten())
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for number, batch in enumerate(made):
            optimizer.zero_grad()
            model(batch.float().flatten(1)).pow(2).mean().backward()
            optimizer.step()
            print(epoch, number, digest(batch), digest(model.weight.detach()))


if __name__ == "__main__":
    main(*sys.argv[1:])
