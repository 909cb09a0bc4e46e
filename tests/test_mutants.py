"""Mutations change only code that affects results, and those listed as equivalent exist."""

import ast

from .mutants import mutants_of, spread
from .mutations import equivalent, sources

TEXT = '''"""About 1 + 1."""

Number = list[int] | None
LIMIT: float = 1e-9


def mean(x: "list[1]", weights=None, *, full=True):
    """Return 2 + 2."""
    if len(x) == 0:
        raise ValueError(f"no {1 + 1} objects" + "!")
    total = sum(x)
    total /= len(x)
    warn("1 + 1", stacklevel=2)
    return max(total, 0.0) if full else total - 1
'''


def changes():
    return {(mutant.kind, mutant.before, mutant.after) for mutant in mutants_of("f.py", TEXT)}


def test_what_is_mutated_and_what_is_not():
    assert changes() == {
        ("tuning", "1e-09", "0.001"),
        ("constant", "True", "False"),
        ("function", "sum(x)", "mean(x)"),
        ("statement", "total /= len(x)", "pass"),
        ("condition", "full", "not full"),
        ("function", "max(total, 0.0)", "min(total, 0.0)"),
        ("drop", "max(total, 0.0)", "total"),
        ("constant", "0.0", "1.0"),
        ("operator", "total - 1", "total + 1"),
        ("drop", "total - 1", "total"),
        ("constant", "1", "2"),
    }


def test_a_mutation_changes_one_node_and_stays_valid():
    for mutant in mutants_of("f.py", TEXT):
        mutated = mutant.apply(TEXT)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(TEXT))
        start, end = mutant.span
        assert mutated.encode()[:start] == TEXT.encode()[:start]
        assert mutated.encode().endswith(TEXT.encode()[end:])


def test_a_sample_is_spread_over_the_files_and_the_same_every_time():
    texts = {file: text for file, text in sources().items() if "/core/pcvm/" in file}
    candidates = {file: mutants_of(file, text) for file, text in texts.items()}
    drawn = spread(candidates, 100, seed=3)
    assert drawn == spread(candidates, 100, seed=3) != spread(candidates, 100, seed=4)
    assert len({mutant.key for mutant in drawn}) == 100
    assert len({mutant.file for mutant in drawn}) > 10


def test_equivalent_mutations_exist_in_the_source():
    names = {mutant.name for file, text in sources().items() for mutant in mutants_of(file, text)}
    assert set(equivalent()) <= names
