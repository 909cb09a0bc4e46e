"""Make tcrdist3.npz: receptors of every chain, and tcrdist3's distances between them.

tcrdist3 is too large to be a dependency of the tests. To make the file again, install it in an
environment of its own (`pip install tcrdist3==0.3`), and run this file there. It takes 64 receptors
of each chain and organism, and so 2,016 pairs. Human β chains are receptors of the MIRA data that
tcrdist3 contains (MIT licence). It has no data for the other chains: their V genes are drawn from
its table, and their CDR3s at random.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

CHAINS = {"alpha": "TRA", "beta": "TRB", "gamma": "TRG", "delta": "TRD"}
N = 64
WHERE = Path(__file__).with_name("tcrdist3.npz")


def random_receptors(genes: list[str], rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return V genes and CDR3s of 3 to 24 letters, some of them variants of each other."""
    letters, found = list("ACDEFGHIKLMNPQRSTVWY"), []
    for i in range(N):
        if i % 4 == 3:  # like the one before, with a letter more or another letter
            middle = list(found[-1][1][1:-1])
            place = int(rng.integers(0, len(middle) + 1))
            middle[place : place + int(rng.integers(0, 2))] = [str(rng.choice(letters))]
        else:
            middle = [str(x) for x in rng.choice(letters, rng.integers(1, 23))]
        found.append((str(rng.choice(genes)), f"C{''.join(middle)}F"))
    return found


def main() -> None:
    """Write the file."""
    import pandas as pd
    import tcrdist
    from tcrdist.repertoire import TCRrep

    home, rng, arrays = Path(tcrdist.__file__).parent, np.random.default_rng(0), {}
    table = pd.read_csv(home / "db" / "alphabeta_gammadelta_db.tsv", sep="\t")
    mira = pd.concat(pd.read_csv(path) for path in sorted(home.glob("data/covid19/*48_610*.csv")))
    for organism in ("human", "mouse"):
        of = table[(table.organism == organism) & (table.region == "V")].id
        for chain, start in CHAINS.items():
            starts = (start, "TRA") if chain == "delta" else (start,)
            genes = [g for g in of if g.startswith(starts) and (start != "TRD" or "DV" in g)]
            receptors = random_receptors(genes, rng)
            if (organism, chain) == ("human", "beta"):
                some = mira.drop_duplicates(["v_b_gene", "cdr3_b_aa"])
                some = some[some.v_b_gene.isin(genes)].sample(N, random_state=0)
                receptors = list(zip(some.v_b_gene, some.cdr3_b_aa, strict=True))
            x = start[2].lower()
            cells = pd.DataFrame(receptors, columns=[f"v_{x}_gene", f"cdr3_{x}_aa"])
            cells["count"] = 1
            rep = TCRrep(
                cell_df=cells,
                organism=organism,
                chains=[chain],
                db_file="alphabeta_gammadelta_db.tsv",
                deduplicate=False,
                compute_distances=False,
            )
            upper = np.triu_indices(N, 1)
            arrays[f"{organism} {chain}"] = np.array([f"{v} {cdr3}" for v, cdr3 in receptors])
            for place, fixed in (("best", False), ("fixed", True)):
                getattr(rep, f"kargs_{x}")[f"cdr3_{x}_aa"]["fixed_gappos"] = fixed
                rep.compute_distances()
                values = getattr(rep, f"pw_{chain}")
                assert (values == values.T).all()
                arrays[f"{organism} {chain} {place}"] = values[upper].astype(np.int16)
    np.savez_compressed(WHERE, **arrays)


if __name__ == "__main__":
    main()
