"""From joined predictions to numbers: groups of videos, detection, recognition, intervals, mixtures of two models."""
