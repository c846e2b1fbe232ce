#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Runs the jobs of a plan on the fabric that it was started in (`simfab run`), one after the other; see jobs.py. A job may
have others in its background, which begin with it (gate.h) and end when it has; on a fabric with a policy all have classes.
"""
import contextlib, json, os, random, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import fabricds

SECONDS = 300  # real, for a job that does not say
MEASURED = "measured"  # the job's name for fabricd; those in its background are called background1, ...


def mpi_command(job, programs, name):
    argv = [programs[job["program"]], *job["argv"]]
    if job.get("rank_env"):  # {local}: the rank's number on its host
        sets = " ".join(f'{n}="{v}"' for n, v in job["rank_env"].items())
        sets = sets.replace("{local}", f"$(( PMIX_RANK % {job['ranks_per_host']} ))")
        argv = ["sh", "-c", f'{sets} exec "$@"', "sh", *argv]
    named = ["--job-id", name] if job.get("class") else []
    return ["mrrun", "-n", str(job["ranks"]), *named, *job.get("mrrun", "").split(), *argv]


def run(argv, job, env={}):
    env = {**os.environ, **env, **job.get("env", {})}
    limit = job.get("seconds", SECONDS)
    done = subprocess.run(["timeout", "-k", "10", str(limit), *argv], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace")
    return {"out": done.stdout, "err": done.stderr if done.returncode != 124 else f"not done in {limit} s", "rc": done.returncode}


# ---- several jobs at once --------------------------------------------------------------------------------------------


class Gate:
    """Holds the jobs until all ranks are there; gate.h is the other side"""

    TICK = 0.015625  # all begin at a multiple of it, so that clocks round alike in every run

    def __init__(self, tmp):
        self.path = tempfile.mkdtemp(dir=tmp)
        for name, content in (("ready", ""), ("stop", "\0")):
            with open(self.file(name), "w") as f:
                f.write(content)
        os.mkfifo(self.file("go"))
        self.fifo = os.open(self.file("go"), os.O_RDWR)  # ranks come to wait at once

    def file(self, name):
        return os.path.join(self.path, name)

    def clocks(self):
        with open(self.file("ready")) as f:
            return [float(line) for line in f if line.endswith("\n")]

    def hold(self, ranks, processes):
        """Until so many are there; false if a job has ended before"""
        while len(self.clocks()) < ranks:
            if any(p.poll() is not None for p in processes):
                return False
            time.sleep(0.005)
        return True

    def open(self):
        with open(self.file("at"), "w") as f:
            f.write(f"{(max(self.clocks(), default=0) // self.TICK + 2) * self.TICK:.9f}\n")
        os.close(self.fifo)

    def stop(self):
        with open(self.file("stop"), "r+") as f:
            f.write("\1")


def start(argv, job, env, tmp, name):
    """With what it says in files: nobody reads pipes of several jobs while they wait for each other"""
    limit = str(job.get("seconds", SECONDS))
    said = [open(os.path.join(tmp, f"{name}.{kind}"), "w+", errors="replace") for kind in ("out", "err")]
    p = subprocess.Popen(["timeout", "-k", "10", limit, *argv], env={**os.environ, **env, **job.get("env", {})},
                         stdin=subprocess.DEVNULL, stdout=said[0], stderr=said[1])
    p.said = said
    return p


def ended(p):
    rc = p.wait()
    texts = []
    for f in p.said:
        f.seek(0)
        texts.append(f.read())
        f.close()
    return {"out": texts[0], "err": texts[1] if rc != 124 else "not done in time", "rc": rc}


def failed_early(started):
    """A job ended before all were at the gate: so do the others. What it said counts"""
    first = next(p for p in started if p.poll() is not None)
    for p in started:
        p.terminate()
    result = [r for p, r in [(p, ended(p)) for p in started] if p is first][0]
    return {**result, "rc": result["rc"] or 1, "err": result["err"] or "a job ended before all had begun"}


def run_together(job, programs, env, tmp):
    """
    The result of the measured job; that of one in the background, if it failed. Each connects when the one before is at
    the gate: time does not pass there, so runs repeat.
    """
    gate = Gate(tmp)
    env = {**env, "FIGURES_GATE": gate.path}
    started, ranks = [], 0
    for i, j in enumerate([*job["background"], job], 1):
        name = MEASURED if j is job else f"background{i}"
        started.append(start(mpi_command(j, programs, name), j, env, tmp, name))
        ranks += j["ranks"]
        if not gate.hold(ranks, started):
            return failed_early(started)
    gate.open()
    *others, measured = started
    result = ended(measured)
    gate.stop()
    failed = [r for r in map(ended, others) if r["rc"]]
    return result if result["rc"] or not failed else {**result, "rc": failed[0]["rc"], "err": "in the background: " + failed[0]["err"]}


def set_classes(job, daemons):
    """The environment in which the library asks the daemons"""
    for i, j in enumerate([job, *job.get("background", [])]):
        daemons.set_class(f"background{i}" if i else MEASURED, j["class"])
    env = {"MRMPI_FABRICD_SOCKET": fabricds.socket("%h")}
    if job.get("change"):
        env["FIGURES_CHANGE"] = f"fabricctl --socket {fabricds.socket('$SIM_HOST')} job set {MEASURED} {job['change']} --user {os.getuid()}"
    return env


def run_mpi(job, programs, daemons, tmp):
    env = set_classes(job, daemons) if daemons else {}
    if job.get("background"):
        return run_together(job, programs, env, tmp)
    return run(mpi_command(job, programs, MEASURED), job, env)


# ---- a verbs program -------------------------------------------------------------------------------------------------


def listens(port):
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            if any(l.split()[1].endswith(wanted) and l.split()[3] == "0A" for l in list(f)[1:]):
                return True
    return False


def run_tool(job):
    """A client on h2 and its server on h1, as programs of perftest and the pingpongs are started"""
    while listens(port := random.randrange(10000, 30000)):  # below those that the kernel gives to clients
        pass
    argv = [*job["tool"].split(), *job["argv"], "-p", str(port)]
    with subprocess.Popen(["timeout", "60", "simfab", "exec", "h1", "--", *argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        for _ in range(1000):
            if listens(port) or server.poll() is not None:
                break
            time.sleep(0.01)
        result = run(["simfab", "exec", "h2", "--", *argv, "h1"], job)
        if result["rc"]:
            server.terminate()
    if job["tool"].startswith("ib_"):  # perftest reads the time stamp counter
        said = subprocess.run(["simfab", "status"], capture_output=True, text=True).stdout
        if "left real in 0, not caught in 0" not in said:
            return {"out": "", "err": "simfab cannot catch the time stamp counter here", "rc": 1}
    return result


def main():
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    policy = plan["jobs"][0].get("policy")
    with contextlib.ExitStack() as stack, open(sys.argv[1] + ".results", "w") as out:
        daemons = stack.enter_context(fabricds.Daemons(policy, plan["tmp"])) if policy else None
        for job in plan["jobs"]:
            begin = time.monotonic()
            result = run_tool(job) if job.get("tool") else run_mpi(job, plan["programs"], daemons, plan["tmp"])
            result["seconds"] = time.monotonic() - begin
            out.write(json.dumps(result) + "\n")
            out.flush()


try:
    main()
except fabricds.Failed as e:
    sys.exit(str(e))
