#!/usr/bin/env python3
"""Writes witness.json: 200 random cases and what scipy says of each.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1
    venv/bin/python witness.py > witness.json

The seed is fixed, so that a run with the same versions gives the same file. The tests read the
file, and no test needs Python.
"""

import itertools
import json
import math

import numpy as np
from scipy import stats

SEED = 20220315
CASES = 200
# False discovery rates are controlled over groups of so many cases.
GROUP = 20
ALL = math.inf


def difference(a, b, axis):
    return np.mean(b, axis=axis) - np.mean(a, axis=axis)


def case(rng, index):
    m, n = (int(size) for size in rng.integers(2, 9, size=2))
    kind = ["log-normal", "ties", "signs", "many ties"][index % 4]
    if kind == "log-normal":
        base = rng.lognormal(5, 0.1, m)
        side = rng.lognormal(5 + rng.choice([0, 0.05, 0.3]), 0.1, n)
    elif kind == "ties":
        base = rng.poisson(30, m) + 1.0
        side = rng.poisson(rng.choice([30, 40]), n) + 1.0
    elif kind == "signs":
        base = rng.normal(0, 1, m)
        side = rng.normal(rng.choice([0, 2]), 3, n)
    else:
        base = rng.integers(1, 4, m).astype(float)
        side = rng.integers(1, 5, n).astype(float)
    # As the numbers are written, so that both sides compute with the same.
    base, side = (np.array([float(f"{v:.6g}") for v in values]) for values in (base, side))
    log = bool(np.all(base > 0) and np.all(side > 0))
    a, b = (np.log(base), np.log(side)) if log else (base, side)

    welch = stats.ttest_ind(b, a, equal_var=False)
    interval = {
        str(level): list(welch.confidence_interval(level / 100)) for level in (90, 95)
    }
    permutation = stats.permutation_test(
        (a, b), difference, permutation_type="independent", n_resamples=ALL, vectorized=True
    )
    if len(set(base) | set(side)) == m + n:
        ranks = stats.mannwhitneyu(base, side, method="exact")
    else:
        # scipy's own exact distribution holds without ties only.
        method = stats.PermutationMethod(n_resamples=ALL)
        ranks = stats.mannwhitneyu(base, side, method=method)
    pairs = min(m, n)
    d = b[:pairs] - a[:pairs]
    flips = stats.permutation_test(
        (a[:pairs], b[:pairs]), difference, permutation_type="samples", n_resamples=ALL,
        vectorized=True,
    )
    paired = stats.ttest_rel(b[:pairs], a[:pairs])
    result = {
        "kind": kind,
        "base": base.tolist(),
        "side": side.tolist(),
        "log": log,
        "difference": float(np.mean(b) - np.mean(a)),
        "freedom": float(welch.df),
        "interval": interval,
        "welch_p": float(welch.pvalue),
        "permutation_p": float(permutation.pvalue),
        "mann_whitney_p": float(ranks.pvalue),
        "sign_flip_p": float(flips.pvalue),
        "paired_interval": list(paired.confidence_interval(0.95)),
        "paired_p": float(paired.pvalue),
        "population_deviation": float(np.std(base)),
        "sample_deviation": float(np.std(base, ddof=1)),
    }
    # No variance: scipy has no interval, and JSON no NaN.
    def clean(value):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, list):
            return [clean(v) for v in value]
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items()}
        return value

    return clean(result)


def runs(effect, deviation):
    for n in itertools.count(2):
        if 2 / math.comb(2 * n, n) > 0.05:
            continue
        df = 2 * n - 2
        reach = stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)
        if reach * deviation * math.sqrt(2 / n) <= effect:
            return n


def main():
    rng = np.random.default_rng(SEED)
    cases = [case(rng, index) for index in range(CASES)]
    groups = [cases[i : i + GROUP] for i in range(0, CASES, GROUP)]
    q = [list(stats.false_discovery_control([c["permutation_p"] for c in group])) for group in groups]
    large = {"base": [float(f"{v:.6g}") for v in rng.lognormal(3, 0.2, 30)],
             "side": [float(f"{v:.6g}") for v in rng.lognormal(3.1, 0.2, 25)]}
    ties = {"base": rng.poisson(9, 30).astype(float).tolist(),
            "side": rng.poisson(10, 25).astype(float).tolist()}
    for sample in (large, ties):
        sample["student_p"] = float(stats.ttest_ind(sample["side"], sample["base"]).pvalue)
        sample["mann_whitney_p"] = float(
            stats.mannwhitneyu(sample["base"], sample["side"], method="asymptotic").pvalue)
    power = [[effect, deviation, runs(effect, deviation)]
             for effect in (0.03, 0.05, 0.2) for deviation in (0.005, 0.02, 0.08)]
    document = {"cases": cases, "q": q, "large": [large, ties], "power": power}
    # A case a line, so that a change can be read.
    body = ",\n".join(json.dumps(c) for c in cases)
    rest = json.dumps({k: document[k] for k in ("q", "large", "power")})[1:]
    print('{"cases": [\n' + body + "\n],\n" + rest)


main()
