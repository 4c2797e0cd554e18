"""Rounds by turns, their medians, and tables in Markdown: what the benches of processors and of cards share."""
import os
import statistics
import sys

from engines import others

# The name of our own column.
OURS = "ours"


def measure(engines, work, forms, rounds):
    """All figures, by row and engine. The one that begins is another one in each round."""
    figures = {}
    for turn in range(rounds):
        for form in forms:
            taking_part = [engine for engine in engines if engine.measures(work, form)]
            shift = turn % len(taking_part)
            for engine in taking_part[shift:] + taking_part[:shift]:
                print(f"{work.name}, {form}, {engine.name}, round {turn + 1}", file=sys.stderr)
                for row, value in getattr(engine, form)(work).items():
                    figures.setdefault(row, {}).setdefault(engine.name, []).append(value)
    return figures


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def cell(values):
    if not values:
        return ""
    if len(values) == 1:
        return number(values[0])
    return f"{number(statistics.median(values))} [{number(min(values))}–{number(max(values))}]"


def ratio(middle, peer):
    return f"{middle[OURS] / middle[peer]:.2f}" if OURS in middle and middle.get(peer) else ""


def table(name, figures, engines, peers, before):
    """A row for each measurement: medians and ranges of all that were measured, then ours to each of `peers`."""
    columns = [engine.name for engine in engines if any(engine.name in of for of in figures.values())]
    peers = [peer for peer in peers if peer in columns and OURS in columns]
    titles = ["measurement", *columns, *(f"{OURS} / {peer}" for peer in peers)]
    print(f"\n### {name}\n\n| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for row, of in figures.items():
        middle = {engine: statistics.median(values) for engine, values in of.items()}
        cells = [*(cell(of.get(column)) for column in columns), *(ratio(middle, peer) for peer in peers)]
        print(f"| {row} | " + " | ".join(cells) + " |")
    print(f"\nLoad of the computer before {loads(before)}, after {loads(os.getloadavg())}; cores that other programs")
    print(f"used meanwhile: {cell(others)} of {os.cpu_count()}.", flush=True)
    others.clear()


def loads(averages):
    return " ".join(f"{average:.1f}" for average in averages)
