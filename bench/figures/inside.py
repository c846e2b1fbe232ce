#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Runs the jobs of a plan on the fabric that it was started in (`simfab run`), one after the other; see jobs.py.
"""
import json, os, random, subprocess, sys, time

SECONDS = 300  # real, for a job that does not say


def mpi_command(job, programs):
    argv = [programs[job["program"]], *job["argv"]]
    if job.get("rank_env"):  # {local}: the rank's number on its host
        sets = " ".join(f'{n}="{v}"' for n, v in job["rank_env"].items())
        sets = sets.replace("{local}", f"$(( PMIX_RANK % {job['ranks_per_host']} ))")
        argv = ["sh", "-c", f'{sets} exec "$@"', "sh", *argv]
    return ["mrrun", "-n", str(job["ranks"]), *job.get("mrrun", "").split(), *argv]


def run(argv, job):
    env = {**os.environ, **job.get("env", {})}
    limit = job.get("seconds", SECONDS)
    done = subprocess.run(["timeout", "-k", "10", str(limit), *argv], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace")
    return {"out": done.stdout, "err": done.stderr if done.returncode != 124 else f"not done in {limit} s", "rc": done.returncode}


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
    with open(sys.argv[1] + ".results", "w") as out:
        for job in plan["jobs"]:
            begin = time.monotonic()
            result = run_tool(job) if job.get("tool") else run(mpi_command(job, plan["programs"]), job)
            result["seconds"] = time.monotonic() - begin
            out.write(json.dumps(result) + "\n")
            out.flush()


main()
