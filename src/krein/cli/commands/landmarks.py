"""`krein landmarks`: choose the objects that represent all others."""

from __future__ import annotations

from typing import Any

from .. import options
from ..group import krein_command
from ..measure import check_rule, choose_measure
from ..output import RowWriter, check_target, choose_row_format, writing
from ..reading import locating, open_input, require_labels
from .fit import make_estimator


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
    escape_formulas: bool,
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
    import numpy as np

    from ...compare import open_pairs
    from ...landmarks import get_rule, select_landmarks

    check_target(output, reads=(data.data, data.labels))
    check_rule(landmarks, n_landmarks)
    source = open_input(data)
    chunk = source.read()
    measure = choose_measure(source.kind, chunk.objects, data)
    params = measure.params or None
    running |= {"symmetrize": data.symmetrize, "verbose": 1}
    with locating(chunk):
        if landmarks == "auto":  # a model takes part in the choice
            estimator = make_estimator(
                "ikfd", measure, landmarks="auto", random_state=random_state, **running
            )
            chosen = estimator.fit(chunk.objects, require_labels(chunk, source)).landmarks_
        else:
            classes = chunk.labels
            codes = None if classes is None else np.unique(classes, return_inverse=True)[1]
            pairs = open_pairs(measure.given, chunk.objects, measure_params=params, **running)
            rule = get_rule(landmarks or "meb", n_landmarks)
            chosen = select_landmarks(
                rule, pairs, codes, np.random.default_rng(random_state)
            ).indices
    with writing(output) as file:
        chosen_format = choose_row_format(output, row_format)
        columns = ["index", "name", "class"]
        writer = RowWriter(file, columns, chosen_format, escape_formulas=escape_formulas)
        labels = chunk.labels
        writer.write(
            {"index": i, "name": chunk.names[i], "class": None if labels is None else labels[i]}
            for i in chosen.tolist()
        )
