"""Drop-in classes for users of other packages, thin shells over `surgeval.metrics`."""
