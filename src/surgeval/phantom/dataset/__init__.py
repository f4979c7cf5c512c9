"""From operations to a dataset on disk: editions, truth files, films, and detectors simulated on them."""
