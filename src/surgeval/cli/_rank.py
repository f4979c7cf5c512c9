"""`surgeval rank`: models in places, by their answers to the same questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.cli._single_file import writes_pages
from surgeval.console import JsonOption, claim_folder, console, print_frame, print_json, progress
from surgeval.errors import visible

if TYPE_CHECKING:
    from surgeval.report import RankingStudy


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rank")(writes_pages(rank_models))


def rank_models(
    results: Annotated[
        list[Path],
        typer.Argument(help="One results file (CSV) or run folder per model.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for report.html, tables, figures.")] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Level of the tests.")] = 0.05,
    n_boot: Annotated[int, typer.Option("--n-boot", help="Resamples of each test.")] = 10_000,
    scheme: Annotated[str, typer.Option("--scheme", help="cluster (videos), two_level or question.")] = "cluster",
    sided: Annotated[str, typer.Option("--sided", help="two or one.")] = "two",
    correction: Annotated[str, typer.Option("--correction", help="none, holm or bonferroni.")] = "none",
    collapse: Annotated[
        str, typer.Option("--collapse", help="pairwise, upper_bound, wins, leader, chain or closure.")
    ] = "pairwise",
    resolve: Annotated[str, typer.Option("--resolve", help="Which ties are broken: top3, all or none.")] = "top3",
    win_ties: Annotated[
        str, typer.Option("--win-ties", help="Joint winners: split, all, none, random or head_to_head.")
    ] = "split",
    point: Annotated[str, typer.Option("--point", help="flat (questions) or macro (videos) count the same.")] = "flat",
    min_clusters: Annotated[int, typer.Option("--min-clusters", help="Videos a bucket needs to decide.")] = 6,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resamples.")] = 0,
    baseline: Annotated[
        list[str] | None, typer.Option("--baseline", metavar="NAME", help="A model to be beaten (repeatable).")
    ] = None,
    max_unscored: Annotated[
        float,
        typer.Option("--max-unscored", min=0, max=1, help="Share of questions some models may have no verdict for."),
    ] = 0.05,
    stability: Annotated[
        int, typer.Option("--stability", min=0, help="Resamples of the whole ranking; 0 leaves it out.")
    ] = 200,
    title: Annotated[str, typer.Option("--title", help="The page's title.")] = "Ranking",
    json: JsonOption = False,
) -> None:
    """Rank models: tests over videos in each bucket, Copeland over buckets, win rates for ties at the top.

    A model is called after its file (without .csv) or its run folder. Columns: qID, video, group, ood, correctness
    (true/false/1/0); all models must have answered the same questions.

    Example: [bold]surgeval rank runs/net runs/twin prior.csv --baseline prior --out runs/ranking[/bold]
    """
    from surgeval.report import rank_runs, study_ranking, write_ranking_report
    from surgeval.stats import RankOptions

    options: dict[str, Any] = {
        "alpha": alpha, "n_boot": n_boot, "scheme": scheme, "sided": sided, "correction": correction,
        "collapse": collapse, "resolve": resolve, "win_ties": win_ties, "point": point,
        "min_clusters": min_clusters, "seed": seed,
    }  # fmt: skip
    RankOptions(**options)  # a misspelt option is told before files are read
    if out is not None:
        claim_folder(out, "report.html")
    with progress("steps") as bar:
        task = bar.add_task("ranking", total=None)
        ranking = rank_runs(results, max_unscored=max_unscored, **options, baselines=baseline or ())
        bar.update(task, description="resampling the ranking")
        study = study_ranking(ranking, outer=stability)
        bar.update(task, description="writing")
        page = write_ranking_report(study, out, title=title) if out is not None else None
    if json:
        print_json({**study.to_json(), "report": str(page) if page else None})
    else:
        _print(study, page)


def _print(study: RankingStudy, page: Path | None) -> None:
    say = console().print
    heads = {"win_rate": "win rate", "mean_accuracy": "accuracy", "beats_baselines": "beats baselines"}
    print_frame("ranking", study.ranking.to_frame().drop("win_rate_error").rename(heads, strict=False))
    say()
    if study.places is not None:
        print_frame("places on resampled videos", study.places.to_frame())
        say()
    if study.ranking.gate is not None:
        admitted = [name for name, passed in study.ranking.gate.final.items() if passed]
        say(f"better than every baseline: {', '.join(map(visible, admitted)) or 'none'}")
    for part in (study.without_bucket, study.without_model):
        if part is not None:
            turned = [name for name, pairs in zip(part.left_out, part.swaps, strict=True) if pairs]
            say(f"order turns round without the {part.kind}: {', '.join(map(visible, turned)) or 'none'}")
    for note in study.ranking.notes:
        say(f"note: {visible(note)}")
    if page is not None:
        say(f"open {page}")
