"""`surgeval rank`: models in places, by their answers to the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.cli.single_file import writes_pages
from surgeval.console import claim_folder, print_frame, print_json, progress_bar, rich_console
from surgeval.console.options import JsonOption, TablesOption
from surgeval.console.panels import RUNNING, SCORING, grouped
from surgeval.errors import visible
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.report import RankingStudy

TIES = "Advanced: ties"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rank")(writes_pages(rank_models))


@grouped(
    {
        SCORING: "alpha resamples scheme sided correction point min_clusters max_unscored seed",
        TIES: "collapse resolve win_ties",
        RUNNING: "stability calibration title",
    }
)
def rank_models(
    results: Annotated[
        list[Path],
        typer.Argument(help="One results file (CSV) or run folder per model, or a folder of runs.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, tables, figures.")] = None,
    test: Annotated[
        str,
        typer.Option(help="bootstrap (the challenge's rule) or exchange (honest at few videos)."),
    ] = "bootstrap",
    alpha: Annotated[float, typer.Option(help="Level of the tests.")] = 0.05,
    resamples: Annotated[int, typer.Option(help="Resamples of each test.")] = 10_000,
    scheme: Annotated[str, typer.Option(help="cluster (videos), two_level or question.")] = "cluster",
    sided: Annotated[str, typer.Option(help="two or one.")] = "two",
    correction: Annotated[str, typer.Option(help="none, holm or bonferroni.")] = "none",
    collapse: Annotated[str, typer.Option(help="pairwise, upper_bound, wins, leader, chain or closure.")] = "pairwise",
    resolve: Annotated[str, typer.Option(help="Which ties are broken: top3, all or none.")] = "top3",
    win_ties: Annotated[str, typer.Option(help="Joint winners: split, all, none, random or head_to_head.")] = "split",
    point: Annotated[str, typer.Option(help="flat (questions) or macro (videos) count the same.")] = "flat",
    min_clusters: Annotated[int, typer.Option(help="Videos a bucket needs to decide.")] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    baseline: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A model to be beaten (repeatable).")
    ] = None,
    max_unscored: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of questions some models may have no verdict for."),
    ] = 0.05,
    stability: Annotated[int, typer.Option(min=0, help="Resamples of the whole ranking; 0 leaves it out.")] = 200,
    calibration: Annotated[
        int, typer.Option(min=0, help="Challenges of equal models, for false claims; 0 leaves it out.")
    ] = 200,
    feedback: Annotated[Path | None, typer.Option(help="Folder for a page per team with its own answers.")] = None,
    feedback_references: Annotated[
        bool, typer.Option("--feedback-references", help="Show reference answers to the teams.")
    ] = False,
    title: Annotated[str, typer.Option(help="The page's title.")] = "Ranking",
    tables: TablesOption = None,
    json: JsonOption = False,
) -> int:
    """Rank models: tests over videos in each bucket, Copeland over buckets, win rates for ties at the top.

    A model is called after its file (without .csv) or its run folder. Columns: qID, video, group, ood, correctness
    (true/false/1/0); all models must have answered the same questions. Of a folder of runs those are ranked that
    know right and wrong; runs of two protocols are refused. A submission that must not be ranked (disqualified, or
    with too many answers that no judge decided) is reported and left out: exit code 1.

    Example: [bold]surgeval rank runs/net runs/twin prior.csv --baseline prior --out runs/ranking[/bold]
    """
    from surgeval.pages import table_formats
    from surgeval.report import (
        rank,
        read_entrants,
        study_ranking,
        verdicts_of,
        write_feedback,
        write_ranking_page,
    )
    from surgeval.stats import RankOptions

    options: dict[str, Any] = {
        "alpha": alpha, "resamples": resamples, "scheme": scheme, "sided": sided, "correction": correction,
        "collapse": collapse, "resolve": resolve, "win_ties": win_ties, "point": point,
        "min_clusters": min_clusters, "seed": seed, "test": test,
    }  # fmt: skip
    RankOptions(**options)  # a misspelt option is told before files are read
    if out is not None:
        claim_folder(out, "report.html")
    if feedback is not None:
        claim_folder(feedback, "index.html")
    with progress_bar("pages") as bar:
        bar.phase("reading")
        entrants = read_entrants(results)
        verdicts = {name: verdict for name, verdict in verdicts_of(results).items() if name in entrants.tables}
        bar.phase("ranking")
        ranking = rank(entrants, **options, baselines=baseline or (), max_unscored=max_unscored)
        bar.phase("resampling the ranking")
        study = study_ranking(
            ranking, outer=stability, challenges=calibration, tables=entrants.tables, verdicts=verdicts
        )
        bar.phase("writing the page")
        with table_formats(*tables or ()):
            page = write_ranking_page(study, out, title=title) if out is not None else None
        index = None
        if feedback is not None:
            bar.phase("writing the teams' pages")
            index = write_feedback(study, entrants.tables, feedback, references=feedback_references, progress=bar.reach)
    if json:
        told: dict[str, Any] = {"not_ranked": dict(entrants.refused)}
        told |= {"report": str(page) if page else None, "feedback": str(index) if index else None}
        print_json({**study.to_json(), **told})
    else:
        _print(study, page, index)
    return 1 if entrants.refused else 0


def _print(study: RankingStudy, page: Path | None, index: Path | None) -> None:
    from surgeval.report import findings, leading, terminal_tables

    say = rich_console().print
    for text in (leading(study), *findings(study)):
        say(visible(text.replace("\u00a0", " ")))
    ranking = study.ranking
    models, buckets = counted(len(ranking.models), "model"), counted(len(ranking.buckets), "bucket")
    say(f"{models}, {counted(sum(ranking.questions), 'question')} in {buckets}")
    say()
    for table in terminal_tables(study):
        print_frame(table.title, table.frame)
        if table.note:
            say(table.note)
        say()
    for part in (study.without_bucket, study.without_model):
        if part is not None:
            turned = [name for name, pairs in zip(part.shown, part.swaps, strict=True) if pairs]
            say(f"order turns round without the {part.kind}: {', '.join(map(visible, turned)) or 'none'}")
    for path in (page, index):
        if path is not None:
            say(f"open {path}")
