"""What the command says about classes: how many and how large they are, and their ranks."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..core.ranks import Rank, find_separator, rank_names, rank_path, short_labels
from .messages import shortened
from .terminal import say, warn


def small_classes(counts: Counter[str], least: int | None) -> dict[str, int]:
    """Return the classes with fewer than `least` objects, with their numbers of objects."""
    return {label: n for label, n in counts.most_common() if n < (least or 0)}


def describe_small(small: Mapping[str, int], least: int | None) -> str:
    """Return a description of the small classes that are left out."""
    n = f"{sum(small.values()):,} objects in classes of fewer than {least}"
    return f"{n}: {describe_classes(small)}"


def warn_of_single(alone: Sequence[str], counts: Mapping[str, int]) -> None:
    """Warn of classes of one object."""
    if alone:
        from ..landmarks.meb import SmallClassWarning

        warnings.simplefilter("ignore", SmallClassWarning)  # said here, by name
        warn(describe_single(alone, counts))


def describe_single(alone: Sequence[str], counts: Mapping[str, int]) -> str:
    """Return what to do about classes of one object, given the numbers of objects of all classes.

    Those of a taxonomy count for the ranks above. If they are most of the objects, leaving them out
    would leave little.

    >>> describe_single(["a;x", "a;y"], {"a;x": 1, "a;y": 1, "a;z": 7})
    '2 of 3 classes have only one object, which counts for the ranks above it'
    """
    verb = "has" if len(alone) == 1 else "have"
    found = f"{len(alone):,} of {len(counts):,} classes {verb} only one object"
    if find_separator(list(counts)) is not None:
        return f"{found}, which counts for the ranks above it"
    if 2 * len(alone) > sum(counts.values()):
        return f"{found}, from which little can be learned: more objects of each would help"
    named = ", ".join(shortened(label) for label in alone[:5])
    more = f" and {len(alone) - 5:,} more" if len(alone) > 5 else ""
    return (
        f"{found}, from which little can be learned: {named}{more}; merge such classes with "
        f"others, or leave them out with --min-class-size 2"
    )


UNBALANCED, FEWEST_TO_WEIGHT = 20, 5
"""From this ratio of class sizes on, the command mentions class weights, if the smallest class has
at least this many objects."""


def hint_at_balance(labels: Sequence[str], class_weight: str | None) -> None:
    """Say how to find more objects of a small class, if classes differ much in size.

    Weights do not help where a class has too few objects to learn from.
    """
    counts = Counter(labels).most_common()
    (_, most), (name, least) = counts[0], counts[-1]
    if class_weight is None and least >= FEWEST_TO_WEIGHT and most >= UNBALANCED * least:
        say(
            "unbalanced",
            f"{shortened(name)} has {least:,} of {len(labels):,} objects: --class-weight balanced "
            f"finds more of them, at the expense of large classes",
        )


def say_ranks(labels: Iterable[str]) -> None:
    """Print the ranks of labels that are paths, each with its number of names."""
    labels = sorted(set(labels))
    separator = find_separator(labels)
    if separator is None:
        return
    try:
        ranks = Rank.each(labels, separator)
    except ValueError:  # of a fit, which says more about it
        return
    names = rank_names([rank_path(label, separator) for label in labels])
    told = (f"{name} ({len(rank.nodes):,})" for name, rank in zip(names, ranks, strict=True))
    say("ranks", f"{', '.join(told)}, separated by {separator!r}")


def describe_classes(labels: Sequence[str] | Mapping[str, int]) -> str:
    """Return the number of classes, and the largest and smallest of them with their counts.

    Either all labels are given, or the number of objects for each of them.

    >>> describe_classes(["a", "a"]), describe_classes(["a", "b", "a"])
    ('1 class: a (2)', '2 classes: a (2), b (1)')
    """
    counts = Counter(labels).most_common()
    short = short_labels([name for name, _ in counts])
    shown = [f"{shortened(name, 30)} ({n:,})" for name, (_, n) in zip(short, counts, strict=True)]
    if len(shown) > 6:
        shown = [*shown[:3], "…", *shown[-2:]]
    return f"{len(counts)} {'class' if len(counts) == 1 else 'classes'}: {', '.join(shown)}"
