"""`krein landmarks`: choose the objects that represent all others."""

from __future__ import annotations

from typing import Any

import click

from ..io import Chunk, DataError
from . import options
from .fit import fit_objects, make_estimator
from .group import command as krein_command
from .output import RowWriter, check_target, format_option, row_format, writing
from .reading import Comparison, check_rule, choose_measure, labelled, open_data

_row_format = row_format


@krein_command("landmarks")
@click.argument("data", type=click.Path(allow_dash=True))
@options.labelling
@options.measuring
@options.choosing
@click.option(
    "-o", "--output", type=click.Path(), help="File to write the rows to; default: standard output."
)
@format_option
@options.reading
@options.running
def command(
    data: str,
    labels: str | None,
    label_pattern: str | None,
    measure: str | None,
    measure_params: tuple[str, ...],
    distance: bool,
    symmetrize: bool,
    landmarks: str | None,
    n_landmarks: int | None,
    output: str | None,
    row_format: str | None,
    seed: int,
    jobs: int | None,
    cache: str | None,
    **reading: Any,
) -> None:
    """Choose landmarks among the objects of DATA, and list the index, name and class of each.

    Use them for your own classifier: compare every object only with these. The index counts objects
    from 0. Without labels, all objects form one class (auto needs labels).

    \b
      krein landmarks families.fasta --label-pattern 'family=(\\S+)' > landmarks.csv
      krein landmarks words.csv --objects word --landmarks random --n-landmarks 20
    """
    check_target(output, reads=(data, labels))
    check_rule(landmarks, n_landmarks)
    source = open_data(
        data, labels=labels, label_pattern=label_pattern, measure=measure, distance=distance,
        **reading,
    )  # fmt: skip
    chunk = source.read()
    landmarks = landmarks or "meb"
    if landmarks == "auto":
        labelled(chunk, source)
    comparison = choose_measure(source.kind, chunk.objects, measure, measure_params, distance)
    running = {"n_jobs": jobs, "cache": cache, "verbose": 1, "symmetrize": symmetrize}
    chosen = choose(chunk, comparison, landmarks, n_landmarks, seed, running)
    how = _row_format(output, row_format)
    with writing(output) as file:
        classes = chunk.labels
        RowWriter(file, ["index", "name", "class"], how).write(
            [i, chunk.names[i], None if classes is None else classes[i]] for i in chosen
        )


def choose(
    chunk: Chunk,
    comparison: Comparison,
    landmarks: str,
    n_landmarks: int | None,
    seed: int,
    running: dict[str, Any],
) -> list[int]:
    """Return the indices of the landmarks, ascending."""
    import numpy as np

    from ..compare import open_pairs
    from ..landmarks import get_rule, select_landmarks

    if landmarks == "auto":  # a model takes part in the choice
        assert chunk.labels is not None
        estimator = make_estimator(
            "ikfd", comparison, landmarks="auto", random_state=seed, **running
        )
        fit_objects(estimator, chunk, chunk.labels)
        return [int(i) for i in estimator.landmarks_]
    codes = None
    if chunk.labels is not None:
        codes = np.unique(chunk.labels, return_inverse=True)[1]
    try:
        pairs = open_pairs(
            comparison.measure, chunk.objects, measure_params=comparison.params or None, **running
        )
        rule = get_rule(landmarks, n_landmarks)
        selection = select_landmarks(rule, pairs, codes, np.random.default_rng(seed))
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise chunk.located(error) from error
    return [int(i) for i in selection.indices]
