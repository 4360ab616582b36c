"""farhaul itself, through the interface that a user has. `--raw` takes the bytes as they are."""

from __future__ import annotations

import sys

import measure

RAW = "--raw" in sys.argv
if RAW:
    sys.argv.remove("--raw")


def build(asked):
    import farhaul

    options = {"memory": asked.memory} if asked.memory else {}
    if RAW:
        options["decode"] = False
    else:
        options |= {"image_size": asked.size, "augment": "random_resized_crop"}
    data = farhaul.open(asked.files)
    loader = data.loader(batch_size=asked.batch, seed=7, **options)
    return lambda: (len(images) for images, _ in loader)


measure.main("farhaul, raw" if RAW else "farhaul", build)
