"""What only the items can tell: whether planned contrasts and predictions name something that there will be."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow.compute as pc

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.config import Study
from counterbalance.designs import get_design
from counterbalance.designs.family import too_few_draws
from counterbalance.errors import ConfigError
from counterbalance.prereg.predictions import Comparison, Prediction

Sizes = Mapping[str, Sequence[int]]


def require_possible(study: Study, predictions: Sequence[Prediction]) -> None:
    """Refuse what cannot come out, before it is frozen and replies are bought.

    That is: contrasts and predictions of slots that no item has, and fewer draws than the family of tests needs.

    Raises
    ------
    ConfigError
        With everything that is wrong: file, name, what there is and what to do.
    """
    sizes = {entry.id: _option_counts(study, entry.id) for entry in study.used_datasets()}
    designs = dict.fromkeys(experiment.design for experiment in study.config.experiments)
    problems = [text for name in designs for text in get_design(name).absent(study, sizes)]
    problems += [*too_few_draws(study), *_predicted(study, predictions, sizes)]
    if problems:
        raise ConfigError("\n".join(problems))


def _option_counts(study: Study, dataset: str) -> list[int]:
    items = read_table(study.layout.items(dataset), SCHEMAS["items"], ["option_ids"])
    return sorted(pc.unique(pc.list_value_length(items.column("option_ids"))).to_pylist())


def _predicted(study: Study, predictions: Sequence[Prediction], sizes: Sizes) -> Iterator[str]:
    for entry in predictions:
        for target in [entry, entry.than] if isinstance(entry, Comparison) else [entry]:
            design = get_design(study.experiment(target.experiment).design)
            why = design.beyond(target.quantity, sizes[target.subset])
            if why is not None:
                yield (
                    f"{study.config.preregistration}, prediction {entry.id}: {target.quantity} on data set "
                    f"{target.subset}: {why}; correct the quantity, or remove the prediction"
                )
