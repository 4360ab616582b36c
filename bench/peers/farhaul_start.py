"""How long a user waits for the first batch after `open`: one line of JSON. Importing is not counted."""

from __future__ import annotations

import json
import sys
import time

import farhaul

started = time.perf_counter()
loader = farhaul.open(sys.argv[1]).loader(batch_size=256, image_size=224, augment="random_resized_crop", seed=7)
opened = time.perf_counter()
images, _ = next(iter(loader))
print(json.dumps({"open_s": opened - started, "first_batch_s": time.perf_counter() - started, "samples": len(images)}))
