"""farhaul feeds training loops with samples that live far away, as fast as from a local disk.

```python
import farhaul

data = farhaul.open("embedded:/data/flowers")
loader = data.loader(batch_size=256, image_size=224, augment="random_resized_crop", seed=7)
for images, labels in loader:  # uint8, samples × 3 × 224 × 224, without a copy
    ...
state = loader.state_dict()
```
"""

from . import errors
from ._farhaul import __version__
from .batch import Batch
from .dataset import Dataset, Sample, open
from .errors import FarhaulError
from .loader import Epoch, Failure, Loader, State, Stats, merge_states
from .writing import Report, ingest

__all__ = [
    "Batch",
    "Dataset",
    "Epoch",
    "Failure",
    "FarhaulError",
    "Loader",
    "Report",
    "Sample",
    "State",
    "Stats",
    "__version__",
    "errors",
    "ingest",
    "merge_states",
    "open",
]
