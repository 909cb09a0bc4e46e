"""`krein landmarks`: choose the objects that represent all others."""

from __future__ import annotations

from typing import Any

from ..io import Chunk, DataError
from . import options
from .fit import fit_objects, make_estimator
from .group import krein_command
from .output import RowWriter, check_target, choose_row_format, writing
from .reading import Comparison, check_rule, choose_measure, open_data, require_labels


@krein_command("landmarks")
@options.labelled_data
@options.choosing
@options.row_output
@options.running
def command(
    data: options.DataOptions,
    landmarks: str | None,
    n_landmarks: int | None,
    output: str | None,
    row_format: str | None,
    random_state: int,
    **running: Any,
) -> None:
    """Choose landmarks among the objects of DATA, and list the index, name and class of each.

    Use them for your own classifier: compare every object only with these. The index counts objects
    from 0. Without labels, all objects form one class (auto needs labels).

    \b
      krein landmarks families.fasta --label-pattern 'family=(\\S+)' > landmarks.csv
      krein landmarks words.csv --objects word --landmarks random --n-landmarks 20
    """
    check_target(output, reads=(data.data, data.labels))
    check_rule(landmarks, n_landmarks)
    source = open_data(data)
    chunk = source.read()
    landmarks = landmarks or "meb"
    if landmarks == "auto":
        require_labels(chunk, source)
    comparison = choose_measure(source.kind, chunk.objects, data)
    running |= {"verbose": 1, "symmetrize": data.symmetrize}
    chosen = choose(chunk, comparison, landmarks, n_landmarks, random_state, running)
    with writing(output) as file:
        classes = chunk.labels
        writer = RowWriter(file, ["index", "name", "class"], choose_row_format(output, row_format))
        writer.write([i, chunk.names[i], None if classes is None else classes[i]] for i in chosen)


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
