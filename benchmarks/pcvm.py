"""PCVM on landmark rows against scikit-learn's logistic regression on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from krein import PCVM
from krein.core.pcvm.left_out import choose_scale
from krein.core.pcvm.mode import PCVMFit, fit_pcvm
from krein.core.pcvm.published import fit_published_nystrom
from krein.core.pcvm.rows import Rows
from krein.core.pcvm.training import prune_pcvm
from krein.measures.vectors import ELM

from .timing import best_times, exponent, peak_memory, row

N_TEST = 5_000


def board(N: int, seed: int = 0, corner: float = -1.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, classes and 100 random landmarks among the first N; test points come last.

    The board is centred on the origin, where the ELM kernel is curved. Off to one side, on [0, 3]²,
    the accuracy of both PCVM and logistic regression is a few percentage points lower.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(corner, corner + 3, (N + N_TEST, 2))
    y = (np.floor(X - corner).sum(axis=1) % 2).astype(int)
    return X, y, rng.choice(N, 100, replace=False)


def checkerboard(N: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ELM similarities to the landmarks, classes, and the landmarks; test rows come last."""
    X, y, landmarks = board(N, seed)
    return ELM().block(X, X[landmarks]), y, landmarks


def estimator(reference: float) -> list[dict]:
    """`PCVM.fit` from the points, including the similarities, on the same board."""
    N = 100_000
    X, y, L = board(N)
    done: dict[str, PCVM] = {}

    def fit(n: int = N) -> None:
        done["model"] = PCVM("elm", landmarks=np.sort(L)).fit(X[:n], y[:n])

    seconds = best_times(fit, repeats=2)[0]
    model = done["model"]
    return [
        row(
            "PCVM.fit / logistic regression",
            seconds / reference,
            "at most 1",
            f"{seconds:.2f} s, similarities included; {100 * model.score(X[N:], y[N:]):.1f} % "
            f"with {len(model.relevance_)} basis objects",
        ),
        row("memory of PCVM.fit", peak_memory(fit) / (8 * N * len(L)), "at most 4", "N·m doubles"),
    ]


def sparse(F: np.ndarray, y: np.ndarray, classes: np.ndarray) -> PCVMFit:
    """Choose the scale of the prior, fit, prune."""
    rows = Rows(F, y)
    prior, quick, _ = choose_scale(rows, classes)
    fit = fit_pcvm(rows, classes, prior=prior, start=(quick.weights, quick.bias), tol=1e-7)
    return prune_pcvm(rows, classes, fit, prior=prior, tol=1e-7)[0]


def logistic(F: np.ndarray, y: np.ndarray) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(max_iter=5000).fit(F, y)


def log_loss(P: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)).mean())


def run() -> list[dict]:
    N = 100_000
    C, y, L = checkerboard(N)
    F, Y = np.ascontiguousarray(C[:N]), y[:N]
    test, truth = C[N:], y[N:]
    mean, deviation = F.mean(axis=0), F.std(axis=0)
    scaled = (F - mean) / deviation
    done: dict[str, object] = {}

    def keep(name: str, function: Callable[[], object]) -> Callable[[], None]:
        return lambda: done.update({name: function()})

    plain, whole, raw, unit = best_times(
        keep("plain", lambda: fit_pcvm(Rows(F, Y), y[L], tol=1e-7)),
        keep("sparse", lambda: sparse(F, Y, y[L])),
        keep("raw", lambda: logistic(F, Y)),
        keep("scaled", lambda: logistic(scaled, Y)),
        repeats=2,
    )
    reference = min(raw, unit)
    memory = peak_memory(lambda: sparse(F, Y, y[L])) / F.nbytes
    sizes = [12_500, 25_000, 50_000, 100_000]
    fits, steps = [], []
    for size in sizes:
        part, labels = np.ascontiguousarray(F[:size]), Y[:size]
        fit = fit_pcvm(Rows(part, labels), y[L], tol=1e-7)
        taken = best_times(
            lambda part=part, labels=labels: fit_pcvm(Rows(part, labels), y[L], tol=1e-7)
        )[0]
        fits.append(taken)
        steps.append(taken / fit.n_iter)
    rows = [
        row(
            "fit / logistic regression",
            plain / reference,
            "at most 1",
            f"N = {N:,}, m = 100: {plain:.2f} s; on unscaled rows {raw:.2f} s, scaled {unit:.2f} s",
        ),
        row(
            "scale, fit, prune / logistic regression",
            whole / reference,
            "at most 1",
            f"{whole:.2f} s",
        ),
        row(
            "exponent in N, the fit", exponent(sizes, fits), "at most 1.1", f"N = {sizes}", unit=""
        ),
        row(
            "exponent in N, a step", exponent(sizes, steps), "at most 1.1", f"N = {sizes}", unit=""
        ),
        row("memory, scale and prune included", memory, "at most 4", "N·m doubles beyond the rows"),
    ]
    for name, key in (("fit", "plain"), ("sparse", "sparse")):
        model = done[key]
        assert isinstance(model, PCVMFit)
        P = model.probabilities(test)
        rows.append(
            row(
                f"test accuracy, {name}",
                100 * float(np.mean(P.argmax(axis=1) == truth)),
                "98",
                f"{len(model.kept)} basis functions, log-loss {log_loss(P, truth):.4f}",
                unit="%",
            )
        )
    classic = done["scaled"]
    assert isinstance(classic, LogisticRegression)
    P = classic.predict_proba((test - mean) / deviation)
    accuracy = 100 * float(np.mean(P.argmax(axis=1) == truth))
    detail = f"100 columns, log-loss {log_loss(P, truth):.4f}"
    rows.append(row("test accuracy, logistic regression", accuracy, "", detail, unit="%"))
    rows += estimator(reference)
    rows += [*board_of_issue(), off_centre()]
    return rows


def off_centre() -> dict:
    """The board of 20,000 on [0, 3]², where the kernel separates the fields less well."""
    N = 20_000
    X, y, L = board(N, corner=0.0)
    model = PCVM("elm", landmarks=np.sort(L)).fit(X[:N], y[:N])
    F = ELM().block(X, X[L])
    F = (F - F[:N].mean(axis=0)) / F[:N].std(axis=0)
    other = 100 * logistic(F[:N], y[:N]).score(F[N:], y[N:])
    return row(
        "the same board on [0, 3]²",
        100 * model.score(X[N:], y[N:]),
        "98",
        f"{len(model.relevance_)} basis functions; logistic regression {other:.1f} %",
        unit="%",
    )


def board_of_issue() -> list[dict]:
    """N = 20,000, three random draws, with our algorithm and the published one."""
    N = 20_000
    ours, kept, published, same = [], [], [], []
    for seed in range(3):
        C, y, L = checkerboard(N, seed)
        fit = sparse(C[:N], y[:N], y[L])
        predicted = fit.scores(C[N:])[:, 0] > 0
        ours.append(100 * np.mean(predicted == y[N:]))
        kept.append(len(fit.kept))
        for scale in (1e-3, 1e3):
            other = sparse(scale * C[:N], y[:N], y[L])
            same.append(np.mean((other.scores(scale * C[N:])[:, 0] > 0) == predicted))
        t = 2.0 * y - 1.0
        paper = fit_published_nystrom(C[:N], C[L], t[:N], np.random.default_rng(seed))
        w = np.linalg.pinv(C[L]) @ (C[:N].T @ paper.weights)
        published.append(100 * np.mean(np.sign(C[N:] @ w + paper.bias) == t[N:]))
    return [
        row(
            "checkerboard, N = 20,000: worst of three",
            float(min(ours)),
            "98 with ≤ 60",
            f"{', '.join(map(str, kept))} basis functions; "
            f"published algorithm {', '.join(f'{v:.0f}' for v in published)} %",
            unit="%",
        ),
        row("same predictions at K·1e-3, K·1e3", 100 * float(min(same)), "100", unit="%"),
    ]
