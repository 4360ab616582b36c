"""PyTorch's DataLoader over an image folder: the bytes of each file, shuffled, untouched."""

from __future__ import annotations

from pathlib import Path

import measure


def build(asked):
    import torch.utils.data

    class Files(torch.utils.data.Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            return Path(self.paths[index]).read_bytes()

    # One core serves itself faster than it serves a worker.
    workers = asked.threads if asked.threads > 1 else 0
    loader = torch.utils.data.DataLoader(
        Files(measure.paths(asked.files)),
        batch_size=asked.batch,
        shuffle=True,
        num_workers=workers,
        collate_fn=list,
        persistent_workers=workers > 0 and asked.epochs > 1,
    )
    return lambda: map(len, loader)


measure.main("torch DataLoader, raw", build)
