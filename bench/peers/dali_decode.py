"""NVIDIA DALI on the CPU: fused decoding of a random crop, resize with antialiasing, flip."""

from __future__ import annotations

import measure


def build(asked):
    from nvidia.dali import fn, pipeline_def, types

    paths = measure.paths(asked.files)

    @pipeline_def(batch_size=asked.batch, num_threads=asked.threads, device_id=None, prefetch_queue_depth=2)
    def pipeline():
        encoded, label = fn.readers.file(
            files=paths, random_shuffle=True, initial_fill=4096, name="reader", pad_last_batch=False
        )
        images = fn.decoders.image_random_crop(
            encoded, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        images = fn.resize(
            images,
            device="cpu",
            resize_x=asked.size,
            resize_y=asked.size,
            interp_type=types.INTERP_LINEAR,
            antialias=True,
        )
        return fn.flip(images, horizontal=fn.random.coin_flip()), label

    pipe = pipeline()
    pipe.build()

    def epoch():
        # The reader goes on into the next epoch within a batch; what is over is not counted.
        left = len(paths)
        while left > 0:
            pipe.run()
            yield min(asked.batch, left)
            left -= asked.batch

    return epoch


measure.main("DALI (CPU)", build)
