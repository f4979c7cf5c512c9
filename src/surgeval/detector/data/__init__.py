"""What a detector learns from: labelled frames of any dataset, augmented, sampled and put into batches.

`TrainingSet.of(open_dataset(path), classes, image_size=640)` reads labels and images once and counts what it left out;
`batches` turns an `epoch_order` into tensors. Names load on first use: they need torch.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
