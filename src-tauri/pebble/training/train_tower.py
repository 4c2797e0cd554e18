"""Train Pebble's tower on one CUDA GPU, before the frozen text part.

usage: train_tower.py OUT SECONDS [CHECKPOINT]     writes OUT/tower.safetensors (32 bit) again and again, and OUT/tower.txt

SECONDS count from the start of the program (or from START, seconds since 1970) to the end of its last check. Pictures are drawn on the GPU from scenes that workers think up.
"""
import json
import os
import random
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import dialogues as D
import pictures as P
import rows as R
import train as T
from tower import CFG, IDS, Block, Seer, norm, W

DEV = "cuda" if torch.cuda.is_available() else "cpu"
KIND = torch.bfloat16 if DEV == "cuda" else torch.float32
PATCH = CFG["patch_size"]
CELL = PATCH * CFG["pooling_kernel_size"]
#: (height, width) of what the tower sees, for the usual shapes of pictures within 70 tokens, and their shares.
GRIDS, GRID_SHARES = [(384, 384), (336, 432), (432, 336), (288, 480), (480, 288)], [50, 15, 15, 10, 10]
PICTURES = int(os.environ.get("PICTURES", 256))
#: Dialogues of a step and their length. One shape for all steps: what is compiled is compiled once, and memory is used again.
ROWS, LENGTH = PICTURES * 3 // 2, 209
WORKERS = int(os.environ.get("WORKERS", 10))
#: The subjects of images: shares, and the skills asked about each; the shares of a run from a checkpoint are those at
#: its end.
SUBJECTS = {"color": (14, ["color", "shape"]), "see": (3, ["see", "color"]), "count": (16, ["count", "count"]), "place": (18, ["place", "place", "color", "shape"]),
            "number": (14, ["number"]), "word": (20, ["word"]), "both": (3, ["both"]), "same": (9, ["same", "changed"]), "changed": (9, ["changed", "same"]), "more": (10, ["more"])}
if len(sys.argv) > 3:
    SUBJECTS = {"color": (18, ["color", "color", "shape"]), "see": (2, ["see", "color"]), "count": (20, ["count", "count"]), "place": (11, ["place", "color", "shape"]),
                "number": (8, ["number"]), "word": (9, ["word"]), "both": (3, ["both"]), "same": (24, ["same", "changed"]), "changed": (28, ["changed", "same"]), "more": (6, ["more"])}
#: Share of the time in which only the probe teaches; and the step from which five are profiled, if any.
LOOK_FIRST, PROFILED = float(os.environ.get("LOOK_FIRST", .12)), int(os.environ.get("PROFILED", -9))
NO_COLOR, LETTER = len(P.COLORS), len(P.KINDS)
SLOTS = P.MOST


def batch(r, rows, grid, count, skills=None):
    """`count` pictures or a few more and the dialogues about them, as arrays; with `skills`, one question each, for checks."""
    height, width = GRIDS[grid]
    tokens = (height // CELL) * (width // CELL)
    scenes, made_rows = [], []
    while len(scenes) < count:
        subject = r.choice(skills) if skills else r.choices(list(SUBJECTS), [s for s, _ in SUBJECTS.values()])[0]
        made = P.scenes_for(r, subject, width, height)
        if len(scenes) + len(made) > count:
            continue
        at = list(range(len(scenes), len(scenes) + len(made)))
        scenes += made
        asked = [subject] if skills else SUBJECTS[subject][1]
        turns = [(s, *P.question(r, s, made)) for s in asked]
        if skills:
            made_rows.append((rows.row(len(made), tokens, [turns[0][1:]]), at, subject))
            continue
        if r.random() < .08:
            turns.append(("text", *R.text_turn(r)))
        thinking, system = r.random() < .12, r.choice(D.NEUTRAL) if r.random() < .1 else ""
        before = [R.text_turn(r)] if r.random() < .12 else []
        # Now and then all questions about one picture in one dialogue.
        for g in [turns] if len(made) == 1 and r.random() < .2 else [[t] for t in turns]:
            made_rows.append((rows.row(len(made), tokens, [t[1:] for t in g], thinking, system, before), at, g[-1][0]))
    made_rows = [g for g in made_rows if len(g[0][0]) <= LENGTH][: None if skills else ROWS]
    things = np.zeros((len(scenes), SLOTS, 9), np.float32)
    things[:, :, 0] = -1
    for i, s in enumerate(scenes):
        for j, t in enumerate(s.things):
            things[i, j, :8] = t
            things[i, j, 8] = list(P.COLORS).index(s.shapes[j][1]) if s.shapes else NO_COLOR
    out = {"grid": grid, "things": things, "ground": np.array([s.ground for s in scenes], np.float32)}
    # Rows beyond the dialogues stay empty.
    ids, target = R.pad([g[0] for g in made_rows] + [([], [])] * (0 if skills else ROWS - len(made_rows)), LENGTH)
    row, at = target[:, 1:].nonzero()
    ids, right = ids[:, :-1], ids[row, at + 1]
    # Places in all rows laid end to end: the host knows them, so that the GPU is never waited for.
    return out | {"ids": ids, "wanted": row * ids.shape[1] + at, "right": right, "row": row, "places": (ids == IDS["image"]).flatten().nonzero()[0],
                  "order": np.array([n for g in made_rows for n in g[1]]), "skills": [g[2] for g in made_rows]}


def as_it_is(b):
    """Arrays go through a worker's pipe as they are: shared tensors would take a file descriptor each."""
    return b


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        r, rows = random.Random(f"train {self.seed} {info.id if info else 0}"), R.Rows()
        while True:
            yield batch(r, rows, r.choices(range(len(GRIDS)), GRID_SHARES)[0], PICTURES)


def render(things, slots, ground, maps, height, width):
    """The images of `pictures.draw`, for all scenes at once [scenes, 3, height, width]."""
    out = ground[:, :, None, None].expand(-1, -1, height, width).contiguous()
    y, x = torch.meshgrid(torch.arange(height, device=out.device) + .5, torch.arange(width, device=out.device) + .5, indexing="ij")
    for slot in range(SLOTS):
        t, here = things[:, slot], slots[slot]
        if not len(here):
            continue
        m, color, cx, cy, rad, turn = t[here, 0].long(), t[here, 1:4], *(t[here, k, None, None] for k in (4, 5, 6, 7))
        dx, dy, c, s = x - cx, y - cy, turn.cos(), turn.sin()
        at = torch.stack([(dx * c + dy * s) / rad, (dy * c - dx * s) / rad], -1)
        cover = F.grid_sample(maps[m][:, None], at, mode="bilinear", padding_mode="zeros", align_corners=False)
        out[here] += cover * (color[:, :, None, None] - out[here])
    return out


def look(b, maps, blur):
    """Pictures as the processor hands them over; with `blur`, as if enlarged from a smaller or reduced from a larger file."""
    height, width = GRIDS[b["grid"]]
    things, ground = b["things"].clone(), b["ground"]
    scale = random.choice([1, 1, .5, .67, 1.5]) if blur else 1
    h, w = round(height * scale), round(width * scale)
    things[:, :, 4:7] *= scale
    out = render(things, b["slots"], ground, maps, h, w)
    out = (out * 255).round_() / 255
    if scale != 1:
        out = F.interpolate(out, (height, width), mode="bicubic", antialias=True, align_corners=False)
        out = (out * 255).round_().clamp_(0, 255) / 255
    return out


def cells(b):
    """The object whose middle is in each pooled cell: (kind or letter, color), the last class for nothing; [pictures,
    rows, columns]."""
    height, width = GRIDS[b["grid"]]
    n, rows, cols = len(b["things"]), height // CELL, width // CELL
    what = torch.full((n, rows, cols), LETTER + len(P.LETTERS), device=DEV)
    color = torch.full_like(what, NO_COLOR)
    t = b["things"]
    i, slot = b["filled"]
    m = t[i, slot, 0].long()
    y, x = (t[i, slot, 5] / CELL).long().clamp(0, rows - 1), (t[i, slot, 4] / CELL).long().clamp(0, cols - 1)
    what[i, y, x] = torch.where(m < LETTER, m, LETTER + (m - LETTER) % len(P.LETTERS))
    color[i, y, x] = t[i, slot, 8].long()
    return what, color


def covers(b, maps):
    """The object over the middle of each patch, likewise [pictures, rows, columns]; a letter takes its whole box."""
    height, width = GRIDS[b["grid"]]
    n, rows, cols = len(b["things"]), height // PATCH, width // PATCH
    what = torch.full((n, rows, cols), LETTER + len(P.LETTERS), device=DEV)
    color = torch.full_like(what, NO_COLOR)
    y, x = torch.meshgrid((torch.arange(rows, device=DEV) + .5) * PATCH, (torch.arange(cols, device=DEV) + .5) * PATCH, indexing="ij")
    for slot, here in enumerate(b["slots"]):
        if not len(here):
            continue
        t = b["things"][here, slot]
        m, (cx, cy, rad, turn) = t[:, 0].long(), (t[:, k, None, None] for k in (4, 5, 6, 7))
        dx, dy = x - cx, y - cy
        at = torch.stack([(dx * turn.cos() + dy * turn.sin()) / rad, (dy * turn.cos() - dx * turn.sin()) / rad], -1)
        inside = F.grid_sample(maps[m][:, None], at, mode="bilinear", padding_mode="zeros", align_corners=False)[:, 0] > .5
        letter = (m >= LETTER)[:, None, None]
        inside = torch.where(letter, (at[..., 0].abs() < .45) & (at[..., 1].abs() < .7), inside)
        name = torch.where(m < LETTER, m, LETTER + (m - LETTER) % len(P.LETTERS))[:, None, None]
        what[here] = torch.where(inside, name, what[here])
        color[here] = torch.where(inside, t[:, 8].long()[:, None, None], color[here])
    return what, color


class Probe(nn.Module):
    """Reads kinds and colors off the states, pooled and of each patch: a second teacher, gone after training."""

    def __init__(self):
        super().__init__()
        n = LETTER + len(P.LETTERS) + 1
        self.heads = nn.ModuleList(nn.Linear(W, k) for k in (n, NO_COLOR + 1, n, NO_COLOR + 1))

    def forward(self, pooled, patches, b, maps):
        """The mean loss over heads, and the share of things whose kind is read right off their cells."""
        total, states = 0, [norm(x).float().flatten(0, 2) for x in (pooled, pooled, patches, patches)]
        for head, x, y, nothing in zip(self.heads, states, (*cells(b), *covers(b, maps)), (.1, .1, .3, .3)):
            weight = torch.ones(head.out_features, device=DEV)
            weight[-1] = nothing
            total = total + F.cross_entropy(head(x), y.flatten(), weight=weight)
        with torch.no_grad():
            what = cells(b)[0].flatten()
            there = what < LETTER + len(P.LETTERS)
            hit = (self.heads[0](states[0]).argmax(-1) == what)
            share = (hit & there).sum() / there.sum()
        return total / 2, share


def to_device(b):
    def go(x):
        return torch.as_tensor(x).to(DEV, non_blocking=True)

    things = torch.as_tensor(b["things"])
    filled = things[:, :, 0] >= 0
    out = {"things": go(things), "ground": go(b["ground"]), "grid": b["grid"], "slots": [go(f.nonzero()[:, 0]) for f in filled.T],
           "filled": tuple(go(x) for x in filled.nonzero(as_tuple=True))}
    return out | {k: go(b[k]).long() for k in ("ids", "wanted", "right", "row", "places", "order")} | {"skills": b["skills"]}


def answers(seer, features, b):
    """(mean loss, whether right for each dialogue): an answer is right if each of its tokens is the likeliest."""
    logits = seer(b["ids"], b["places"], features, b["order"], b["wanted"])
    with torch.no_grad():
        miss = torch.zeros(len(b["ids"]), device=DEV).index_add_(0, b["row"], (logits.argmax(-1) != b["right"]).float())
    return F.cross_entropy(logits, b["right"]), miss == 0


@torch.no_grad()
def check(seer, maps, count, seed):
    """Right and asked, by skill, on fresh pictures of all grids."""
    r, rows, table = random.Random(f"check {seed}"), R.Rows(), {}
    for grid in range(len(GRIDS)):
        for skill in P.SKILLS:
            b = to_device(batch(r, rows, grid, count * (2 if skill in R.PAIRS else 1), [skill]))
            _, right = answers(seer, seer.tower(look(b, maps, False).to(KIND)), b)
            s = table.setdefault(skill, [0, 0])
            s[0] += int(right.sum())
            s[1] += len(right)
    return table


def show(table):
    return " ".join(f"{k} {a / n:.3f}" for k, (a, n) in table.items())


def main():
    out, seconds = sys.argv[1], float(sys.argv[2])
    start = float(os.environ.get("START", time.time()))
    torch.manual_seed(0)
    log = open(f"{out}/tower.txt", "a")

    def say(*words):
        print(f"{time.time() - start:6.1f}s", *words, flush=True)
        print(f"{time.time() - start:6.1f}s", *words, flush=True, file=log)

    loader = iter(torch.utils.data.DataLoader(Stream(time.time_ns() if len(sys.argv) > 3 else 1), batch_size=None, num_workers=WORKERS, prefetch_factor=4 if WORKERS else None, collate_fn=as_it_is))
    seer, probe = Seer().to(DEV), Probe().to(DEV)
    seer.text.to(KIND)
    if len(sys.argv) > 3:
        w = load_file(sys.argv[3])
        seer.tower.load_state_dict({k.removeprefix("tower."): v for k, v in w.items() if k.startswith("tower.")})
        probe.load_state_dict({k.removeprefix("probe."): v for k, v in w.items() if k.startswith("probe.")}, strict=False)
    if os.environ.get("COMPILE", "1") == "1":
        # Layer by layer: a few small programs, instead of thousands of little kernels a step.
        torch._dynamo.config.recompile_limit = 64
        torch._dynamo.config.suppress_errors = True
        Block.forward = torch.compile(Block.forward, dynamic=False)
        T.Layer.forward = torch.compile(T.Layer.forward, dynamic=False)
    maps = torch.from_numpy(np.load(os.environ["ATLAS"]) if "ATLAS" in os.environ else P.atlas()).to(DEV)
    mine = [*seer.tower.parameters(), *probe.parameters()]
    say("tower", sum(p.numel() for p in seer.tower.parameters()), "parameters on", DEV)
    rows = seer.tower.per_layer_rows
    inner = [p for p in seer.tower.layers.parameters() if p.dim() == 2] if os.environ.get("MUON") == "1" else []
    apart = {id(p) for p in (rows, *inner)}
    groups = [([p for p in mine if p.dim() > 1 and id(p) not in apart], .02, 1), ([p for p in mine if p.dim() < 2], 0, 1), ([rows], 0, 3)]
    opts = [torch.optim.AdamW([{"params": p, "weight_decay": decay, "pace": pace} for p, decay, pace in groups], lr=1e-3, betas=(.9, .98), fused=DEV == "cuda")]
    if inner:
        opts.append(torch.optim.Muon([{"params": inner, "pace": 1}], lr=1e-3, weight_decay=.02, adjust_lr_fn="match_rms_adamw"))
    peak, budget = float(os.environ.get("PEAK", 1.2e-3)), seconds - float(os.environ.get("LAST_CHECK", 12))

    def save():
        w = {f"tower.{k}": v for k, v in seer.tower.state_dict().items()} | {f"probe.{k}": v for k, v in probe.state_dict().items()}
        save_file({k: v.detach().float().cpu().contiguous() for k, v in w.items()}, f"{out}/tower.tmp")
        os.replace(f"{out}/tower.tmp", f"{out}/tower.safetensors")

    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) if PROFILED >= 0 else None
    step, talked, asked, table, shown, saved, losses = 0, 0, 0, {}, time.time(), time.time(), []
    begin, fed, last = None, 0., (0, time.time())
    while True:
        asked_at = time.time()
        b = to_device(next(loader))
        fed += time.time() - asked_at
        begin = begin or time.time()
        frac = min(1., (time.time() - begin) / max(1., start + budget - begin))
        talked += frac >= LOOK_FIRST
        # The learning rate starts gently once more when the text part joins.
        lr = peak * min(1, (step + 1) / 150) * (min(1, talked / 150) if talked else 1) * (.5 + .5 * np.cos(np.pi * max(0, frac - .1) / .9)) + 1e-6
        for g in (g for opt in opts for g in opt.param_groups):
            g["lr"] = lr * g["pace"]
        if step == PROFILED:
            profile.__enter__()
        with torch.no_grad():
            pixels = look(b, maps, True).to(KIND)
        states, patches = seer.tower.encode(pixels)
        teacher, read = probe(states, patches, b, maps)
        if frac < LOOK_FIRST:
            # Nothing to say before anything is recognised: the first steps leave the text part out.
            total, loss = teacher, teacher
        else:
            loss, right = answers(seer, seer.tower.project(states), b)
            total = loss + teacher * max(.1, .6 - frac)
        for p in mine:
            p.grad = None
        total.backward()
        nn.utils.clip_grad_norm_(mine, 1.)
        for opt in opts:
            opt.step()
        step += 1
        if step == PROFILED + 5:
            torch.cuda.synchronize()
            profile.__exit__(None, None, None)
            say(profile.key_averages().table(sort_by="cuda_time_total", row_limit=25, max_name_column_width=60))
        losses.append(torch.stack([loss.detach(), teacher.detach(), read]))
        asked += len(b["skills"])
        if step % 10 == 0 and frac >= LOOK_FIRST:
            for s, o in zip(b["skills"], right.tolist()):
                c = table.setdefault(s, [0, 0])
                c[0] += o
                c[1] += 1
        if time.time() - shown > 8:
            lm, pr, seen = torch.stack(losses).mean(0).tolist()
            say(f"step {step} at {(step - last[0]) / (time.time() - last[1]):.1f}/s, waited {fed:.1f} s for data, asked {asked} lr {lr:.1e} loss {lm:.4f} probe {pr:.4f} read {seen:.3f} |", show(dict(sorted(table.items()))))
            shown, table, losses, fed, last = time.time(), {}, [], 0., (step, time.time())
        if time.time() - saved > 20:
            save()
            saved = time.time()
        if frac >= 1:
            break
    save()
    with torch.compiler.set_stance("force_eager"):
        final = check(seer, maps, int(os.environ.get("CHECK", 40)), 1)
    say("steps", step, "check:", show(final))
    say("all", sum(a for a, _ in final.values()) / sum(n for _, n in final.values()))


if __name__ == "__main__":
    main()
