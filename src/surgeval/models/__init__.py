"""Model loaders with their preprocessing geometry; embedded weights are this package's data."""
