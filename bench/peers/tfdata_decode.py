"""tf.data: decode_and_crop_jpeg of a distorted bounding box, resize with antialiasing, flip."""

from __future__ import annotations

import os

import measure

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def build(asked):
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(asked.threads)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    paths = measure.paths(asked.files)

    def load(path):
        encoded = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(encoded),
            bounding_boxes=tf.zeros([1, 0, 4]),
            area_range=(0.08, 1.0),
            aspect_ratio_range=(3 / 4, 4 / 3),
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        top, left, _ = tf.unstack(begin)
        height, width, _ = tf.unstack(size)
        image = tf.image.decode_and_crop_jpeg(encoded, tf.stack([top, left, height, width]), channels=3)
        image = tf.image.resize(image, (asked.size, asked.size), antialias=True)
        return tf.cast(tf.image.random_flip_left_right(image), tf.uint8)

    options = tf.data.Options()
    options.threading.private_threadpool_size = asked.threads
    options.deterministic = False
    data = (
        tf.data.Dataset.from_tensor_slices(paths)
        .shuffle(len(paths))
        .map(load, num_parallel_calls=asked.threads)
        .batch(asked.batch)
        .prefetch(1)
        .with_options(options)
    )
    return lambda: (len(batch) for batch in data)


measure.main("tf.data", build)
