"""The page kit: one HTML file from sections, the CSV files beside it, and the library that draws its figures.

`write_page` makes the file from `Section`s; `save_tables` writes the tables. Text is always shown literally, whatever a
data file calls its classes. Nothing here knows a protocol.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
