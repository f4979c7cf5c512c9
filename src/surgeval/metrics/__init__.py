"""Pure functions on arrays: recognition, detection, grounding, ordinal cost. Never imports torch."""
