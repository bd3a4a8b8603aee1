"""Measuring the roles of the model on the Explore page, if they are not known yet."""

from __future__ import annotations

from mha_viz.errors import Cancelled, MhaVizError
from mha_viz.models import catalog
from mha_viz.numerals import done
from mha_viz.ui import address, studies
from mha_viz.ui.annotated import built_in
from mha_viz.ui.parts import complain, guarded, plain
from mha_viz.ui.studies import sentences_given
from mha_viz.ui.study_progress import progress


def show_measuring(name: str) -> None:
    """Show the progress of the study of this model over the built-in sentences, while one runs."""
    try:
        model = catalog.resolve(name)
    except MhaVizError:  # a model that is no longer offered
        return
    study = studies.under_way(model, built_in().digest)
    failed = studies.failed(model, built_in().digest)
    if study is not None:
        progress(study, lambda job: f"The roles of {plain(model.label)} are being measured: {done(job.fraction)}")
    elif failed is not None and not isinstance(failed[0], Cancelled):  # who stopped it knows; others need not
        complain(failed[0])


@guarded()
def start() -> None:
    """Measure the model on the page, or join the study under way."""
    where = address.url().where
    studies.start(catalog.resolve(where.model) if where.model else catalog.default(), sentences_given())
