"""Slot accuracies of a cell as ratios over items, with the covariance that clustering by item gives them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterbalance.stats.counts import Array, SlotCounts
from counterbalance.stats.resampling import Seed, weight_blocks


@dataclass(frozen=True)
class SlotMeans:
    """Slot accuracies of one or many resamples.

    Attributes
    ----------
    mean
        Accuracy by slot, sum of correct over sum of calls, shape (resamples, slots). A slot that holds no call in a
        resample has the overall accuracy there, and weight 0.
    weight
        Share of the calls by slot, same shape.
    covariance
        Of `mean`, over items, shape (resamples, slots, slots).
    """

    mean: Array
    weight: Array
    covariance: Array

    @property
    def overall(self) -> Array:
        """Accuracy over all calls, shape (resamples,)."""
        return np.asarray((self.weight * self.mean).sum(axis=1))

    def contrast(self, coefficients: Array) -> tuple[Array, Array]:
        """Return value and standard error of linear contrasts of the slot accuracies.

        `coefficients` has shape (contrasts, slots); both answers have shape (resamples, contrasts).
        """
        variance = np.einsum("js,bst,jt->bj", coefficients, self.covariance, coefficients, optimize=True)
        # The algebraic variance is a sum of squares; only rounding can take it below zero.
        return self.mean @ coefficients.T, np.sqrt(np.maximum(variance, 0.0))


def observed_means(counts: SlotCounts) -> SlotMeans:
    """Return the slot accuracies of the data: one row. Needs at least two items."""
    return _slot_means(np.ones((1, counts.n_items)), _moments(counts), counts)


def resampled_means(counts: SlotCounts, n_resamples: int, seed: Seed) -> Iterator[SlotMeans]:
    """Yield the slot accuracies of bootstrap samples of items, block by block."""
    moments = _moments(counts)
    for weights in weight_blocks(counts.n_items, n_resamples, seed, moments.shape[1]):
        yield _slot_means(weights, moments, counts)


def item_parts(counts: SlotCounts) -> Array:
    """Return what each item contributes to the slot accuracies, shape (items, slots); the column means are these.

    With equal numbers of calls a row is the item's own accuracy by slot. Otherwise it is the ratio's linearisation,
    r_s + Q (c_qs - n_qs r_s) / N_s. Source: Cochran (1977), Sampling Techniques, section 6.4. Every slot needs a call.
    """
    calls = counts.n.sum(axis=0)
    mean = counts.correct.sum(axis=0) / calls
    return np.asarray(mean + counts.n_items * (counts.correct - counts.n * mean) / calls)


def _moments(counts: SlotCounts) -> Array:
    pairs = [(counts.correct, counts.correct), (counts.correct, counts.n), (counts.n, counts.n)]
    squares = [np.einsum("qs,qt->qst", left, right).reshape(counts.n_items, -1) for left, right in pairs]
    return np.hstack([counts.correct, counts.n, *squares])


def _slot_means(weights: Array, moments: Array, counts: SlotCounts) -> SlotMeans:
    """Return means and linearised covariance under item weights, shape (resamples, items).

    The covariance of ratios r_s = C_s / N_s over Q items is the sum over items of
    (c_qs - n_qs r_s)(c_qt - n_qt r_t) / (N_s N_t), times Q / (Q - 1). Source: Cochran (1977), Sampling Techniques,
    section 6.4. With equal n it is the plain covariance of the items' slot accuracies over Q.
    """
    k, q = counts.n_slots, counts.n_items
    sums = weights @ moments
    hits, calls = sums[:, :k], sums[:, k : 2 * k]
    hit_hit, hit_call, call_call = np.moveaxis(sums[:, 2 * k :].reshape(-1, 3, k, k), 1, 0)
    total = calls.sum(axis=1, keepdims=True)
    mean = np.where(calls > 0, hits / np.maximum(calls, 1), hits.sum(axis=1, keepdims=True) / np.maximum(total, 1))
    products = (
        hit_hit
        - hit_call * mean[:, None, :]
        - np.swapaxes(hit_call, 1, 2) * mean[:, :, None]
        + call_call * mean[:, :, None] * mean[:, None, :]
    )
    scale = np.maximum(calls[:, :, None] * calls[:, None, :], 1)
    return SlotMeans(mean, calls / np.maximum(total, 1), products / scale * q / (q - 1))
