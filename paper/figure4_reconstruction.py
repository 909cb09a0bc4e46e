"""Figure 4: the kernel of the three Gaussians, and its approximation by MEB and k-means landmarks.

Rows and columns are sorted by Gaussian, with the two small ones last. Within the large one they are
sorted by direction, so that neighbouring rows are similar. The lower panels enlarge the corner with
the small ones. The k-means rule gets as many landmarks as MEB chooses. The paper shows both
approximations for one fold; this figure shows them next to the kernel, for all points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from krein import NystromMap
from krein.compare import open_pairs
from krein.datasets import make_three_gaussians

from .style import VERMILION, frame, options, plt, save, write


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, objects=500)
    n_small = max(20, chosen.objects // 25)
    X, y = make_three_gaussians(chosen.objects, n_small, random_state=0)
    direction = np.argsort(np.arctan2(X[:, 1], X[:, 0])[: chosen.objects])
    X[: chosen.objects] = X[direction]
    everyone = np.arange(len(X))
    K = open_pairs("elm", X).block(everyone, everyone)
    meb = NystromMap("elm", landmarks="meb", random_state=0).fit(X, y)
    kmeans = NystromMap(
        "elm", landmarks="kmeans", n_landmarks=len(meb.landmarks_), random_state=0
    ).fit(X, y)
    panels = {"kernel": (K, np.array([], dtype=int))}
    for name, found in (("MEB", meb), ("k-means", kmeans)):
        B = found.transform(X)
        panels[name] = (B * found.signs_) @ B.T, found.landmarks_

    corner = slice(len(X) - 3 * n_small, len(X))
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 7.2))
    drawn = []
    for (full, zoom), (name, (K_approx, landmarks)) in zip(axes.T, panels.items(), strict=True):
        small = slice(chosen.objects, len(X))
        difference = K_approx[small, small] - K[small, small]
        error = np.linalg.norm(difference) / np.linalg.norm(K[small, small])
        overall = np.linalg.norm(K_approx - K) / np.linalg.norm(K)
        there = int((landmarks >= chosen.objects).sum())
        shown = {"cmap": "cividis", "vmin": K.min(), "vmax": 1.0, "interpolation": "nearest"}
        image = full.imshow(K_approx, **shown)
        zoom.imshow(
            K_approx[corner, corner],
            extent=(corner.start, corner.stop, corner.stop, corner.start),
            **shown,
        )
        centres = chosen.objects + n_small * np.array([-0.5, 0.5, 1.5])
        zoom.set_xticks(centres, ["large", "small", "small"])
        zoom.set_yticks(centres, ["large", "small", "small"], rotation=90, va="center")
        zoom.tick_params(length=0)
        frame(full)
        for border in (chosen.objects, chosen.objects + n_small):
            zoom.axhline(border, color="white", lw=1, ls="--")
            zoom.axvline(border, color="white", lw=1, ls="--")
        full.add_patch(
            plt.Rectangle(
                (corner.start, corner.start), 3 * n_small, 3 * n_small,
                fill=False, color=VERMILION, lw=1.6, clip_on=False,
            )
        )  # fmt: skip
        for spine in zoom.spines.values():
            spine.set(visible=True, color=VERMILION, linewidth=1.6)
        if not len(landmarks):
            full.set_title(f"{name}\n{len(X)} points", loc="left")
            zoom.set_title("corner: the small Gaussians", loc="left")
            continue
        full.plot(
            np.full(len(landmarks), -0.02 * len(X)), landmarks, ">", color=VERMILION, ms=5,
            clip_on=False, scalex=False, scaley=False,
        )  # fmt: skip
        full.set_title(
            f"{name}: {len(landmarks)} landmarks ▸\n"
            f"{there} in small Gaussians; error {100 * overall:.0f} %",
            loc="left",
        )
        zoom.set_title(f"error within the small Gaussians {100 * error:.0f} %", loc="left")
        drawn.append([name, len(landmarks), there, overall, error])
        print(
            f"{name}: {there} of {len(landmarks)} landmarks are in the small Gaussians; relative "
            f"error {overall:.3f} of the whole matrix, {error:.3f} within the small ones"
        )
    figure.colorbar(image, ax=axes, shrink=0.6, label="similarity")
    write(
        chosen.output,
        "figure4_reconstruction",
        ["landmarks", "number", "in the small Gaussians", "error", "error within the small"],
        drawn,
    )
    save(figure, chosen.output, "figure4_reconstruction")


if __name__ == "__main__":
    main()
