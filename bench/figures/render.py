# SPDX-License-Identifier: BSD-3-Clause
"""
What people look at: of each figure a table, data, a plot and what the page needs (.json); the page of all figures.

Plots are drawn by gnuplot; without it there are tables and data only. Curves differ by colour (Okabe and Ito's, that all eyes
tell apart), by dashes and by marks, so they can be told in grey, too.
"""
import html, json, os, shutil, subprocess

SIMULATED = "simulated, in virtual time"
COLOURS = ["#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"]
TICKS = 16  # labels on an axis that does not count bytes, at most
KINDS = {"calibration": "the model was set to give this number", "prediction": "follows from the model and our code"}
VERDICTS = {None: "", True: ", met", False: ", MISSED"}


def places(y):
    return "-" if y is None else f"{y:.0f}" if abs(y) >= 1000 else f"{y:.1f}" if abs(y) >= 100 else f"{y:.3f}"


def size(x):
    if isinstance(x, str):
        return x
    for unit, n in (("M", 1 << 20), ("K", 1 << 10)):
        if x >= n and x % n == 0:
            return f"{int(x / n)}{unit}"
    return f"{x:g}"


def x_name(figure, x):
    return size(x) if figure.get("x", "bytes") == "bytes" else f"{x}" if isinstance(x, str) else f"{x:g}"


def all_x(curves):
    seen = dict.fromkeys(x for points in curves.values() for x in points)
    return sorted(seen) if all(isinstance(x, float | int) for x in seen) else list(seen)


def claim_line(c):
    got = "not measured: " + c["why"] if c["value"] is None else places(c["value"])
    paper = f"; paper {places(c['paper'])}" if c.get("paper") is not None else ""
    ratio = f", ratio {c['ratio']:.3f}" if c["ratio"] is not None else ""
    target = f"; target {c['target']}{VERDICTS[c['met']]}" if c.get("target") else ""
    return f"{c['what']}: {got}{paper}{ratio}{target} ({c['kind']}, {c['section']})"


def reasons(figure, judged):
    """of claims without a value: why"""
    why = {c["name"]: c["missing"] for c in figure["curves"] if c.get("missing")}
    for c in judged:
        names = [str(c.get(k)).split()[0] for k in ("of", "to") if c.get(k)]
        c["why"] = next((why[n] for n in names if n in why), c.get("missing", ""))
    return judged


# ---- one figure ------------------------------------------------------------------------------------------------------


def table(figure, curves, judged):
    shown = [c for c in figure["curves"] if curves[c["name"]]]
    lines = [f"{figure['id']}: {figure['title']}", figure["paper"],
             f"{SIMULATED}, model {figure['model']}; {figure.get('y', '')}", ""]
    if figure.get("note"):
        lines += [figure["note"].strip(), ""]
    widths = [max(12, len(c["label"])) for c in shown]
    if shown:
        first = max([len(figure.get("x", "bytes"))] + [len(x_name(figure, x)) for x in all_x(curves)]) + 2
        lines.append(f"{figure.get('x', 'bytes'):<{first}}" + "".join(f"{c['label']:>{w + 2}}" for c, w in zip(shown, widths)))
        for x in all_x(curves):
            row = (f"{places(curves[c['name']].get(x)):>{w + 2}}" for c, w in zip(shown, widths))
            lines.append(f"{x_name(figure, x):<{first}}" + "".join(row))
        lines.append("")
    lines += [f"not measured: {c['label']}: {c['missing']}" for c in figure["curves"] if c.get("missing")]
    said = figure.get("level", []) + figure.get("point", [])
    lines += [f"paper: {p['label']}: {places(p['y'])} ({p['section']})" for p in said]
    return "\n".join(lines + [claim_line(c) for c in judged]) + "\n"


def data(figure, curves):
    shown = [c for c in figure["curves"] if curves[c["name"]]]
    lines = [f"# {figure['id']} {figure['title']}; {SIMULATED}; {figure.get('y', '')}",
             "\t".join([figure.get("x", "bytes")] + [c["label"] for c in shown])]
    for x in all_x(curves):
        ys = (curves[c["name"]].get(x) for c in shown)
        lines.append("\t".join([str(x) if isinstance(x, str) else f"{x:.12g}"] + ["?" if y is None else f"{y:.6g}" for y in ys]))
    return "\n".join(lines) + "\n"


def quoted(text):
    return '"' + text.replace("\\", "").replace('"', "'").replace("_", "\\\\_").replace("{", "(").replace("}", ")") + '"'


def ticks(figure, xs):
    """Places on a numeric x axis with their labels: each x, or of a long series every k-th, the last one always"""
    some = xs[::-1][::1 if figure.get("x", "bytes") == "bytes" else -(-len(xs) // TICKS)][::-1]
    return ", ".join(f'"{x_name(figure, x)}" {x!r}' for x in some)


def gnuplot_script(figure, curves, path):
    shown = [c for c in figure["curves"] if curves[c["name"]]]
    bars = any(isinstance(x, str) for x in all_x(curves))
    below = f"\\n{{/*0.8 {SIMULATED}, model {figure['model']}}}"
    lines = ['set terminal svg size 760,500 dynamic background "white" font "sans,12"', f'set output "{path}.svg"',
             f"set title {quoted(figure['id'] + ': ' + figure['title'])}.\"{below}\"",
             'set datafile separator "\\t"', 'set datafile missing "?"', "set grid lc rgb '#d0d0d0'",
             "set key outside bottom center horizontal Left reverse samplen 3",
             f"set xlabel {quoted(figure.get('x', 'bytes'))}", f"set ylabel {quoted(figure.get('y', ''))}"]
    plots, tsv = [], f'"{path}.tsv"'
    if bars:
        lines += ["set style data histograms", "set style fill pattern border -1", "set xtics rotate by -20", "unset xlabel", "set yrange [0:*]"]
    else:
        log = figure.get("log", "")
        lines += [f"set logscale {a} {2 if a == 'x' else 10}" for a in log]
        lines.append(f"set xtics ({ticks(figure, all_x(curves))}) rotate by -45")
        lines.append("set yrange [0:*]" if "y" not in log else "set autoscale y")
    for i, c in enumerate(shown):
        colour = COLOURS[i % len(COLOURS)]
        if bars:
            style = f"fs pattern {i} lc rgb '{colour}'"
            plots.append(f"{tsv} using {i + 2}:xtic(1) every ::1 title {quoted(c['label'])} {style}")
        else:
            style = f"with linespoints lc rgb '{colour}' dt {i % 5 + 1} lw 1.6 pt {2 * i + 4} ps {1.1 - 0.1 * i:.1f}"
            plots.append(f"{tsv} using 1:{i + 2} every ::1 {style} title {quoted(c['label'])}")
    for i, level in enumerate([] if bars else figure.get("level", [])):
        style = f"with lines lc rgb '#606060' dt {i % 4 + 2} lw 1"
        plots.append(f"{level['y']} {style} title {quoted('paper: ' + level['label'])}")
    for point in [] if bars else figure.get("point", []):
        style = "with points pt 3 ps 1.4 lc rgb '#000000'"
        plots.append(f"'+' using ({point['x']}):({point['y']}) every ::0::0 {style} title {quoted('paper: ' + point['label'])}")
    return "\n".join(lines + ["plot " + ", \\\n  ".join(plots)]) + "\n"


def plot(out, figure, curves):
    path = os.path.join(out, figure["id"])
    if os.path.exists(path + ".svg"):
        os.unlink(path + ".svg")
    if not shutil.which("gnuplot") or not any(curves.values()):
        return
    done = subprocess.run(["gnuplot", "-"], input=gnuplot_script(figure, curves, path), text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"gnuplot, {figure['id']}: {done.stderr}")


def figure(out, figure, curves, judged):
    reasons(figure, judged)
    path = os.path.join(out, figure["id"])
    with open(path + ".txt", "w") as f:
        f.write(table(figure, curves, judged))
    with open(path + ".tsv", "w") as f:
        f.write(data(figure, curves))
    plot(out, figure, curves)
    with open(path + ".json", "w") as f:
        json.dump({"claims": judged, "seconds": round(figure["seconds_real"], 1),
                   "missing": [[c["label"], c["missing"]] for c in figure["curves"] if c.get("missing")]}, f, indent=1)


def summary(figure, judged):
    first = f"{figure['id']}: {figure['title']} ({figure['seconds_real']:.1f} s real)"
    return "\n".join([first] + ["  " + claim_line(c) for c in judged])


# ---- all of them -----------------------------------------------------------------------------------------------------

STYLE = """body{font:15px/1.4 sans-serif;max-width:75em;margin:1em auto;padding:0 1em}table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #bbb;padding:.25em .5em;text-align:left;vertical-align:top}
.missed{font-weight:bold;text-decoration:underline}img{max-width:100%}h2{margin-top:2em}.none{color:#555}"""


def rows(figure, results):
    name = f"<a href='#{figure['id']}'>{figure['id']}</a>"
    cells = []
    for c in results["claims"]:
        verdict = "" if c["met"] is None else "met" if c["met"] else "<span class=missed>missed</span>"
        got = places(c["value"])
        if c["value"] is None:
            got = f"<span class=none>not measured: {html.escape(c['why'])}</span>"
        cells.append([name, html.escape(f"{c['says']} ({c['section']})"), html.escape(c["what"]) + ": " + got,
                      places(c.get("paper")), "" if c["ratio"] is None else f"{c['ratio']:.3f}",
                      html.escape(c.get("target", "")) + " " + verdict, c["kind"]])
    return "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in cells)


def page(every, results, out):
    kinds = " ".join(f"<b>{k}</b>: {v}." for k, v in KINDS.items())
    body = [f"<!doctype html><meta charset=utf-8><title>The papers' figures</title><style>{STYLE}</style>",
            f"<h1>The papers' figures</h1><p>All numbers of ours are <b>{SIMULATED}</b>, on timing models of the papers' "
            f"hardware (simfab); no machine was measured. {kinds} The papers' figures themselves were not at hand: their points are the "
            "numbers that the text states, with the section. A target is the project's, not the paper's.</p><table>",
            "<tr><th>figure<th>the paper says<th>we get<th>paper<th>ratio<th>target<th>kind</tr>"]
    body += [rows(f, results[f["id"]]) for f in every if f["id"] in results]
    body.append("</table>")
    for f in every:
        title = html.escape(f["title"])
        body.append(f"<h2 id='{f['id']}'>{f['id']}: {title}</h2><p>{html.escape(f['paper'])}</p>")
        if f["id"] not in results:
            body.append(f"<p class=none>Not run yet: make figures ONLY={f['id']}</p>")
            continue
        if os.path.exists(os.path.join(out, f["id"] + ".svg")):
            body.append(f"<img src='{f['id']}.svg' alt='{title}'>")
        missing = (f"{html.escape(l)}: {html.escape(w)}" for l, w in results[f["id"]]["missing"])
        body += [f"<p class=none>Not measured: {m}</p>" for m in missing]
        body.append(f"<p>{html.escape(f.get('note', ''))} <a href='{f['id']}.txt'>table</a>, <a href='{f['id']}.tsv'>data</a>; "
                    f"{results[f['id']]['seconds']} s real.</p>")
    return "\n".join(body) + "\n"


def index(out, every):
    """Writes index.html and claims.txt of what the directory has; returns the last words of a run"""
    results = {}
    for f in every:
        try:
            with open(os.path.join(out, f["id"] + ".json")) as file:
                results[f["id"]] = json.load(file)
        except FileNotFoundError:
            pass
    with open(os.path.join(out, "index.html"), "w") as f:
        f.write(page(every, results, out))
    claims = [(f["id"], c) for f in every if f["id"] in results for c in results[f["id"]]["claims"]]
    with open(os.path.join(out, "claims.txt"), "w") as f:
        f.write(f"{SIMULATED}\n" + "".join(f"{name}: {claim_line(c)}\n" for name, c in claims))
    judged = [c["met"] for _, c in claims if c["met"] is not None]
    missing = sum(c["value"] is None for _, c in claims)
    return (f"{os.path.join(out, 'index.html')}: {len(results)} of {len(every)} figures; "
            f"{sum(judged)} of {len(judged)} targets met; {missing} claims not measured; all figures are {SIMULATED}")
