"""torchvision: decode_jpeg into tensors, RandomResizedCrop with antialiasing, in DataLoader workers."""

from __future__ import annotations

import measure


def build(asked):
    import torch
    import torch.utils.data
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose([v2.RandomResizedCrop(asked.size, antialias=True), v2.RandomHorizontalFlip()])

    class Images(torch.utils.data.Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            return transform(decode_jpeg(read_file(self.paths[index]), mode=ImageReadMode.RGB))

    workers = asked.threads if asked.threads > 1 else 0
    loader = torch.utils.data.DataLoader(
        Images(measure.paths(asked.files)),
        batch_size=asked.batch,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0 and asked.epochs > 1,
    )
    return lambda: map(len, loader)


measure.main("torchvision decode_jpeg", build)
