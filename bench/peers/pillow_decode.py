"""The loader of most tutorials: Pillow and torchvision's transforms in DataLoader workers."""

from __future__ import annotations

import measure


def build(asked):
    import torch
    import torch.utils.data
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    # Pillow's own resize always averages over what it shrinks, so this crop is antialiased too.
    transform = v2.Compose([v2.RandomResizedCrop(asked.size), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    workers = asked.threads if asked.threads > 1 else 0
    loader = torch.utils.data.DataLoader(
        ImageFolder(asked.files, transform=transform),
        batch_size=asked.batch,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0 and asked.epochs > 1,
    )
    return lambda: (len(labels) for _, labels in loader)


measure.main("Pillow + torchvision", build)
