# SPDX-License-Identifier: BSD-3-Clause
"""
From a description to jobs, and from what they print to curves.

A job is a dict that says all that decides its figures: a fabric (topology, model, options) and a command on it. Equal
jobs of several figures run once. `expand` and `points` are pure; `run_batch` starts one fabric and runs the jobs on it.
"""
import json, os, re, shlex, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = {"streams": "bench/figures/streams.c", "kernels": "bench/figures/kernels.c",
            "patterns": "bench/figures/patterns.c", "contend": "bench/figures/contend.c",
            "stencils": "bench/figures/stencils.c",
            "coll": "bench/coll.c", "reliability": "bench/reliability.c"}
number = re.compile(r"[0-9.]+")
FABRIC = ("topology", "model", "model_lines", "opensm_options", "policy")
COMMAND = ("program", "ranks", "mrrun", "env", "rank_env", "ranks_per_host", "tool", "seconds", "class", "change", "script")


def settings(*layers):
    """later layers win; `env` is merged"""
    merged = {}
    for layer in layers:
        merged |= {**layer, "env": {**merged.get("env", {}), **layer.get("env", {})}}
    return merged


def choose(curve, known):
    """of `either`, which says one thing in the settings of several versions, the first that this build has goes into env"""
    for env in curve.get("either", []):
        if not unknown_settings({"env": env}, known):
            return {**curve, "env": {**curve["env"], **env}}
    return {**curve, "env": {**curve["env"], **curve["either"][0]}} if curve.get("either") else curve


def unknown_settings(curve, known):
    """settings of the library that this build does not have"""
    return [n for n in curve.get("env", {}) if n.startswith("MRMPI_") and not known(n)]


def background(curve, x=""):
    """The jobs beside the measured one, which run the same program unless they say otherwise"""
    return [{"program": curve["program"], **{k: v for k, v in b.items() if k != "args"},
             "argv": shlex.split(b["args"].replace("{x}", x))} for b in curve["background"]]


def expand(curve):
    """[(x or None, job)]: one job for all x, or one for each where `pick` takes a number from the output"""
    base = {k: curve[k] for k in FABRIC + COMMAND if curve.get(k)}
    if curve.get("background"):
        base["background"] = background(curve)
    args = curve.get("args", "")
    if "values" in curve:
        return []
    if "pick" not in curve:
        every = curve.get("at", [0])
        words = [w.replace("{x}", str(x)) for w in shlex.split(args) for x in (every if "{x}" in w else [0])]
        return [(None, {**base, "argv": words})]
    cases = curve.get("cases") or {x: str(x) for x in curve.get("at", [0])}
    jobs = []
    for x, case in cases.items():
        own = case if isinstance(case, dict) else {"x": case}
        own_command = {k: v for k, v in own.items() if k not in ("x", "scale")}
        job = {**base, **own_command, "argv": shlex.split(args.replace("{x}", own["x"]))}
        if curve.get("background"):
            job["background"] = background(curve, own["x"])
        jobs.append((float(x) if number.fullmatch(str(x)) else x, job))
    return jobs


def scale_of_case(curve, x):
    cases = curve.get("cases", {}).items()
    case = next((c for k, c in cases if k == x or number.fullmatch(k) and float(k) == x), None)
    return case.get("scale", 1) if isinstance(case, dict) else 1


def points(curve, results):
    """{x: y} from [(x, output)], or what the paper gives"""
    found = {**curve.get("values", {})}
    scale = curve.get("scale", 1)
    for x, text in results:
        if "pick" in curve:
            m = re.findall(curve["pick"], text, re.M)
            if not m:
                raise ValueError(f"no {curve['pick']} in: {text[:200]}")
            found[x] = float(m[-1]) * scale * scale_of_case(curve, x)
            continue
        for f in (line.split() for line in text.splitlines()):
            if len(f) >= curve.get("column", 3) and f[0] == curve["line"]:
                found[float(f[1])] = float(f[curve.get("column", 3) - 1]) * scale
    return found


def programs(job):
    """those to be built for it"""
    return {j["program"] for j in [job, *job.get("background", [])] if not j.get("tool") and not j.get("script")}


def key(job):
    return json.dumps(job, sort_keys=True)


def fabric_key(job):
    return json.dumps({k: job.get(k) for k in (*FABRIC, "script")}, sort_keys=True)


# ---- running ---------------------------------------------------------------------------------------------------------


def write_fabric(job, tmp):
    """The words of `simfab run` for the job's fabric; generated files go to tmp"""
    topology, model = job["topology"], job["model"]
    if "--" in topology:
        path = os.path.join(tmp, "topology.net")
        with open(path, "w") as f:
            subprocess.run(["simfab", "topology", *topology.split()], stdout=f, check=True)
        topology = path
    if job.get("model_lines"):
        with open(os.path.join(ROOT, "etc/models", model + ".yaml")) as f:
            text = f.read()
        for name, value in re.findall(r"^(\w+): (.*)$", job["model_lines"], re.M):  # a key that is there is changed in place
            text, changed = re.subn(rf"^(\s+{name}): .*$", rf"\1: {value}", text, flags=re.M)
            if not changed:
                raise ValueError(f"the model {model} has no {name}")
        rest = re.sub(r"^\w+: .*$\n?", "", job["model_lines"], flags=re.M)
        model = os.path.join(tmp, "model.yaml")
        with open(model, "w") as f:
            f.write(text + "\n" + rest)
    words = ["simfab", "run", "--topology", topology, "--model", model]
    for option in job.get("opensm_options", []):
        words += ["--opensm-option", option]
    return words


fabrics = set()  # those that run


def end_all():
    """`simfab run` takes down what runs on it"""
    for fabric in list(fabrics):
        fabric.terminate()


def run_script(job):
    """A program that brings its own fabrics up"""
    p = subprocess.Popen(["python3", os.path.join(ROOT, job["script"]), *job["argv"]], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    fabrics.add(p)
    out, err = p.communicate()
    fabrics.discard(p)
    return {"out": out, "err": err[-1000:], "rc": p.returncode}


def lines(path):
    try:
        with open(path) as f:
            return sum(1 for _ in f)
    except FileNotFoundError:
        return 0


def run_batch(batch, built, count):
    """Jobs of one fabric, one after the other on it: [{"out", "err", "rc"}]. count is told how many have ended"""
    if batch[0].get("script"):
        results = []
        for job in batch:
            results.append(run_script(job))
            count(len(results))
        return results
    with tempfile.TemporaryDirectory(prefix="figures.") as tmp:
        plan = os.path.join(tmp, "plan.json")
        with open(plan, "w") as f:
            json.dump({"jobs": batch, "programs": built, "tmp": tmp}, f)
        inside = ["python3", os.path.join(ROOT, "bench/figures/inside.py"), plan]
        env = {**os.environ}
        for name in [n for n in env if n.startswith("MRMPI_")]:
            del env[name]  # a description alone decides
        fabric = subprocess.Popen(write_fabric(batch[0], tmp) + ["--"] + inside, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        fabrics.add(fabric)
        while True:
            try:
                _, err = fabric.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                count(lines(plan + ".results"))
        fabrics.discard(fabric)
        count(len(batch))
        results = []
        try:
            with open(plan + ".results") as f:
                results = [json.loads(line) for line in f]
        except FileNotFoundError:
            pass
        return results + [{"out": "", "err": err or "the fabric did not come up", "rc": 1}] * (len(batch) - len(results))
