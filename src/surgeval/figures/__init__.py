"""Arrays to figures; plotting libraries are imported inside the functions that need them."""
