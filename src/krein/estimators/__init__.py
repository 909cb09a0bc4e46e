"""Thin scikit-learn façades over `krein.core`."""
