"""A data set as slow as a test wants it."""

import os
import pickle

import farhaul


def slowed(data, seconds):
    """The same data set, every sample of which comes so late; in this process alone."""
    slow = pickle.loads(pickle.dumps(data))
    slow._native = farhaul._farhaul._slow(data._open(), seconds)
    slow._process = os.getpid()
    return slow
