"""The quantities of a multiple-choice experiment, in words."""

# Term, quantity names, meaning.
GLOSSARY = (
    ("Slot", "", "A place in the list of options, counted from 1; the label in front of it is what the model sees."),
    ("Order", "", "One arrangement of an item's options. All models see the same prompts."),
    (
        "Accuracy",
        "accuracy, accuracy.slot_J",
        "Share of answers that are correct; by slot: among trials whose correct option stood in that slot. Replies "
        "without an answer are not counted in it and are listed apart.",
    ),
    (
        "Picks",
        "picks.slot_J, picks_when_wrong.slot_J",
        "Share of answers that fell on a slot, whatever stood there. Over balanced orders, a respondent that looks "
        "only at content picks every slot equally often.",
    ),
    (
        "V",
        "V.published, V.published.question, V.bergsma, V.bergsma.question, V.corrected",
        "Cramér's V between the correct option's slot and being correct: 0 for no association. As published it is "
        "biased upwards and never reaches 0 in noisy data; Bergsma's version removes the bias for independent calls; "
        "the corrected one allows for questions with order effects of their own, and its interval resamples whole "
        "questions.",
    ),
    (
        "Slot relabelling",
        "relabelling.accuracy, relabelling.picks",
        "The primary tests. Under the null the slots of a question are exchangeable; slots are relabelled at random "
        "within each question and the spread between slots is compared. Accuracy and picks are tested apart.",
    ),
    (
        "Recentred bootstrap",
        "recentred.accuracy",
        "Sensitivity check of the relabelling test: questions are resampled and the statistic is moved to what it "
        "would be without an effect.",
    ),
    ("Holm p", "p_adjusted", "The p-value corrected for the number of cells in the family that the plan fixed."),
    (
        "χ², ρ, mechanism",
        "chi2.published, rho.published, rho.published.question, mechanism.v0_1, mechanism.v0_2",
        "The published method, kept for comparison: Pearson's χ² over single calls, Spearman's ρ between slot and "
        "accuracy, and the label derived from both. It treats all calls on one question as independent.",
    ),
    (
        "Shape",
        "shape.linear, shape.first, shape.last, shape.middle, shape.label, shape.support",
        "Which pattern explains the accuracies by slot: a steady trend, the first slot against the rest, the last, or "
        "those between; undetermined where several cannot be told apart. Support: the share of resamples of items in "
        "which a shape fits best.",
    ),
    (
        "Smallest V it would have shown",
        "detectable_V.family, detectable_V",
        "The V that this cell would have found with the stated power, given its number of items, its accuracy and its "
        "own noise, at the level that the correction for all tests leaves; the second, were it tested alone.",
    ),
    (
        "Slot bonus",
        "slot_bonus.slot_J, label_logprob.slot_J, label_prior.slot_J, label_mass",
        "From log-probabilities, or from a vendor's own choice probabilities where the read is `decide`: what a slot "
        "adds to the option in it, in nats, with the content taken out. "
        "+0.69 nats doubles the odds.",
    ),
    (
        "Consistency",
        "consistency, flip_rate, usual_share, unstable_items",
        "Share of items answered with the same option in every order; of those whose option changes; and how often an "
        "item gets its most frequent option. Items whose accuracy differs between slots are "
        "unstable, and only they can show an effect on accuracy.",
    ),
    (
        "Repeat floor",
        "disagreement.same_order, disagreement.other_order, disagreement.excess",
        "How often two calls of one item choose different options: in the same order, which is the model's own "
        "unsteadiness, and in two different orders. Only what the second is above the first is an effect of order.",
    ),
    (
        "Agreement of two reads",
        "agreement@with=E, agreement.every_order@with=E, agreement.kappa@with=E",
        "Where experiment E lets the same model generate letters for the same items in the same orders: how often the "
        "likeliest label is the letter that it writes; for which items in every order; and Cohen's kappa, the "
        "agreement beyond what both reads' picks by slot would give by chance.",
    ),
    ("Accuracy band", "band", "Low, middle or high accuracy by the plan's edges. A description, not a filter."),
)
