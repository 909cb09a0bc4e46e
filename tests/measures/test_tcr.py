"""TCRdist: tcrdist3's values, and how genes, CDR3s and tables are read."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scoring_matrices import ScoringMatrix

from krein import KreinClassifier, load
from krein.evaluation import evaluate
from krein.measures import RefusedObject, get_measure
from krein.measures.receptors import (
    CHAINS,
    ORGANISMS,
    GenesWarning,
    UnknownGene,
    chain_columns,
    get_genes,
)
from krein.measures.tcr import COSTS, LETTERS, cdr3_groups

ORACLE = np.load(Path(__file__).with_name("tcrdist3.npz"))

TABLE = pd.DataFrame(
    {
        "v_a_gene": ["TRAV24*01", "TRAV8-4*01", "TRAV12-2*01"],
        "cdr3_a_aa": ["CAFTSNTGKLIF", "CAVSAGDYKLSF", "CAVNFGGGKLIF"],
        "v_b_gene": ["TRBV5-1*01", "TRBV24-1*01", "TRBV6-5*01"],
        "cdr3_b_aa": ["CASRGDTFYEQYF", "CATSDSVAGNQPQHF", "CASSYSFTEAFF"],
    }
)
TEXTS = [" ".join(row) for row in TABLE.itertuples(index=False)]


def oracle(organism: str, chain: str, place: str) -> tuple[list[str], np.ndarray]:
    """Return receptors and tcrdist3's distances (n, n) between them."""
    receptors = ORACLE[f"{organism} {chain}"].tolist()
    D = np.zeros((len(receptors), len(receptors)))
    D[np.triu_indices(len(receptors), 1)] = ORACLE[f"{organism} {chain} {place}"]
    return receptors, D + D.T


@pytest.mark.parametrize("place", ["best", "fixed"])
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("organism", ORGANISMS)
def test_values_are_those_of_tcrdist3(organism, chain, place):
    receptors, D = oracle(organism, chain, place)
    params = {"organism": organism, "chains": chain, "gap_position": place}
    measure = get_measure("tcrdist", params)
    X = measure.check(receptors)
    assert receptors == X
    np.testing.assert_array_equal(measure.block(X, X), D)


@pytest.mark.parametrize("chains", ["alpha-beta", "gamma-delta"])
@pytest.mark.parametrize("organism", ORGANISMS)
def test_the_chains_of_a_pair_add_up(organism, chains):
    (first, D), (second, E) = (oracle(organism, chain, "best") for chain in chains.split("-"))
    measure = get_measure("tcrdist", {"organism": organism})
    given = [f"{b} {a}" for a, b in zip(first, second, strict=True)]
    X = measure.check(given)
    assert measure.decide(given).chains == chains
    np.testing.assert_array_equal(measure.block(X, X), D + E)


def test_each_pair_is_as_in_a_block():
    receptors, D = oracle("human", "alpha", "best")
    columns = np.random.default_rng(0).integers(0, len(receptors), (len(receptors), 7))
    found = get_measure("tcrdist", {"chains": "alpha"}).each(receptors, receptors, columns)
    np.testing.assert_array_equal(found, np.take_along_axis(D, columns, axis=1))


def test_letter_costs_are_derived_from_blosum62():
    matrix = ScoringMatrix.from_name("BLOSUM62")
    rows = [matrix.alphabet.index(letter) for letter in LETTERS]
    scores = np.array(matrix, dtype=int)[np.ix_(rows, rows)]
    expected = np.minimum(4, 4 - scores)
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(COSTS[:-1, :-1], expected)
    assert not COSTS[-1].any()


def test_every_allele_of_a_chain_has_loops_of_the_same_length():
    for organism in ORGANISMS:
        loops = get_genes(organism).loops
        assert len(loops) > 250
        for start in ("TRA", "TRB", "TRG"):
            both = (start, "TRD") if start == "TRA" else start
            assert len({len(x) for name, x in loops.items() if name.startswith(both)}) == 1


@pytest.mark.parametrize(
    ("given", "used", "told"),
    [
        ("TRBV5-1*02", "TRBV5-1*02", False),
        ("TRBV5-1", "TRBV5-1*01", False),
        ("trbv5-1", "TRBV5-1*01", False),
        ("TRBV5-1*00", "TRBV5-1*01", False),  # MiXCR: the allele is not known
        ("TRBV5-1*99", "TRBV5-1*01", True),
        ("TRBV12-3*01,TRBV12-4*01", "TRBV12-3*01", False),  # AIRR: the best call first
        ("Homsap TRBV5-1*01 F", "TRBV5-1*01", False),  # IMGT/HighV-QUEST
        ("TCRBV05-01*01", "TRBV5-1*01", False),  # Adaptive
        ("TCRBV12-03/12-04", "TRBV12-3*01", False),
        ("TCRBV27-01", "TRBV27*01", True),
        ("TRBV20", "TRBV20-1*01", True),
        ("TRBV20-OR9-2", "TRBV20/OR9-2*01", False),
        ("TRAV14DV4", "TRAV14/DV4*01", False),
        ("TRAV14-DV4*02", "TRAV14/DV4*02", False),
        ("TRAV29", "TRAV29/DV5*01", True),
        ("TRDV5", "TRAV29/DV5*01", True),
    ],
)
def test_names_of_genes(given, used, told):
    assert get_genes("human").read(given) == (used, told)


@pytest.mark.parametrize(
    ("organism", "given", "remedy"),
    [
        ("human", "TRBV5", "similar names: TRBV5-"),  # TRBV5-1 … TRBV5-8
        ("human", "TRBV13-2*01", "mouse has it: measure_params={'organism': 'mouse'}"),
        ("mouse", "TRBV6-5*01", "human has it"),
        ("human", "BV13S1", "expected a name such as"),
    ],
)
def test_an_unknown_gene_is_named_with_a_remedy(organism, given, remedy):
    with pytest.raises(UnknownGene) as caught:
        get_genes(organism).read(given)
    assert caught.value.gene == given
    assert remedy in str(caught.value)
    with pytest.raises(RefusedObject, match="receptor 1 has the V gene") as refused:
        get_measure("tcrdist", {"organism": organism, "chains": "beta"}).check(
            [("TRBV4" if organism == "mouse" else "TRBV9", "CASSF"), (given, "CASSF")]
        )
    assert refused.value.row == 1
    assert given in str(refused.value)


def test_a_warning_names_what_was_read_as_something_else():
    measure = get_measure("tcrdist", {"chains": "beta"})
    with pytest.warns(GenesWarning, match=r"TRBV19\*09 as TRBV19\*01") as caught:
        found = measure.check([("TRBV19*09", "CASSIF"), ("TRBV9", "CASSIF")])
    assert caught[0].message.genes == {"TRBV19*09": "TRBV19*01"}
    assert found == ["TRBV19*01 CASSIF", "TRBV9*01 CASSIF"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure.check(found) == found


def test_the_organism_decides_which_loops_are_compared():
    X = ["TRBV1*01 CASSIF", "TRBV2*01 CASSIF"]
    human, mouse = (get_measure("tcrdist", {"organism": o, "chains": "beta"}) for o in ORGANISMS)
    assert human.block(X[:1], X[1:]) != mouse.block(X[:1], X[1:])


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        TABLE,
        TABLE.to_dict("records"),
        list(TABLE.itertuples(index=False, name=None)),
        [row for _, row in TABLE.iterrows()],
        TABLE.to_numpy(),
        TABLE.to_records(index=False),
        list(TABLE.to_records(index=False)),
        pyarrow.table(TABLE.to_dict("list")),
        TABLE.rename(
            columns=dict(zip(TABLE, ("v.alpha", "cdr3.alpha", "v.beta", "cdr3.beta"), strict=True))
        ),
        TABLE.rename(
            columns=dict(zip(TABLE, ("TRAV", "TRA_CDR3", "TRBV", "TRB_CDR3"), strict=True))
        ),
        TABLE[["cdr3_b_aa", "v_b_gene", "v_a_gene", "cdr3_a_aa"]],
    ],
)
def test_receptors_of_any_form_become_the_same_text(given):
    measure = get_measure("tcrdist")
    assert measure.check(given) == TEXTS
    assert measure.readable(given).mask.all()


def test_single_chains_are_read_from_airr_vdjdb_and_10x_columns():
    for gene, cdr3 in (("v_call", "junction_aa"), ("V", "CDR3"), ("v_gene", "cdr3")):
        assert chain_columns(["x", gene, cdr3]) == [(gene, cdr3)]
        table = pd.DataFrame({gene: TABLE.v_b_gene, cdr3: TABLE.cdr3_b_aa})
        assert get_measure("tcrdist").check(table) == [" ".join(t.split()[2:]) for t in TEXTS]


def test_one_chain_of_a_pair_can_be_compared():
    beta = get_measure("tcrdist", {"chains": "beta"})
    assert beta.check(TABLE) == [" ".join(text.split()[2:]) for text in TEXTS]


def test_a_receptor_without_a_chain_is_named():
    table = pd.concat([TABLE, TABLE.tail(1).assign(v_a_gene=None, cdr3_a_aa=np.nan)])
    measure = get_measure("tcrdist")
    assert measure.decide(table).chains == "alpha-beta"
    with pytest.raises(RefusedObject, match=r"receptor 3 has no alpha chain.*'chains': 'beta'"):
        measure.check(table)
    assert measure.readable(table).mask.tolist() == [True, True, True, False]


def test_tables_without_receptors_are_refused():
    with pytest.raises(ValueError, match=r"found no columns with V genes and CDR3s.*'x'"):
        get_measure("tcrdist").check(pd.DataFrame({"x": [1]}))


def test_an_optimal_gap_never_costs_more_than_a_fixed_one():
    for organism in ORGANISMS:
        for chain in CHAINS:
            best, fixed = (oracle(organism, chain, place)[1] for place in ("best", "fixed"))
            assert (best <= fixed).all()
            assert (best < fixed).any()


@pytest.mark.parametrize("place", ["best", "fixed"])
def test_the_side_by_side_view_has_the_gap_where_the_measure_puts_it(place):
    measure = get_measure("tcrdist", {"chains": "alpha", "gap_position": place})
    receptors, _ = oracle("human", "alpha", place)
    codes = {letter: i for i, letter in enumerate(LETTERS)}
    for a in receptors[:20]:
        for b in receptors[20:40]:
            gene = a.split()[0]
            b = f"{gene} {b.split()[1]}"  # so that only the CDR3s differ
            found = measure.side_by_side(a, b)
            assert found.first.replace("-", "") == a.split()[1]
            assert found.second.replace("-", "") == b.split()[1]
            pairs = [p for p in zip(found.first, found.second, strict=True) if "-" not in p]
            apart = len(found.first) - len(pairs)
            cost = sum(int(COSTS[codes[p], codes[q]]) for p, q in pairs[3 : len(pairs) - 2])
            assert 3 * (cost + 4 * apart) == measure.block([a], [b])[0, 0]


def test_a_classifier_of_receptors_survives_its_file(tmp_path):
    rng = np.random.default_rng(0)
    motifs = {"x": "CASSIRSSYEQYF", "y": "CASSLAPGATNEKLFF"}
    rows, labels = [], []
    for label, motif in motifs.items():
        for _ in range(40):
            letters = list(motif)
            letters[int(rng.integers(4, 8))] = str(rng.choice(list(LETTERS)))
            gene = rng.choice(["TRBV19", "TRBV7-6"])
            rows.append({"v_b_gene": gene, "cdr3_b_aa": "".join(letters)})
            labels.append(label)
    X = pd.DataFrame(rows)
    clf = KreinClassifier("tcrdist").fit(X, labels)
    assert clf.score(X, labels) == 1.0
    clf.save(tmp_path / "m.krein")
    again = load(tmp_path / "m.krein")
    assert again.measure_.chains == "beta"
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def identity(x: str, y: str) -> float:
    """The definition: the best of all gap positions."""
    short, long = sorted((x, y), key=len)
    gap = "-" * (len(long) - len(short))
    gapped = [short[:at] + gap + short[at:] for at in range(len(short) + 1)]
    return max(sum(p == q for p, q in zip(one, long, strict=True)) for one in gapped) / len(long)


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_groups_are_the_components_of_receptors_with_similar_cdr3s(threshold):
    receptors, _ = oracle("human", "beta", "best")
    receptors = receptors + [r.replace("F", "Y", 1) for r in receptors[:20]]
    cdr3s = [text.split()[1] for text in receptors]
    near = np.array([[identity(x, y) >= threshold - 1e-9 for y in cdr3s] for x in cdr3s])
    reached = np.linalg.matrix_power(near.astype(float), len(cdr3s)) > 0
    group = cdr3_groups(receptors, threshold)
    np.testing.assert_array_equal(group[:, None] == group, reached)
    assert 1 < len(set(group)) < len(receptors) or threshold == 1.0


def test_the_identity_of_pairs_counts_the_columns_of_both_chains():
    X = ["TRAV24*01 CAAAAF TRBV9*01 CASSSSSSSF", "TRAV5*01 CDDDDF TRBV9*01 CASSSSSSSF"]
    assert len(set(cdr3_groups(X, 0.75))) == 1  # 12 of 16
    assert len(set(cdr3_groups(X, 0.76))) == 2


def test_evaluation_holds_out_receptors_with_similar_cdr3s_together():
    receptors, _ = oracle("human", "beta", "best")
    copies = [text[:-2] + "AF" for text in receptors]
    X, y = receptors + copies, np.tile(np.arange(len(receptors)) % 2, 2)
    found = evaluate(X, y, measure="tcrdist", models=("knn",), folds=4, groups="cdr3:0.8")
    assert (found.folds[: len(receptors)] == found.folds[len(receptors) :]).all()
    with pytest.raises(ValueError, match="is for T-cell receptors"):
        evaluate(X, y, measure="levenshtein", models=("knn",), folds=4, groups="cdr3:0.9")


def test_a_chain_that_is_not_compared_may_be_incomplete():
    table = TABLE.assign(v_a_gene=None)
    beta = get_measure("tcrdist", {"chains": "beta"})
    assert beta.check(table) == beta.check(TABLE)
    with pytest.raises(RefusedObject, match=r"receptor 0 \('CAFTSNTGKLIF'\) has a CDR3 without"):
        get_measure("tcrdist", {"chains": "alpha-beta"}).check(table)


def test_chains_of_a_cell_in_separate_rows_are_not_taken_for_receptors():
    rows = [("TRAV24", "CAFTSNTGKLIF"), ("TRBV5-1", "CASRGDTFYEQYF")]
    with pytest.raises(ValueError, match="2 receptors, 1 have alpha and 1 have beta, but none has"):
        get_measure("tcrdist").check(rows)
    assert get_measure("tcrdist", {"chains": "beta"}).readable(rows).mask.tolist() == [False, True]


def test_a_stop_codon_is_named_with_its_remedy():
    with pytest.raises(ValueError, match=r"'\*' in the CDR3 .*; leave out receptors that are"):
        get_measure("tcrdist").check([("TRBV9", "CASS*F")])
