"""Tables of hits on the command line: references with labels and groups, and new queries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import click
import numpy as np
from click.core import ParameterSource
from numpy.typing import NDArray

from ..core.evidence import VOTERS
from ..core.shapes import Codes, Indices
from ..io import DataError, NamedObjects, Source, open_source
from ..io.hits import KEPT, ReferenceHits, groups_of_hits, queries, references
from ..io.hittable import SCORES, HitTable
from ..io.labels import FORMS, Labels, OrderedLabels, find_labels
from ..io.streams import bare_name, file_state, quoted, read_once, read_rows
from .classes import describe_classes, describe_small, hint_at_balance, small_classes
from .messages import printable
from .options import DataOptions, NewOptions
from .reading import say_groups
from .terminal import say, warn, warnings_as_lines

CLOSE, CLOSE_SHARE = 0.95, 0.2
"""Groups are recommended if this share of the objects has a hit with at least this identity."""

HOW_TO_SEARCH = (
    "search the references against themselves, as in: diamond blastp -q refs.fasta -d refs -k 50 "
    "-o refs-vs-refs.tsv"
)
"""How to make the table that a fit needs; the documentation has the commands of all programs."""


READ = frozenset(
    (
        "data", "hits", "labels", "label_pattern", "skip_unlabelled", "max_size", "columns",
        "score", "groups", "min_class_size", "class_weight",
    )
)  # fmt: skip
"""Options that describe a table of hits. Objects without a label are always left out."""


def refuse_others(*used: str) -> None:
    """Refuse options on the command line that are neither in `READ` nor `used` by the command."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in READ and name not in used:
            spelling = "/".join([*option.opts, *option.secondary_opts])
            raise click.UsageError(f"{spelling} has no effect with --hits: leave it out")


@dataclass(frozen=True)
class LabelledHits:
    """The hits of labelled objects among known ones, which are the same objects or others."""

    hits: ReferenceHits
    labels: NDArray[np.str_]  # (n,): of all objects
    groups: Indices | None  # (n,)
    rows: Indices  # the objects that can be held out
    columns: Indices  # the known ones

    @property
    def among_themselves(self) -> bool:
        """Whether all objects were searched among each other."""
        return len(self.rows) == len(self.columns) == len(self.labels)

    def fit(self, estimator: Any) -> None:
        """Fit the estimator, and name its objects."""
        rows, columns, groups = self.rows, self.columns, self.groups
        everyone = np.arange(len(self.labels)) if groups is None else groups
        estimator.fit_hits(
            self.hits.graph[rows][:, columns],
            self.labels[rows],
            self.labels[columns],
            groups=everyone[rows],
            known_groups=everyone[columns],
            score=self.hits.score,
        )
        estimator.name_objects([self.hits.targets[i] for i in columns])


class _LabelFinder:
    """Finds the labels of names as they come, and remembers them."""

    def __init__(self, labels: Labels) -> None:
        self.labels, self.found = labels, dict[str, str]()

    def __call__(self, names: list[str]) -> list[bool]:
        chunk = NamedObjects(names, names, None, 0)
        found = self.labels.of(chunk, [None] * len(names)) or [None] * len(names)
        self.found |= {
            name: label for name, label in zip(names, found, strict=True) if label is not None
        }
        return [label is not None for label in found]


def open_labels(data: DataOptions) -> Labels:
    """Return the labels of the objects in a table of hits, by their names."""
    if data.labels is None and data.label_pattern is None:
        raise click.UsageError(
            "a table of hits has no labels: use --labels FILE, a table of names and labels, or "
            "--label-pattern REGEX for labels in the names"
        )
    found = find_labels(data.labels, data.label_pattern, data.max_size, skip=True)
    if isinstance(found, OrderedLabels):
        raise click.UsageError(
            f"--labels {data.labels}: has one column, but hits are labelled by name: it needs two, "
            "name and label"
        )
    return found


def read_references(data: DataOptions) -> LabelledHits:
    """Read a table of labelled objects, and say what was left out."""
    table = HitTable(data.data, columns=data.columns, score=data.score, max_size=data.max_size)
    group_of = _group_finder(data)
    finder = _LabelFinder(open_labels(data))
    hits = references(table, finder, group_of=group_of)
    if not hits.queries:
        raise DataError(
            f"{data.data}: none of its objects has a label by {data.labels or data.label_pattern}"
        )
    labels = np.array([finder.found[name] for name in hits.queries])
    hits, labels = _without_small_classes(hits, labels, data.min_class_size)
    if len(set(labels.tolist())) < 2:
        raise DataError(f"{data.data}: all objects have the label {labels[0]!r}")
    codes = None
    if group_of is not None:
        named = [group_of(name) for name in hits.queries]
        if None in named:
            name = hits.queries[named.index(None)]
            raise DataError(f"{data.data}: {quoted(name)} has no group in {data.groups}")
        codes = np.unique(np.array(named), return_inverse=True)[1]
    _say_left_out(hits)
    rows, columns = _sides(hits, data.data)
    return LabelledHits(hits, labels, codes, rows, columns)


def _group_finder(data: DataOptions) -> Callable[[str], Any] | None:
    """Return what finds the group of a name: in a file, or by the identities of the table."""
    groups = data.groups
    if groups is None:
        return None
    if groups.startswith("identity:"):
        from ..evaluation.groups import parse_identity

        if read_once(data.data):
            raise click.UsageError(
                "--groups identity: reads the table twice, which standard input and pipes do not "
                "allow: save it to a file"
            )
        try:
            threshold = parse_identity(groups)[1]
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        table = HitTable(data.data, columns=data.columns, max_size=data.max_size)
        return dict(groups_of_hits(table, threshold)).get
    labels = find_labels(groups, None, data.max_size, skip=True)

    @cache
    def group_of(name: str) -> Any:
        found = labels.of(NamedObjects([name], [name], None, 0), [None])
        return None if found is None else found[0]

    return group_of


def _without_small_classes(
    hits: ReferenceHits, labels: NDArray[np.str_], least: int | None
) -> tuple[ReferenceHits, NDArray[np.str_]]:
    small = small_classes(Counter(labels.tolist()), least)
    if not small:
        return hits, labels
    kept = np.flatnonzero(~np.isin(labels, list(small)))
    if not len(kept):
        raise DataError(f"all classes have fewer than {least} objects")
    say("left out", describe_small(small, least), err=True)
    return hits.at(kept), labels[kept]


def _say_left_out(hits: ReferenceHits) -> None:
    counts = hits.counts
    parts = []
    if counts.unknown_queries:
        parts.append(f"{counts.unknown_queries:,} hits of queries without a label")
    if counts.unknown_targets:
        parts.append(f"{counts.unknown_targets:,} hits to targets without a label")
    if parts:
        say("left out", "; ".join(parts), err=True)


def _sides(hits: ReferenceHits, path: str) -> tuple[Indices, Indices]:
    """Return the objects to learn from, and the known ones: all, or queries and targets."""
    asked, searched = np.flatnonzero(hits.asked), np.flatnonzero(hits.searched)
    if hits.graph.nnz == 0:
        only = "only hits of objects to themselves" if hits.counts.itself else "no hits"
        why = f"{only} among labelled objects"
        raise DataError(
            f"{path}: contains {why}, so nothing can be learned: {HOW_TO_SEARCH} (vsearch: "
            "--maxaccepts 50)"
        )
    both = np.intersect1d(asked, searched)
    if 2 * len(both) >= min(len(asked), len(searched)):
        everyone = np.arange(len(hits.queries))
        return everyone, everyone
    say("queries", f"{len(asked):,} labelled queries of {len(searched):,} labelled targets")
    return asked, searched


def describe_hits(found: LabelledHits) -> str:
    """Return the number of hits and objects, and how hits are scored."""
    counts, n = found.hits.counts, len(found.labels)
    return f"{counts.rows:,} hits of {n:,} objects, scored by {found.hits.score}"


def warn_of_hits(found: LabelledHits) -> None:
    """Warn of lists that are too short, and of near-copies that are not held out together."""
    codes = np.unique(found.labels, return_inverse=True)[1]
    if (longest := truncated(found.hits, codes)) is not None:
        times = f"after {longest} hit" + "s" * (longest != 1)
        warn(
            f"most lists of hits end {times}, all of one class, so that the runner-up is unknown: "
            f"search for more, such as {KEPT} (-max_target_seqs, -k, --max-seqs, --maxaccepts)"
        )
    identity = found.hits.identity
    if found.groups is not None or identity is None or not found.among_themselves:
        return
    share = float((identity >= CLOSE).mean())
    if share >= CLOSE_SHARE:
        say(
            "near-copies",
            f"{100 * share:.0f} % of the objects have a hit with an identity of {CLOSE} or more: "
            f"if new objects are not as close, add --groups identity:{CLOSE}",
            err=True,
        )


def truncated(hits: ReferenceHits, codes: Codes) -> int | None:
    """Return the length of the longest list if most lists are as long, and end in one class."""
    asked = hits.asked[hits.asked > 0]
    if not len(asked) or (longest := int(asked.max())) >= VOTERS:
        return None
    full = np.flatnonzero(hits.asked == longest)
    if 2 * len(full) < len(asked):
        return None
    graph = hits.graph[full]
    owner = np.repeat(np.arange(len(full)), np.diff(graph.indptr))
    classes = np.unique(np.stack([owner, codes[graph.indices]], axis=1), axis=0)
    return longest if 2 * np.sum(np.bincount(classes[:, 0]) == 1) >= len(full) else None


# krein fit --hits and krein evaluate --hits


def fit_table(data: DataOptions, estimator: Any, output: str) -> None:
    """Fit a model to a table of hits, and write it."""
    start = time.perf_counter()
    tried, score = [data.score], data.score
    if score == "auto":
        if read_once(data.data):
            raise click.UsageError(
                "--score auto reads the table several times: save it to a file first"
            )
        tried = list(usual_scores(data))
    best: tuple[float, LabelledHits, Any] | None = None
    losses = {}
    from sklearn.base import clone

    for one in tried:
        found = read_references(replace(data, score=one))
        model = clone(estimator)
        found.fit(model)
        losses[found.hits.score] = loss = model.worth_.looks[-1].log_loss
        if best is None or loss < best[0]:
            best = loss, found, model
    assert best is not None
    _, found, estimator = best
    say("data", describe_hits(found))
    say("classes", describe_classes(found.labels.tolist()))
    hint_at_balance(found.labels.tolist(), estimator.class_weight)
    if len(losses) > 1:
        each = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
        say("score", f"{found.hits.score}, by the log-loss of held-out objects: {each}")
    if found.groups is not None:
        say_groups(found.groups)
    warn_of_hits(found)
    estimator.save(output)
    n = int(estimator.model_.reference.scores.shape[0])
    worth = estimator.worth_.looks
    say(
        "model",
        f"log-loss {worth[-1].log_loss:.3f} on {n:,} held-out objects; {worth[0].log_loss:.3f} "
        "from class sizes alone",
    )
    say("time", f"{time.perf_counter() - start:.1f} s")
    say("written", output)


def evaluate_table(data: DataOptions, quiet: bool, **settings: Any) -> tuple[Any, float]:
    """Cross-validate on a table of references against references; return results and seconds."""
    from ..evaluation.hits import evaluate_hits

    start = time.perf_counter()
    found = read_references(data)
    if not found.among_themselves:
        raise DataError(
            f"{data.data}: queries and targets are different objects, so there are no folds; "
            + HOW_TO_SEARCH
        )
    if not quiet:
        say("data", describe_hits(found))
        say("classes", describe_classes(found.labels.tolist()))
    with warnings_as_lines():
        warn_of_hits(found)
        result = evaluate_hits(
            found.hits.graph,
            found.labels,
            names=found.hits.queries,
            groups=found.groups,
            score=found.hits.score,
            **settings,
        )
    return result, time.perf_counter() - start


def usual_scores(data: DataOptions) -> Iterator[str]:
    """Yield the usual columns to score hits by that the table has."""
    table = HitTable(data.data, columns=data.columns, max_size=data.max_size)
    next(table.blocks(), None)
    names = () if table.layout is None else table.layout.names
    last = SCORES.index(table.score) if table.score in SCORES else len(SCORES)
    for i, name in enumerate(SCORES):
        # those before the default are empty, as in tables of vsearch
        if name in names and i >= last and not (table.score == "identity" and name == "evalue"):
            yield name


# krein predict


class QuerySource(Source):
    """New objects given by their hits: in the order of a list of names, or of the table."""

    kind = "hits"
    labels = Labels()

    def __init__(self, new: NewOptions, known: Sequence[str], score: str) -> None:
        self.new, self.known, self.score = new, known, score
        self.path = new.new
        self.opened = file_state(self.path)

    def read(self) -> NamedObjects:
        """Return all queries, with their hits as a sparse matrix."""
        new = self.new
        table = HitTable(new.new, columns=new.columns, score=self.score, max_size=new.max_size)
        hits = queries(table, self.known)
        if hits.swapped:
            say("swapped", "the queries of the table are the known objects, so the targets are new",
                err=True)  # fmt: skip
        if hits.counts.itself:
            n = f"{hits.counts.itself:,} hits of known objects to themselves"
            say("left out", n, err=True)
        if hits.counts.unknown_targets:
            n = f"{hits.counts.unknown_targets:,} hits to objects that the model does not know"
            say("left out", n, err=True)
        names, order = hits.queries, np.arange(len(hits.queries))
        if new.queries is not None:
            names, order = matched(read_names(new.queries, new.max_size), hits.queries)
        elif not names:
            raise DataError(f"no hits in {self.path}; name the queries with --queries")
        else:
            say(
                "queries",
                f"{len(names):,} with hits; --queries also answers those without",
                err=True,
            )
        from scipy import sparse

        nothing = sparse.csr_matrix((1, hits.graph.shape[1]))
        graph = sparse.vstack([hits.graph, nothing]).tocsr()[order]  # −1: the last, without a hit
        return NamedObjects(list(names), graph, None, 0, self.shown, self.kind)

    def chunks(self, size: int) -> Iterator[NamedObjects]:
        """Yield the queries, `size` at a time."""
        whole = self.read()
        for first in range(0, len(whole), size):
            part = slice(first, first + size)
            yield replace(whole, names=whole.names[part], objects=whole.objects[part], first=first)

    @property
    def understood(self) -> str:
        """A description of how the file was interpreted."""
        return f"hits, scored by {self.score}"


def read_names(path: str, max_size: int | None = None) -> list[str]:
    """Return the names of objects: the headers of FASTA or FASTQ, or the first cell of each row."""
    start = bare_name(path)
    if not start.endswith((".txt", ".csv", ".tsv", ".tab", ".lst", ".list")):
        source = open_source(path, max_size=max_size)
        if source.kind == "sequences":
            return [name for chunk in source.chunks(4096) for name in chunk.names]
    rows = [row[0].strip() for _, row in read_rows(path, None, max_size=max_size) if row]
    heading = rows and rows[0].lower() in ("name", "id", "query", "qseqid", "sequence", "names")
    found = [row for row in rows[1 if heading else 0 :] if row]
    if not found:
        raise DataError(f"{path}: contains no names")
    return found


def matched(names: list[str], found: list[str]) -> tuple[list[str], Indices]:
    """Return all names, and the place of each one among those found, −1 for none.

    The names may be in another form (`krein.io.labels.FORMS`), the one that matches most. Queries
    that are not listed come last.
    """
    tables = [(form, {form(name): i for i, name in enumerate(found)}) for form in FORMS]
    form, place = max(tables, key=lambda one: sum(one[0](name) in one[1] for name in names))
    order = [place.get(form(name), -1) for name in names]
    others = sorted(set(range(len(found))) - set(order))
    if found and len(others) == len(found):
        raise DataError(
            f"none of the queries of the table, such as {quoted(found[0])}, is among the names, "
            f"such as {quoted(names[0])}"
        )
    if others:
        first = printable(found[others[0]], 40)
        warn(f"{len(others):,} queries of the table, such as {first}, are not among the names")
    return [*names, *(found[i] for i in others)], np.array([*order, *others], dtype=np.intp)
