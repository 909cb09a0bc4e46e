"""Example data sets, as X and y in scikit-learn's style.

`make_…` functions generate simulated data; `random_state` makes them reproducible. `load_…`
functions read data from installed packages, or from the folder that the environment variable
`KREIN_DATA` names. Nothing is downloaded.
"""

from .real import (
    load_antimicrobial_peptides,
    load_covid_receptors,
    load_digits_images,
    load_mnist_images,
)
from .simulated import (
    make_balls,
    make_checkerboard,
    make_protein_families,
    make_pseudo_euclidean_gaussians,
    make_three_gaussians,
    make_two_gaussians,
)
from .stored import (
    load_aural_sonar,
    load_chromosomes,
    load_protein,
    load_sonatas,
    load_swissprot,
    load_uwave_gestures,
    load_words,
)

__all__ = [
    "load_antimicrobial_peptides",
    "load_aural_sonar",
    "load_chromosomes",
    "load_covid_receptors",
    "load_digits_images",
    "load_mnist_images",
    "load_protein",
    "load_sonatas",
    "load_swissprot",
    "load_uwave_gestures",
    "load_words",
    "make_balls",
    "make_checkerboard",
    "make_protein_families",
    "make_pseudo_euclidean_gaussians",
    "make_three_gaussians",
    "make_two_gaussians",
]
