#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The effect of a policy on the wire: jobs of its classes use the same cable at once, and the share of each is counted.

    share.py --classes '{name: gold, share: 90}; {name: tin, share: 10}' --load gold:1M:4 --load tin:8K:64
    share.py --policy etc/policies/simple.yaml --model sdr-pcix --load urgent:64K:16:2 --load batch:64K:16:2

--load CLASS:SIZE[+SIZE...]:WINDOW[:JOBS]. Each job is a pair of ranks; the senders are on host h1, or on h1 ... hN in
turn (--from N), the receivers on the host after these. The cable (one for each rail) leads to the receivers. With
--trunk it is one between two switches: senders are on one of them, as many receiving hosts on the other. A WINDOW of 0
is a ping-pong of 8 bytes: the time to the receiver is measured, the shortest before the others send and the longest
beside them. The ping-pong is no part of the predicted load. Bytes are counted in the packets that left the switch for
the cable, headers included, from the engine's trace, between two moments of virtual time between which all jobs send.
The service level of a packet gives its class.

As a module: measure(case) -> result; see Case.
"""
import argparse, collections, dataclasses, json, os, re, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
# virtual time that a case takes, and of it until it counts: some hundred rounds of the arbitration tables
TIMES_US = {"sdr-pcix": (40000, 8000), "ddr-connectx": (20000, 4000), "hdr": (4000, 1000)}
PAUSE_US = 40  # of a ping-pong, at most
EPOCH = 1024.0  # what a simulated host's clock has at time 0


@dataclasses.dataclass
class Case:
    policy: str  # its text
    loads: list  # [(class, "64K" or "8+512", window, jobs)]
    model: str = "hdr"
    model_lines: str = ""  # "mtu: 2048": keys changed in place
    rails: int = 1
    senders: int = 1  # hosts
    trunk: bool = False
    batches: str = ""  # windows are waited for: "both" by sender and receiver, "sender" by that alone
    fresh: bool = False  # each message has memory that was not used before
    env: dict = dataclasses.field(default_factory=dict)
    time_us: float = 0
    settle_us: float = 0
    keep_trace: str = ""
    trace_all: bool = False
    predict: str = ""  # what `policy plan --fabric` is told beside what the host's adapters tell it; it is asked if there is something
    flood: list = dataclasses.field(default_factory=list)  # classes whose level of small messages is full, whatever their budget
    load_name: str = ""  # of the load that it is asked for, if it knows one by name
    seconds: int = 300  # real


def model_file(case, tmp):
    with open(os.path.join(ROOT, "etc/models", case.model + ".yaml")) as f:
        text = f.read()
    for name, value in re.findall(r"^\s*(\w+): (.*?)\s*$", case.model_lines, re.M):
        text, changed = re.subn(rf"^(\s+{name}): .*$", rf"\1: {value}", text, flags=re.M)
        if not changed:
            raise ValueError(f"the model {case.model} has no {name}")
    path = os.path.join(tmp, "model.yaml")
    with open(path, "w") as f:
        f.write(text)
    return path


def receivers(case):
    return case.senders if case.trunk else 1


def hosts_of(case):
    return [f"h{i + 1}" for i in range(case.senders + receivers(case))]


def topology_file(case, tmp):
    path = os.path.join(tmp, "topology.net")
    with open(path, "w") as f:
        shape = ["line", "--switches", "2"] if case.trunk else ["star"]
        subprocess.run(["simfab", "topology", *shape, "--hosts", str(len(hosts_of(case))), "--rails", str(case.rails)], stdout=f,
                       check=True)
    return path


def measure(case):
    """{"window": s, "classes": {name: {"share", "wire", "payload", "bytes"}}, "lanes": {vl: percent}, "rates": ...}"""
    os.environ["PATH"] = os.path.join(BUILD, "bin") + ":" + os.environ["PATH"] + ":/usr/sbin:/sbin"
    with tempfile.TemporaryDirectory(prefix="share.") as tmp:
        with open(os.path.join(tmp, "case.json"), "w") as f:
            json.dump(dataclasses.asdict(case), f)
        run = subprocess.run(["timeout", "-k", "10", str(case.seconds), "simfab", "run", "--topology", topology_file(case, tmp),
                              "--model", model_file(case, tmp), "--", sys.executable, os.path.abspath(__file__), "--inside", tmp],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"not measured (status {run.returncode}):\n{run.stdout}{run.stderr}")
        with open(os.path.join(tmp, "result.json")) as f:
            return json.load(f)


# ---- on the fabric -----------------------------------------------------------------------------------------------------


def socket_of(host):
    return f"{os.environ['SIMFAB_DIR']}/fabricd-{host}.sock"


def ctl(host, *words):
    done = subprocess.run(["fabricctl", "--socket", socket_of(host), *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"fabricctl {' '.join(words)} on {host}: {done.stdout}{done.stderr}")
    return done.stdout


def wait_verified(host, daemon, log):
    for _ in range(600):
        done = subprocess.run(["fabricctl", "--socket", socket_of(host), "status"], capture_output=True, text=True)
        if "state: verified" in done.stdout:
            return
        if daemon.poll() is not None:
            break
        time.sleep(0.05)
    with open(log) as f:
        raise RuntimeError(f"fabricd of {host} has no verified policy:\n{done.stdout}{f.read()}")


def start_fabricds(hosts, policy, tmp):
    sim = os.environ["SIMFAB_DIR"]
    daemons = []
    for h in hosts:
        conf = f"state: {tmp}/state-{h}\nsocket: {socket_of(h)}\n"
        if h == hosts[0]:
            conf += (f"opensm:\n  config: {sim}/opensm/opensm.conf\n  pid_file: {sim}/opensm/opensm.pid\n"
                     "  restart: simfab opensm restart\n")
        with open(f"{tmp}/{h}.yaml", "w") as f:
            f.write(conf)
        with open(f"{tmp}/{h}.log", "w") as log:
            daemons.append(subprocess.Popen(["simfab", "exec", "--real-clock", h, "--", "fabricd", "--config", f"{tmp}/{h}.yaml"],
                                            stdout=log, stderr=log))
        for _ in range(600):
            if not subprocess.run(["fabricctl", "--socket", socket_of(h), "status"], capture_output=True).returncode:
                break
            time.sleep(0.05)
        ctl(h, "policy", "apply", policy)
        wait_verified(h, daemons[-1], f"{tmp}/{h}.log")
    return daemons


def levels(plan):
    """{service level: class}, {class: share in percent} of what `policy plan` or `status` prints"""
    of, shares = {}, {}
    for line in plan.splitlines():
        m = re.match(r"\s*- \{name: \"?([^\",]+)\"?, share: ([0-9.]+)", line)
        if not m:
            continue
        shares[m[1]] = float(m[2])
        numbers = re.findall(r"\b(?:sl_\w+|sl): (?:\[([0-9, ]*)\]|([0-9]+))", line)
        for several, one in numbers:
            for n in (several or one).split(","):
                of[int(n)] = m[1]
    return of, shares


def flood(case, hosts, plan):
    """The command that fills the levels of small messages of case.flood from the moment of the start, which is 300 us away"""
    small = dict(re.findall(r"- \{name: \"?([^\",]+)\"?, .*?\bsl_small: (\d+)", plan))
    length = case.time_us or TIMES_US[case.model][0]
    return " && ".join(f'simfab flow add "{hosts[0]} mlx5_0" "{hosts[case.senders]} mlx5_0" sl={small[c]} size=1024 '
                       f"after=300us for={length:.0f}us" for c in case.flood)


def predict(case, host, policy, tmp):
    """What fabricctl says on this host of the case: {"limit", "classes": [...]}"""
    load = case.load_name or os.path.join(tmp, "load.yaml")
    pattern = "many-to-one" if case.senders > 1 else "cable"
    if not case.load_name:
        with open(load, "w") as f:
            for name, sizes, window, jobs in case.loads:
                if window:
                    f.write(f"- {{class: {name}, sizes: [{sizes.replace('+', ', ')}], jobs: {jobs}, pattern: {pattern}}}\n")
    done = subprocess.run(["simfab", "exec", "--real-clock", host, "--", "fabricctl", "policy", "plan", policy, "--json", "--load",
                           load, "--fabric", case.predict], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"fabricctl policy plan: {done.stderr}")
    return json.loads(done.stdout)["loads"][0]


def pause(case, predicted):
    """Options of share_load: a ping-pong sends four fifths of what goes ahead of bulk, or less, if it is known"""
    per_s = [c["ahead_per_s"] for c in predicted["classes"] if c["ahead_per_s"]
             and any(c["name"] == name and not window for name, _, window, _ in case.loads)] if predicted else []
    return ["-p", f"{max(PAUSE_US, 2 * 1e6 / (0.8 * min(per_s))):.1f}"] if per_s else []


PACKET = re.compile(r'"ph":"X","pid":(\d+),"tid":(\d+),"ts":([0-9.]+),"dur":([0-9.]+),"cat":"packet".*?"sl":(\d+),"vl":(\d+),"bytes":(\d+)')
NAME = re.compile(r'"ph":"M","pid":(\d+),"name":"process_name","args":\{"name":"([^"]*)"')


def count(trace, begin_us, end_us):
    """({service level: bytes}, {VL: bytes}, busy microseconds) that left the switch for the receivers' cables"""
    by_sl, by_vl, names, busy = collections.Counter(), collections.Counter(), {}, 0.0
    with open(trace, errors="replace") as f:
        for line in f:
            m = PACKET.search(line)
            if m and names.get(m[1], "").startswith("switch"):
                at = float(m[3])
                if begin_us <= at < end_us:
                    by_sl[int(m[5])] += int(m[7])
                    by_vl[int(m[6])] += int(m[7])
                    busy += float(m[4])
            elif '"process_name"' in line and (n := NAME.search(line)):
                names[n[1]] = n[2]
    return by_sl, by_vl, busy


def percent(counter, all_bytes):
    return {k: 100.0 * v / all_bytes for k, v in sorted(counter.items())} if all_bytes else {}


def inside(tmp):
    with open(os.path.join(tmp, "case.json")) as f:
        case = Case(**json.load(f))
    hosts = hosts_of(case)
    policy = os.path.join(tmp, "policy.yaml")
    with open(policy, "w") as f:
        f.write(case.policy)
    plan = subprocess.run(["fabricctl", "policy", "plan", policy], capture_output=True, text=True)
    daemons = start_fabricds(hosts, policy, tmp)
    try:
        streams = []
        for name, sizes, window, jobs in case.loads:
            for j in range(jobs):
                job = f"{name}.{sizes.replace('+', '-')}.{j}"
                streams.append(f"{job},{sizes},{window}")
                for h in hosts:
                    ctl(h, "job", "set", job, name, "--user", str(os.getuid()))
        status = ctl(hosts[0], "status")
        of, shares = levels(status if "sl_bulk" in status else plan.stdout)
        predicted = predict(case, hosts[0], policy, tmp) if case.predict else None
        result = run_load(case, hosts, streams, flood(case, hosts, status if "sl_bulk" in status else plan.stdout),
                          pause(case, predicted), tmp)
    finally:
        for d in daemons:
            d.terminate()
        for d in daemons:
            d.wait()
    report(case, result, of, shares, plan.stderr, tmp, predicted)


def run_load(case, hosts, streams, first, pauses, tmp):
    time_us, settle_us = (case.time_us or TIMES_US[case.model][0]), (case.settle_us or TIMES_US[case.model][1])
    trace = case.keep_trace or os.path.join(tmp, "trace.json")
    to = hosts[case.senders:]
    links = [] if case.trace_all else ["--links", ("h[" + "".join(h[1:] for h in to) + "]" if len(to) > 1 else to[0]) + " *"]
    subprocess.run(["simfab", "trace", "start", trace, *links, "--limit", "8G"], check=True, capture_output=True)
    argv = ["mrrun", "-n", str(len(streams) * len(hosts)), "--ppn", str(len(streams)), "--hosts", ",".join(hosts),
            os.path.join(BUILD, "tests/fabricd/share_load"), *{"": [], "both": ["-b"], "sender": ["-s"]}[case.batches],
            *["-f"] * case.fresh, *pauses,
            f"{case.senders}:{receivers(case)}", str(time_us), str(settle_us), *streams]
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("MRMPI_")}, **case.env, **({"FIRST": first} if first else {}),
           "MRMPI_FABRICD_SOCKET": os.environ["SIMFAB_DIR"] + "/fabricd-%h.sock"}
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    subprocess.run(["simfab", "trace", "stop"], check=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    m = re.search(r"^window ([0-9.]+) ([0-9.]+)", done.stdout, re.M)
    payload = collections.Counter()
    for job, n in re.findall(r"^stream (\S+) \S+ (\d+)", done.stdout, re.M):
        payload[job.rsplit(".", 2)[0]] += int(n)
    ways = {job.rsplit(".", 2)[0]: {"quiet_us": float(q), "worst_us": float(w), "n": int(n)}
            for job, q, w, n in re.findall(r"^ping (\S+) (\S+) (\S+) (\d+)", done.stdout, re.M)}
    return {"ways": ways, "begin": float(m[1]), "end": float(m[2]), "payload": payload, "trace": trace, "err": done.stderr}


def report(case, run, of, shares, warnings, tmp, predicted):
    by_sl, by_vl, busy = count(run["trace"], 1e6 * (run["begin"] - EPOCH), 1e6 * (run["end"] - EPOCH))
    length, all_bytes, by_class = run["end"] - run["begin"], sum(by_sl.values()), collections.Counter()
    for sl, n in by_sl.items():
        by_class[of.get(sl, f"level {sl}")] += n
    payloads = sum(run["payload"].values())
    result = {
        "window": length, "busy": 1e-6 * busy / length / case.rails, "mbytes_per_s": all_bytes / length / 1e6,
        "classes": {c: {"share": shares.get(c, 0), "wire": 100.0 * by_class[c] / all_bytes if all_bytes else 0,
                        "payload": 100.0 * run["payload"][c] / payloads if payloads else 0,
                        "mbytes_per_s": by_class[c] / length / 1e6} for c in {**shares, **by_class}},
        "lanes": percent(by_vl, all_bytes), "levels": percent(by_sl, all_bytes), "warnings": warnings, "stderr": run["err"], "predicted": predicted,
        "ways": run["ways"],
    }
    with open(os.path.join(tmp, "result.json"), "w") as f:
        json.dump(result, f)


# ---- the command -------------------------------------------------------------------------------------------------------


def policy_text(args):
    if args.policy:
        with open(args.policy) as f:
            return f.read()
    items = [c.strip() for c in args.classes.split(";") if c.strip()]
    name = re.search(r"name: *([^,} ]+)", items[-1])[1]
    top = "".join(line.strip() + "\n" for line in args.top.split(";"))
    return f"version: 1\n{top}classes:\n" + "".join(f"  - {c}\n" for c in items) + f"jobs: {{default: {args.default or name}}}\n"


def load_of(text):
    name, sizes, window, *jobs = text.split(":")
    return name, sizes, int(window), int(jobs[0]) if jobs else 1


def show(result):
    for name, c in result["classes"].items():
        print(f"{name:12s} share {c['share']:6.2f}   wire {c['wire']:6.2f} %   payload {c['payload']:6.2f} %   "
              f"{c['mbytes_per_s']:9.1f} MB/s")
    for c in result["predicted"]["classes"] if result["predicted"] else []:
        print(f"{c['name']:12s} predicted {c['share']:6.2f} %, small messages wait {c['wait_us']} us, "
              f"up to {c['ahead_per_s']} a second")
    for name, w in result["ways"].items():
        print(f"{name:12s} 8 bytes take {w['quiet_us']:.2f} us, and at most {w['worst_us']:.2f} us beside the load (of {w['n']})")
    print("lanes        " + "  ".join(f"VL {k}: {v:.2f}" for k, v in result["lanes"].items()))
    print("levels       " + "  ".join(f"SL {k}: {v:.2f}" for k, v in result["levels"].items()))
    print(f"cable        {result['mbytes_per_s']:.1f} MB/s, busy {100 * result['busy']:.2f} % of {1e3 * result['window']:.2f} ms "
          "(simulated)")
    if result["warnings"] or result["stderr"]:
        print((result["warnings"] + result["stderr"]).rstrip())


def main():
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2])
        return 0
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--policy")
    a.add_argument("--classes", default="", help="a policy's classes, with ';' between them; the last is the default one")
    a.add_argument("--default", default="", help="the default class")
    a.add_argument("--top", default="", help="further lines of the policy, with ';' between them: 'vls: 8; mtu: 2048'")
    a.add_argument("--load", action="append", required=True, type=load_of, help="CLASS:SIZE[+SIZE...]:WINDOW[:JOBS]")
    a.add_argument("--model", default="hdr", choices=list(TIMES_US))
    a.add_argument("--line", action="append", default=[], help="a key of the model changed: 'mtu: 2048'")
    a.add_argument("--rails", type=int, default=1)
    a.add_argument("--from", dest="senders", type=int, default=1, help="so many hosts send to one")
    a.add_argument("--trunk", action="store_true", help="over a cable between switches, to as many hosts as send (up to 4)")
    a.add_argument("--fresh", action="store_true", help="memory that was not used before for each message")
    a.add_argument("--batches", nargs="?", const="both", default="", choices=["both", "sender"],
                   help="windows are waited for and begun anew, by both sides or by the sender alone")
    a.add_argument("--env", action="append", default=[], help="NAME=VALUE for the ranks")
    a.add_argument("--time-ms", type=float, default=0)
    a.add_argument("--settle-ms", type=float, default=0)
    a.add_argument("--trace", default="", help="keep the engine's trace here")
    a.add_argument("--trace-all", action="store_true", help="of all links, not only the receivers'")
    a.add_argument("--predict", default="", help="ask `policy plan`, told this of the fabric: 'mtu=4096'")
    a.add_argument("--json", action="store_true")
    args = a.parse_args()
    if args.trunk and args.predict:
        a.error("--predict knows no cable between switches")
    case = Case(policy=policy_text(args), loads=args.load, model=args.model, model_lines="\n".join(args.line), rails=args.rails,
                senders=args.senders, trunk=args.trunk, batches=args.batches, fresh=args.fresh, env=dict(e.split("=", 1) for e in args.env),
                time_us=1000 * args.time_ms, settle_us=1000 * args.settle_ms, keep_trace=os.path.abspath(args.trace) if args.trace else "",
                trace_all=args.trace_all, predict=args.predict)
    result = measure(case)
    print(json.dumps(result, indent=1)) if args.json else show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
