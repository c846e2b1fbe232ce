#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
A fault at every step of a message between hosts.

Virtual time repeats exactly: the trace of a job without a fault (`simfab trace`) has the port and time of each packet,
and the same job runs again with a fault at that packet. A row of the table is a case (the exchanged messages), a step
(one of its packets), a fault, the end of the packet's way that it hits, and a moment. tests/mpi/steps.c checks
received data.

  steps.py          the choice for `make check`: every case, step and fault, but not each with each
  steps.py --all    every row; "--all 3/8": the third of eight parts, each with some of all
  steps.py list     the names of all rows
  steps.py ROW...   these rows, with the job's output

Rows are called CASE/STEP/FAULT, such as send-65536-read-2/READ_request@h2-mlx5_1#1/down@sender@wire. MRMPI_LINKS names
the kinds of links, as for any job; the limits for silent loss are those of RC (SILENT, SILENT_MS).
"""
import concurrent.futures, json, os, re, sys, tempfile, zlib

from fabric import BUILD, ROOT, Fabric, Failure

TOPOLOGY = os.path.join(ROOT, "etc/topologies/two-hosts-two-rails.net")
MODEL = os.path.join(ROOT, "etc/models/hdr.yaml")
BOOT_MS = 1024000  # what clocks say at time 0 of the fabric
EAGER_MAX = 8192

# ---- cases: what is exchanged --------------------------------------------------------------------------------------

RAILS = {2: {}, 1: {"MRMPI_RAILS_MAX": "1"}}


class Case:
    def __init__(self, name, args, env, rails, ranks=2, before=()):
        self.name, self.args, self.env, self.rails, self.ranks = name, args, {**env, **RAILS[rails]}, rails, ranks
        self.before = list(before)  # faults that have happened already: (words, ms after the exchange began)
        self.traced = None


def make_cases():
    cases = []
    for rails in (2, 1):
        cases.append(Case(f"connect-8-{rails}", ["connect", "8"], {}, rails))
        for size in (8, 1024, EAGER_MAX, 2 * EAGER_MAX): # the last one in two packets
            cases.append(Case(f"send-{size}-{rails}", ["send", str(size)], {}, rails))
        cases.append(Case(f"ssend-8-{rails}", ["ssend", "8"], {}, rails))
        cases.append(Case(f"holes-65536-{rails}", ["holes", "65536"], {}, rails))
        for way in ("read", "write"):
            for size in (EAGER_MAX + 1, 65536, 1 << 20):
                cases.append(Case(f"send-{size}-{way}-{rails}", ["send", str(size)],
                                  {"MRMPI_RNDV": way, "MRMPI_EAGER_PACKETS": "1"}, rails))
        cases.append(Case(f"coll-8-{rails}", ["coll", "8"], {}, rails, ranks=4))
        cases.append(Case(f"coll-65536-{rails}", ["coll", "65536"], {}, rails, ranks=4))
        for size in (65536, 1 << 20):
            cases.append(Case(f"ready-{size}-{rails}", ["ready", str(size)], {}, rails))
        for size in (8, 1 << 20): # as a list, each a stripe or more
            cases.append(Case(f"put-{size}-{rails}", ["put", str(size)], {}, rails))
        cases.append(Case(f"get-65536-{rails}", ["get", "65536"], {}, rails))
    # the words by which both ends agree after a fault, and connecting again
    for way in ("read", "write"):
        for size in (1024, 1 << 20):
            for when in (0.004, 0.03) if size > EAGER_MAX else (0.001,):
                cases.append(Case(f"mend-{size}-{way}-{int(when * 1000)}us", ["send", str(size), "40"],
                                  {"MRMPI_RNDV": way}, 2, before=[('link "h2 mlx5_0" down for=5ms', when)]))
    return cases


# ---- the job -------------------------------------------------------------------------------------------------------


def run_job(case, faults, env, trace=None):
    """The job on a fabric of its own, with faults. Returns its status, what it said, and the fabric's state."""
    with Fabric(TOPOLOGY, MODEL) as fabric:
        if trace:
            fabric.run("simfab", "trace", "start", trace, "--limit", "64M")
        for words in faults:
            fabric.fault(words)
        rc, out = fabric.job(case.ranks, [os.path.join(BUILD, "tests/mpi/steps"), *case.args], {**case.env, **env})
        status = fabric.run("simfab", "status")
        if trace:
            fabric.run("simfab", "trace", "stop")
        return rc, out, status


def said(out):
    """When the exchange began, in ms of the fabric, what it took, and what came after it."""
    m = re.search(r"^began ([\d.]+) took ([\d.]+) after ([\d.]+) errors (\d+)$", out, re.M)
    return (float(m[1]) - BOOT_MS, float(m[2]), float(m[3]), int(m[4])) if m else None


# ---- steps: the packets of the exchange ----------------------------------------------------------------------------


DATAGRAM = 38  # bytes of headers; other packets of the model have less


class Packet:
    def __init__(self, host, e, dest, gap_us, since_gap):
        a = e["args"]
        self.host, self.dest = host, dest  # adapters, "h1 mlx5_0"
        self.us, self.dur = e["ts"], e["dur"]
        datagram = e["name"] == "SEND" and a["bytes"] - a["payload"] >= DATAGRAM
        self.what = ("UD_" if datagram else "") + e["name"].replace(" ", "_")
        self.qp, self.bytes = (a["src_qp"], a["dest_qp"]), a["bytes"]
        self.gap_us, self.since_gap = gap_us, since_gap


def read_trace(path):
    """All packets as they leave the hosts' ports, in order."""
    events = json.load(open(path))
    node = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    sent = [e for e in events if e.get("cat") == "packet" and node[e["pid"]].startswith("h")]
    sent.sort(key=lambda e: e["ts"])
    by_lid = {e["args"]["slid"]: node[e["pid"]] for e in sent}
    nth, last, gap, packets = {}, {}, {}, []
    for e in sent:
        n = node[e["pid"]]
        nth[n] = nth.get(n, 0) + 1
        if e["ts"] - last.get(n, 0) > 1:  # the cable is empty: what leaves from now on can be counted
            gap[n] = (e["ts"] - 0.05, nth[n] - 1)
        last[n] = e["ts"] + e["dur"]
        packets.append(Packet(n, e, by_lid.get(e["args"]["dlid"], "?"), gap[n][0], nth[n] - gap[n][1]))
    return packets


def pick(packets):
    """The first, second, middle, and last two of each kind from each adapter on each connection, named."""
    kinds, steps = {}, []
    for p in packets:
        kinds.setdefault((p.what, p.host, p.qp), []).append(p)
    count = {}
    for (what, host, _), list_ in kinds.items():
        n = len(list_)
        for i in sorted({0, 1, n // 2, n - 2, n - 1} & set(range(n))):
            count[what, host] = count.get((what, host), 0) + 1
            steps.append((f"{what}@{host.replace(' ', '-')}#{count[what, host]}", list_[i]))
    return steps


def trace(case, workdir):
    """Runs the case without the fault; its steps."""
    if case.traced:
        return case.traced
    path = os.path.join(workdir, case.name + ".json")
    faults = []
    if case.before:
        rc, out, _ = run_job(case, [], {})
        if rc or not said(out):
            raise Failure(f"{case.name}: without a fault: exit status {rc}\n{out}")
        faults = [f"{words} at={said(out)[0] + ms:.9f}ms" for words, ms in case.before]
    rc, out, _ = run_job(case, faults, {}, path)
    if rc or not said(out):
        raise Failure(f"{case.name}: without {'a second' if faults else 'a'} fault: exit status {rc}\n{out}")
    begin, took, after, _ = said(out)
    first = begin + case.before[0][1] if case.before else 0 if case.args[0] == "connect" else begin
    end = begin + took + (float(case.args[2]) if case.before else 0)
    packets = [p for p in read_trace(path) if first * 1e3 <= p.us <= end * 1e3]
    os.unlink(path)
    case.traced = pick(packets), faults, begin, took, after
    return case.traced


# ---- faults --------------------------------------------------------------------------------------------------------

# What a fault may cost. A link that loses packets without a word is found dead by its adapter: in 4 ms here
# (MRMPI_RC_TIMEOUT 1 ms, 3 retries). Where no other rail is left it takes a new connection, and a lost request to
# connect is repeated after 100 ms, then 200 ms (MRMPI_CONNECT_TIMEOUT_MS).
SILENT = {"MRMPI_RC_TIMEOUT": "8", "MRMPI_RC_RETRY": "3"}
CABLE_MS, SILENT_MS, CONNECT_MS = 20, 60, 260
LEAF = {"h1 mlx5_0": 1, "h1 mlx5_1": 2, "h2 mlx5_0": 3, "h2 mlx5_1": 4}

# name: words for the cable; silent; rails that it wants; moments ("-" : the packet itself is counted, at no time)
MOMENTS = {"posted": -0.3, "wire": 0, "arrived": 0.3}
FAULTS = {
    "down": ("link {near} down", False, 2, ("posted", "wire", "arrived")),
    "blip": ("link {near} down for=3ms", False, 1, ("posted", "wire", "arrived")),
    "bounce": ("link {near} down for=10us", False, 1, ("wire", "arrived")),
    "mute": ("link {near} loss_out=1", True, 2, ("posted", "arrived")),
    "deaf": ("link {leaf} loss_out=1", True, 2, ("posted", "arrived")),
    "silent": ("link {near} loss=1", True, 2, ("wire",)),
    "pause": ("link {near} loss=1 for=2ms", True, 1, ("wire",)),
    "drop": ("link {near} drop={n}", True, 1, ("-",)),
    "die": ("node {near} die", False, 2, ("posted", "wire", "arrived")),
}
ENDS = ("sender", "receiver")


class Row:
    def __init__(self, case, step, packet, fault, end, moment):
        self.case, self.packet, self.fault, self.end, self.moment = case, packet, fault, end, moment
        self.name = f"{case.name}/{step}/{fault}@{end}@{moment}"

    def words(self):
        p, (words, _, _, _) = self.packet, FAULTS[self.fault]
        near = p.host if self.end == "sender" else p.dest
        words = words.format(near=f'"{near}" 1' if words.startswith("link") else f'"{near}"',
                             leaf=f"leaf1 {LEAF[near]}", n=p.since_gap)
        at = p.gap_us if self.moment == "-" else p.us + p.dur * (self.moment != "posted") + MOMENTS[self.moment]
        return f"{words} at={at * 1e6:.0f}ps"

    def allowed_ms(self):
        _, took, after = self.case.traced[2:]
        connects = self.case.args[0] == "connect" or self.case.before or self.case.rails == 1
        extra = CONNECT_MS if connects else SILENT_MS if FAULTS[self.fault][1] else CABLE_MS
        return took + extra, after + extra

    def run(self):
        """None, or what is wrong."""
        env = SILENT if FAULTS[self.fault][1] else {}
        rc, out, status = run_job(self.case, self.case.traced[1] + [self.words()], env)
        self.out = out
        if rc or not said(out):
            return f"exit status {rc}"
        dropped = re.search(r"^packets:.*, (\d+) dropped$", status, re.M)
        if self.moment == "-" and (not dropped or dropped[1] == "0"):
            return "no packet was dropped"
        self.took, self.after = said(out)[1:3]
        most, most_after = self.allowed_ms()
        if self.took > most:
            return f"the exchange took {self.took:.3f} ms, {most:.3f} are allowed"
        if self.after > most_after:
            return f"what came after it took {self.after:.3f} ms, {most_after:.3f} are allowed"
        return None


def make_rows(case):
    rows = []
    for step, p in case.traced[0]:
        for fault, (_, _, rails, moments) in FAULTS.items():
            if rails > case.rails or (rails > 1 and case.before):
                continue  # nothing would be left
            for end in ENDS:
                if fault == "drop" and end == "receiver" or end == "receiver" and p.dest == "?":
                    continue
                for moment in moments:
                    rows.append(Row(case, step, p, fault, end, moment))
    return rows


# ---- the run -------------------------------------------------------------------------------------------------------

JOBS = 2  # at a time
SOME = 2  # rows of each case in `make check`, and these
ALWAYS = ["connect-8-1/UD_SEND@h1-mlx5_0#1/blip@receiver@arrived"]  # the last port goes when the first request has come


def choose(rows, most, seen):
    """
    So many rows of a case, so that in all cases together every step, every fault, each of them at each, and every end
    and moment of a fault has its turn. seen: how many rows there are of each so far.
    """
    parts = [(r.packet.what, r.fault, (r.packet.what, r.fault), (r.fault, r.end, r.moment)) for r in rows]
    left = sorted(range(len(rows)), key=lambda i: i * 7919 % len(rows))
    chosen = [i for i in left if rows[i].name in ALWAYS]
    for _ in range(min(most, len(rows))):
        best = min(left, key=lambda i: sum(seen.get(part, 0) for part in parts[i]))
        left.remove(best)
        chosen.append(best)
        for part in parts[best]:
            seen[part] = seen.get(part, 0) + 1
    return [rows[i] for i in sorted(set(chosen))]


def command(name):
    return f"BUILD={BUILD} bash tests/mpi/steps.sh {name}"


class Tap:
    def __init__(self):
        self.n = self.bad = 0

    def group(self, case, results):
        wrong = [(r, why) for r, why in results if why]
        slowest = max((r.took - case.traced[3] for r, why in results if not why), default=0)
        self.n += 1
        self.bad += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {self.n} - {case.name}: {len(results)} faults at "
              f"{len(case.traced[0])} steps, the exchange took {case.traced[3]:.3f} ms and up to {slowest:.3f} ms "
              "longer")
        for r, why in wrong:
            print(f"# {r.name}: {why}")
            print(f"#   simfab fault {r.words()}")
            print(f"#   {command(r.name)}")
        for r, _ in wrong[:3]:
            print("\n".join("#   | " + line for line in r.out.splitlines()[-12:]))
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.n}")
        return 1 if self.bad else 0


def run_row(row):
    try:
        return row, row.run()
    except Failure as e:
        row.out = ""
        return row, str(e)


def run_named(cases, names, pool, workdir):
    tap = Tap()
    for name in names:
        case = next((c for c in cases if c.name == name.split("/")[0]), None)
        if not case:
            sys.exit(f"steps.py: there is no case {name.split('/')[0]}: {' '.join(c.name for c in cases)}")
        trace(case, workdir)
        rows = [r for r in make_rows(case) if r.name == name or r.name.startswith(name + "/")]
        if not rows:
            sys.exit(f"steps.py: there is no row {name}; `steps.py list` names all")
        results = list(pool.map(run_row, rows))
        for r, _ in results if len(rows) == 1 else []:
            print(f"# simfab fault {r.words()}\n" + "".join(f"# {line}\n" for line in r.out.splitlines()), end="")
        tap.group(case, results)
    return tap.end()


def main(args):
    cases = make_cases()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool, tempfile.TemporaryDirectory() as workdir:
        if args and args[0] not in ("--all", "list"):
            return run_named(cases, args, pool, workdir)
        list(pool.map(lambda c: trace(c, workdir), cases))
        part, parts = map(int, args[1].split("/")) if len(args) > 1 else (1, 1)
        tap, seen = Tap(), {}
        for case in cases:
            rows = make_rows(case)
            if args and args[0] == "list":
                print("\n".join(r.name for r in rows))
                continue
            rows = [r for r in rows if zlib.crc32(r.name.encode()) % parts == part - 1] if args else choose(rows, SOME, seen)
            tap.group(case, list(pool.map(run_row, rows)))
        return 0 if args and args[0] == "list" else tap.end()


sys.exit(main(sys.argv[1:]))
