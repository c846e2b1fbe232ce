#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Very many messages of random sizes, tags and modes; tests/mpi/soak.c checks each of them.

  soak.py short|long [SEED]               all of the below: some 10^5 messages, and 10^7 of them
  soak.py shm RANKS MESSAGES [SEED]       inside a host
  soak.py faults RANKS MESSAGES [SEED]    between two hosts, while cables break, come back, lose packets or bounce
  soak.py unequal RANKS MESSAGES [SEED]   one rail four times as fast as the other, which reorders; loss of 0, 1 and
                                          10 % on either

Without a seed one is drawn. Messages and faults follow from it, these at virtual times. Most runs repeat to the last
digit; with packets lost at random on a cable that both ranks wait for, some do not.
"""
import os, random, re, subprocess, sys, tempfile, time

from fabric import BUILD, ROOT, Fabric

TOPOLOGY = os.path.join(ROOT, "etc/topologies/two-hosts-two-rails.net")
MODEL = os.path.join(ROOT, "etc/models/hdr.yaml")
CABLES = ["h1 mlx5_0", "h1 mlx5_1", "h2 mlx5_0", "h2 mlx5_1"]
# adapters find a silent link dead in about 30 ms
ENV = {"MRMPI_RC_TIMEOUT": "10", "MRMPI_RC_RETRY": "6"}
FIRST_MS, EVERY_MS = 15.7, 0.15  # when jobs begin, and the mean time from a fault to the next
MOST_FAULTS = 20000  # each takes a command before the job begins


def random_faults(rnd, n):
    """Words of `simfab fault`, in the order of their times."""
    at, words = FIRST_MS, []
    for _ in range(n):
        at += rnd.expovariate(1 / EVERY_MS)
        kind = rnd.choice(("down", "down", "loss", "loss", "loss_out", "bounce"))
        lasts = rnd.uniform(0.02, 1.5)
        if kind == "bounce":
            what = "down for=10us"
        else:
            much = "" if kind == "down" else f"={rnd.uniform(0.001, 0.01):.6f}"
            what = f"{kind}{much} for={lasts:.6f}ms"
        words.append((f'link "{rnd.choice(CABLES)}" 1 {what} at={at:.6f}ms', at))
    return words


def counters(out):
    sums = {}
    for name, n in re.findall(r"(\w+)=(\d+)", " ".join(re.findall(r"counters: (.*)", out))):
        sums[name] = sums.get(name, 0) + int(n)
    return sums


class Tap:
    n = bad = 0

    def result(self, good, text, out=""):
        self.n += 1
        self.bad += not good
        print(f"{'ok' if good else 'not ok'} {self.n} - {text}")
        if not good:
            print("".join(f"# {line}\n" for line in out.splitlines()[-40:]), end="")
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.n}")
        return self.bad != 0


def judge(tap, name, rc, out, seconds):
    said = re.search(r"^soak: (\d+) messages of ([\d.]+) MB, 0 errors, ([\d.]+) s$", out, re.M)
    what = f"exit status {rc}"
    if said:
        what = (f"{said[1]} messages of {said[2]} MB in {seconds:.0f} s, {int(said[1]) / seconds:.0f} a second, "
                f"{float(said[3]):.3f} s by their clock")
    tap.result(rc == 0 and said, f"{name}: {what}", out)


def soak(tap, name, model, faults, ranks, messages, seed, env):
    """Between two hosts. Returns the library's counters, what the fabric says, and what the job said."""
    begin = time.time()
    with Fabric(TOPOLOGY, model) as fabric:
        for words in faults:
            fabric.fault(words)
        argv = [os.path.join(BUILD, "tests/mpi/soak"), str(messages), str(seed)]
        rc, out = fabric.job(ranks, argv, {**ENV, **env}, 3600)
        status = fabric.run("simfab", "status")
    judge(tap, name, rc, out, time.time() - begin)
    return counters(out), status, out


def run_shm(tap, ranks, messages, seed):
    begin = time.time()
    done = subprocess.run(["timeout", "-k", "5", "3600", os.path.join(BUILD, "bin/mrrun"), "-n", str(ranks),
                           os.path.join(BUILD, "tests/mpi/soak"), str(messages), str(seed)], stdin=subprocess.DEVNULL,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    judge(tap, f"{ranks} ranks of a host", done.returncode, done.stdout, time.time() - begin)


def run_faults(tap, ranks, messages, seed):
    """In parts, each with rules of its own for large messages and faults from the same seed."""
    rnd = random.Random(seed)
    for way in ("read", "write"):
        words = [w for w, _ in random_faults(rnd, min(MOST_FAULTS, 50 + messages // 100))]
        c, _, out = soak(tap, f"{ranks} ranks under faults, large messages by {way}", MODEL, words, ranks,
                         messages // 2, seed, {"MRMPI_RNDV": way})
        tap.result(c.get("broken", 0) > 0 and c.get("resent", 0) + c.get("moved", 0) > 0,
                   f"paths broke {c.get('broken', 0)} times and were opened again {c.get('reopened', 0)} times, "
                   f"{c.get('resent', 0)} packets and {c.get('moved', 0)} parts of messages went again", out)


UNEQUAL = """ports:
- {node: "h1 mlx5_1", width: 1}
- {node: "h2 mlx5_1", width: 1}
"""
LOSSES = ((0, ""), (0.01, "h1 mlx5_0"), (0.05, "h2 mlx5_1"), (0.1, "h1 mlx5_1"), (0.1, "h2 mlx5_0"))


def run_unequal(tap, ranks, messages, seed):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as model:
        model.write(open(MODEL).read() + UNEQUAL)
        model.flush()
        for loss, cable in LOSSES:
            faults = [f'link "{cable}" 1 loss={loss}'] if loss else []
            which = "slow" if cable.endswith("1") else "fast"
            where = f"{loss * 100:.0f} % loss on the {which} one" if loss else "no loss"
            c, status, out = soak(tap, f"rails of 4:1, {where}", model.name, faults, ranks, messages, seed,
                                  {"MRMPI_RC_TIMEOUT": "8"})
            dropped = int(re.search(r"^packets:.*, (\d+) dropped$", status, re.M)[1])
            tap.result(c.get("out_of_order", 0) > 0 and (dropped > 10 if loss else dropped == 0),
                       f"{c.get('out_of_order', 0)} packets came out of order, {dropped} were lost", out)


RUNS = {"shm": run_shm, "faults": run_faults, "unequal": run_unequal}
PLANS = {"short": [("shm", 4, 150000), ("faults", 2, 60000), ("faults", 4, 60000), ("unequal", 2, 8000)],
         "long": [("shm", 4, 3000000), ("shm", 7, 1000000), ("faults", 2, 2500000), ("faults", 4, 2500000),
                  ("faults", 8, 500000), ("unequal", 2, 60000), ("unequal", 4, 40000)]}


def main(args):
    try:
        plan = PLANS[args[0]] if args[0] in PLANS else [(args.pop(0), int(args.pop(0)), int(args[0]))]
        seed = int(args[1]) if len(args) > 1 else random.SystemRandom().randrange(1 << 30)
        assert all(what in RUNS for what, _, _ in plan)
    except (IndexError, ValueError, AssertionError):
        sys.exit(__doc__.strip())
    tap = Tap()
    for what, ranks, messages in plan:
        print(f"# soak.py {what} {ranks} {messages} {seed}")
        RUNS[what](tap, ranks, messages, seed)
    return tap.end()


sys.exit(main(sys.argv[1:]))
