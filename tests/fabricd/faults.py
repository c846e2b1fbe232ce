#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
One fault at each step of `policy apply`, of a rollback, or of a job that joins and leaves a partition: fabricd is killed before and after each changing call, or all that was not
synced is lost as well (power), each call fails, opensm stops or is killed at each. Then ports, opensm's configuration, state, the lock beside the policy, a host that follows and
the status agree within 10 s, on the old policy or on the new one, in every run. TAP, and a table of step and fault.

  faults.py [--short] [--seed N] [--step N] [--fault NAME] [--case NAME] [--minutes N]

--short runs a sample of steps and faults, chosen by the seed. --minutes runs each case for N minutes, in an order
chosen by the seed; the table shows the runs done. --case, --step and --fault repeat a line of the table.
"""
import argparse, errno, os, random, re, shutil, signal, stat, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD") or sys.exit("set BUILD to the build directory")
WITHIN = 10  # seconds after a restart
FAULTS = ["kill-before", "kill-after", "power", "ENOSPC", "EIO", "EROFS", "EMFILE", "opensm stops", "opensm dies"]
SHARES = {"a": (60, 30), "b": (50, 40)}  # of urgent and normal: what the tables differ in
# Another policy; one that restarts opensm; the first one; a job whose host joins a partition. Each also the way back.
CASES = ["other", "lmc", "nothing", "join"]
SHORT = 10  # runs of make check


def pid_of_opensm():
    return int(subprocess.run(["simfab", "opensm", "pid"], capture_output=True, text=True).stdout or 0)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace")
    except OSError as e:
        return f"<{e.strerror}>"


class Fabric:
    """fabricd on h1, whose opensm it manages, and on h2, which follows the files."""

    def __init__(self, case):
        self.dir = tempfile.mkdtemp(prefix="mrmpi-faults.")
        self.case = case
        self.opensm = os.environ["SIMFAB_DIR"] + "/opensm/opensm.conf"
        self.before = self.files()
        self.policy = {name: self.text(name) for name in SHARES}
        for host in (1, 2):
            with open(self.at(f"h{host}.yaml"), "w") as f:
                f.write(f"policy: {self.at('policy.yaml')}\nstate: {self.at(f'state{host}')}\n"
                        f"socket: {self.at(f'h{host}.sock')}\nverify: {{timeout: 3, interval: 1}}\n"
                        "rails: {interval_ms: 100}\n")
                if host == 1:
                    f.write(f"opensm: {{config: {self.opensm}, restart: simfab opensm restart,\n"
                            f"         pid_file: {os.path.dirname(self.opensm)}/opensm.pid}}\n")
        os.mkdir(self.at("faults"))
        self.daemon = {}
        self.seen = {}  # policy by generation: no number is used twice

    def at(self, name):
        return os.path.join(self.dir, name)

    def text(self, name):
        shares = SHARES["a" if self.case == "join" else name]
        with open(TOP + "/etc/policies/simple.yaml") as f:
            text = f.read().replace("share: 60", f"share: {shares[0]}").replace("share: 30", f"share: {shares[1]}")
        if (self.case, name) in (("other", "b"), ("nothing", "a")):  # a partition file that is there with one of the policies
            text = text.replace("- name: urgent", "- name: urgent\n    pkey: 0x11\n    members: h2")
        if self.case == "join":  # the same policy; b: a job of urgent runs on h2
            return text.replace("- name: urgent", "- name: urgent\n    pkey: 0x11\n    job members: yes")
        return text.replace("lmc: 0", "lmc: 1") if self.case == "lmc" and name == "b" else text

    def files(self):
        """Of opensm: its configuration and its partitions."""
        return read(self.opensm) + read(os.path.dirname(self.opensm) + "/partitions.conf")

    def start(self, host):
        log = open(self.at(f"h{host}.log"), "a")
        command = ["fabricd", "--config", self.at(f"h{host}.yaml")]
        if host == 1:  # the shell runs under simfab's preload, and adds ours to it
            script = 'LD_PRELOAD="$1${LD_PRELOAD:+:$LD_PRELOAD}" FAULTS_DIR=$2 exec "${@:3}"'
            command = ["bash", "-c", script, "sh", f"{BUILD}/tests/fabricd/faults.so", self.at("faults")] + command
        self.daemon[host] = subprocess.Popen(["simfab", "exec", "--real-clock", f"h{host}", "--"] + command,
                                             stdout=log, stderr=log)
        wait_for(20, lambda: self.status(host))

    def stop(self, host, how=signal.SIGTERM):
        if self.daemon[host].poll() is None:
            self.daemon[host].send_signal(how)
        self.daemon[host].wait()

    def ctl(self, host, *words, timeout=60):
        return subprocess.run(["fabricctl", "--socket", self.at(f"h{host}.sock"), *words], capture_output=True, text=True,
                              timeout=timeout)

    def status(self, host):
        answer = self.ctl(host, "status")
        return answer.stdout if answer.returncode == 0 else ""

    def write_policy(self, name):
        with open(self.at("policy.new"), "w") as f:
            f.write(self.policy[name])
        os.rename(self.at("policy.new"), self.at("policy.yaml"))

    def plan(self, line):
        for name in ("calls", "plan"):
            if os.path.exists(self.at("faults/" + name)):
                os.unlink(self.at("faults/" + name))
        if line:
            with open(self.at("faults/new"), "w") as f:
                f.write(line)
            os.rename(self.at("faults/new"), self.at("faults/plan"))

    # ---- a power cut: what was not synced is lost ----

    def image(self):
        """What is on disk before the change: entries of directories, contents of files, by inode."""
        self.entries, self.contents = {}, {}
        shutil.rmtree(self.at("faults/durable"), ignore_errors=True)
        os.mkdir(self.at("faults/durable"))
        for top in (self.at("state1"), os.path.dirname(self.opensm), self.dir):
            for path, below, _ in os.walk(top):
                if top == self.dir:
                    below.clear()
                lines = []
                for e in os.scandir(path):
                    st = e.stat(follow_symlinks=False)
                    if not (stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode) or stat.S_ISLNK(st.st_mode)):
                        continue
                    kind = "l" if e.is_symlink() else "d" if e.is_dir() else "f"
                    lines.append((kind, st.st_ino, e.name, os.readlink(e.path) if kind == "l" else ""))
                    if kind == "f":
                        with open(e.path, "rb") as f:
                            self.contents[st.st_ino] = f.read()
                self.entries[os.stat(path).st_ino] = lines

    def durable(self, kind, inode):
        try:
            with open(self.at(f"faults/durable/{kind}-{inode}"), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def cut(self, path, only=None):
        """The directory as it is on disk. only: names that are looked at."""
        inode = os.stat(path).st_ino
        synced = self.durable("d", inode)
        lines = self.entries.get(inode, [])
        if synced is not None:
            lines = [tuple(line.split(" ", 3)) for line in synced.decode().splitlines()]
        lines = [(k, int(i), n, to) for k, i, n, to in lines if not only or re.match(only, n)]
        built = tempfile.mkdtemp(dir=self.dir)
        for kind, i, name, to in lines:
            at = os.path.join(built, name)
            if kind == "l":
                os.symlink(to, at)
            elif kind == "d":
                there = [d for d in self.directories(path) if os.stat(d).st_ino == i]
                if there:  # else it has been removed, which is not on disk: what was in it is not looked at
                    self.cut(there[0])
                    shutil.copytree(there[0], at, symlinks=True)
            else:
                data = self.durable("f", i)
                with open(at, "wb") as f:
                    f.write(data if data is not None else self.contents.get(i, b""))
        for e in list(os.scandir(path)):
            if not only or re.match(only, e.name):
                shutil.rmtree(e.path) if e.is_dir(follow_symlinks=False) else os.unlink(e.path)
        for e in list(os.scandir(built)):
            shutil.move(e.path, os.path.join(path, e.name))
        os.rmdir(built)

    def directories(self, path):
        return [e.path for e in os.scandir(path) if e.is_dir(follow_symlinks=False)]

    def power_cut(self):
        self.cut(self.at("state1"))
        self.cut(os.path.dirname(self.opensm), r"(opensm|partitions)\.conf")
        self.cut(self.dir, r"policy\.(lock|yaml)")

    def calls(self):
        out = []
        for line in read(self.at("faults/calls")).splitlines():
            n, name, path = (line.split(" ", 2) + ["", ""])[:3]
            path = re.sub(r"-[A-Za-z0-9]{6}$", "", path).replace(self.dir, "").replace(os.path.dirname(self.opensm), "opensm")
            out.append(f"{name} {re.sub('[0-9]+([.][0-9]+)?', 'N', path).replace('opensm-N', 'opensm')}".strip())
        return out

    # ---- what is in force, by everybody's word ----

    def ports(self):
        """The name of the policy whose tables a port of the switch and one of h2 have."""
        found = set()
        for words in (["VLArb", "0,1", "2"], ["VLArb", "0"]):
            out = subprocess.run(["simfab", "exec", "h2", "--", "smpquery", "-D", *words], capture_output=True, text=True).stdout
            weights = re.findall(r"WEIGHT:(.*)", out)
            found.add(weights[0].replace(" ", "") if weights else out)
        out = subprocess.run(["simfab", "exec", "h2", "--", "cat", "/sys/class/infiniband/mlx5_0/ports/1/pkeys/0",
                              "/sys/class/infiniband/mlx5_0/ports/1/pkeys/1"], capture_output=True, text=True).stdout
        found.add(out.strip())
        return found

    def disagreement(self, base):
        """None, or what does not agree. base: what ports had for each policy, as measured without a fault."""
        status = self.status(1)
        m = re.search(r"^policy: {generation: (\d+), state: ([a-z ]+),.*$", status, re.M)
        if not m:
            return "no status"
        generation = m.group(1)
        if self.case == "nothing" and m.group(2) == "none":
            return self.disagreement_on_nothing(generation, status, base)
        if m.group(2) != "verified" or "unfinished" in m.group(0):
            return m.group(0)
        text = read(self.at("state1/policy.yaml"))
        name = self.in_force()
        if not name:
            return "state1/policy.yaml is no policy of ours"
        if os.readlink(self.at("state1/current")).split("/")[1].split(".")[0] != generation:
            return f"current is {os.readlink(self.at('state1/current'))}, status says {generation}"
        lock = read(self.at("state1/policy.lock"))
        if f"policy generation={generation} " not in lock:
            return f"the lock is of another generation than {generation}: {lock}"
        if read(self.at("policy.lock")) != lock:
            return "the lock beside the policy is another"
        if os.path.exists(self.at("state1/intent")):
            return "there is an intent"
        if self.ports() != base[name][0]:
            return f"ports have {self.ports()}, {name} is {base[name][0]}"
        if self.files() != base[name][1]:
            return f"opensm's files are not those of {name}"
        for host in (1, 2):
            if not re.search(rf"^policy: {{generation: {generation}, state: verified", self.status(host), re.M):
                return f"h{host}: " + (re.search(r"^policy:.*$", self.status(host), re.M) or ["?"])[0]
        if read(self.at("state2/policy.lock")) != lock:
            return "h2 has another lock"
        return self.litter()

    def disagreement_on_nothing(self, generation, status, base):
        """After a rollback to before the first policy."""
        if os.readlink(self.at("state1/current")).split("/")[1].split(".")[0] != generation:
            return f"current is {os.readlink(self.at('state1/current'))}, status says {generation}"
        if read(self.at("state1/policy.yaml")) or "unfinished" in status or os.path.exists(self.at("state1/intent")):
            return "nothing is in force, and there is a policy, or something to be done"
        if self.files() != self.before:
            return "opensm's files are not those of before"
        if self.ports() != base[""][0]:
            return f"ports have {self.ports()}, before it was {base[''][0]}"
        lock = read(self.at("policy.lock"))
        if f"none generation={generation}\n" not in lock or lock != read(self.at("state1/policy.lock")):
            return f"the lock beside the policy does not say that nothing is in force: {lock}"
        if not re.search(rf"^policy: {{generation: {generation}, state: none", self.status(2), re.M):
            return "h2: " + (re.search(r"^policy:.*$", self.status(2), re.M) or ["?"])[0]
        return self.litter()

    def litter(self):
        left = []
        for top in (os.path.dirname(self.opensm), self.at("state1"), self.dir):
            left += [f for f in os.listdir(top) if ".tmp-" in f]
        return f"left behind: {left}" if left else None

    def generation(self):
        m = re.search(r"^policy: {generation: (\d+)", self.status(1), re.M)
        return int(m.group(1)) if m else -1

    def change(self, name):
        """What is tested: this policy is applied, or the one in force is taken back."""
        if self.case == "join" and name == "b":
            return self.ctl(1, "job", "join", "7", "urgent", "h2", "--user", "0")
        if self.case == "join" and self.in_force() == "b":
            return self.ctl(1, "job", "leave", "7")
        if name:
            return self.ctl(1, "policy", "apply", self.at("policy.yaml"))
        return self.ctl(1, "policy", "rollback", "0")

    def in_force(self):
        text = read(self.at("state1/policy.yaml"))
        if self.case == "join" and text == self.policy["a"]:
            return "b" if '"7"' in self.ctl(1, "job", "joined").stdout else "a"
        return next((n for n in self.policy if self.policy[n] == text), "")


def wait_for(seconds, what):
    end, tries = time.monotonic() + seconds, 10 * seconds
    while not (got := what()):
        tries -= 1
        if time.monotonic() > end and tries < 0:
            return got
        time.sleep(0.05)
    return got


def agree(f, base):
    """None within the time allowed, or what does not agree."""
    why = ["?"]

    def good():
        why[0] = f.disagreement(base)
        return why[0] is None
    return None if wait_for(WITHIN, good) else why[0]


def measure(f):
    """Both policies without a fault: the calls there and back, and what ports and opensm's file have."""
    base, calls = {"": (f.ports(), f.before)}, [[], []]
    f.start(1)
    f.start(2)
    for name in ("a", "", "a", "") if f.case == "nothing" else ("a", "b", "a", "b"):
        if name:
            f.write_policy(name)
        f.plan("count\n")
        answer = f.change(name)
        if answer.returncode:
            sys.exit(f"apply without a fault: {answer.stdout}{answer.stderr}{read(f.at('h1.log'))}")
        found = f.calls()
        f.plan(None)
        base[name] = (f.ports(), f.files())
        calls[name == ("" if f.case == "nothing" else "a")] = found
        why = agree(f, base)
        if why:
            sys.exit(f"without a fault: {why}\n{f.status(1)}\n{f.status(2)}")
    other = base[name]
    if base["a"][0] == other[0] or base["a"][1] == other[1]:
        sys.exit("the policies do not differ in what is compared")
    return base, calls


def one(f, base, fault, step, back):
    """One run: (outcome, problem or None). back: from the case's second policy to its first one, or to none."""
    first, second = ("", "a") if f.case == "nothing" else ("a", "b")
    old, new = (second, first) if back else (first, second)
    if f.in_force() != old:
        f.write_policy(old or "a")
        f.change(old)
        why = agree(f, base)
        if why:
            return "none", f"before the fault: {why}"
    number = f.generation()
    sm = pid_of_opensm()
    line = {"kill-before": f"kill-before {step}", "power": f"kill-before {step}", "kill-after": f"kill-after {step}",
            "opensm stops": f"signal {step} {sm} {int(signal.SIGSTOP)}",
            "opensm dies": f"signal {step} {sm} {int(signal.SIGKILL)}"}.get(fault)
    if new:
        f.write_policy(new)
    f.image()
    f.plan((line or f"fail {step} {getattr(errno, fault)}") + "\n")
    answer = f.change(new)
    hit = not os.path.exists(f.at("faults/plan"))
    f.plan(None)
    if hit and (fault.startswith("kill") or fault == "power"):
        f.daemon[1].wait(timeout=20)
        if fault == "power":
            f.power_cut()
        f.start(1)
    if fault == "opensm stops" and hit and pid_of_opensm() == sm:  # else it was started anew, and this one is gone
        os.kill(sm, signal.SIGCONT)
    if fault == "opensm dies" and hit:
        subprocess.run(["simfab", "opensm", "restart"], capture_output=True)
    why = agree(f, base)
    now = f.in_force()
    if not why and answer.returncode == 0 and now != new:
        why = "it returned 0 and the old policy is in force"
    generation = f.generation()
    if not why and f.case != "join" and f.seen.setdefault(generation, now) != now:
        why = f"generation {generation} was policy {f.seen[generation]} before"
    outcome = ("new" if now == new else "old") + f" ({answer.returncode})" + ("" if hit else " no such step")
    if not why and now == old and generation != number:
        why = f"the old policy is in force, as generation {generation} and not {number}"
    if now:
        f.write_policy(now)
    if why:
        why += f"\n{answer.stdout}{answer.stderr}\n" + "\n".join(read(f.at("h1.log")).splitlines()[-25:])
    return outcome, why


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--short", action="store_true")
    p.add_argument("--seed", type=int, default=random.randrange(10000))
    p.add_argument("--step", type=int)
    p.add_argument("--fault", choices=FAULTS)
    p.add_argument("--case", choices=CASES)
    p.add_argument("--minutes", type=float)
    a = p.parse_args()
    if not os.environ.get("SIMFAB_DIR"):
        os.execv(BUILD + "/bin/simfab", ["simfab", "run", "--topology", TOP + "/etc/topologies/two-hosts-two-rails.net", "--",
                                         sys.executable] + sys.argv + ([] if "--seed" in sys.argv else ["--seed", str(a.seed)]))
    os.environ["PATH"] = BUILD + "/bin:/usr/sbin:/sbin:" + os.environ["PATH"]
    subprocess.run(["simfab", "opensm", "wait"], check=True)
    rng, results = random.Random(a.seed), 0
    bad = 0
    print(f"# seed {a.seed}")
    for case in [a.case] if a.case else ["other"] if a.short else CASES:
        f = Fabric(case)
        try:
            base, calls = measure(f)
            runs = [(fault, step) for step in range(1, max(map(len, calls)) + 2) for fault in FAULTS]
            runs = [r for r in runs if a.fault in (None, r[0]) and a.step in (None, r[1])]
            if a.short:
                quick = [r for r in runs if r[0] != "opensm stops"]
                runs = sorted(rng.sample(quick, SHORT), key=lambda r: r[1])
            if a.minutes:
                rng.shuffle(runs)
            tables = {case: {}, case + ", back": {}}
            print(f"# {case}: {len(calls[0])} changing calls, back {len(calls[1])}; {len(runs)} runs")
            end = time.monotonic() + 60 * (a.minutes or 1e6)
            for fault, step in runs:
                began = time.monotonic()
                turn = rng.randrange(2)
                for back, (what, table) in enumerate(tables.items()):
                    if a.short and back != turn:
                        continue
                    outcome, why = one(f, base, fault, step, back)
                    table[fault, step] = outcome + (" FAILED" if why else "")
                    results += 1
                    bad += report(results, what, calls[back], fault, step, outcome, why, began)
                    began = time.monotonic()
                if bad > 20 or began > end:
                    break
            for back, (what, table) in enumerate(tables.items()):
                print_table(what, calls[back], table)
        finally:
            for host in f.daemon:
                f.stop(host)
            shutil.rmtree(f.dir)
    print(f"1..{results}")
    return bad > 0


def report(number, case, calls, fault, step, outcome, why, began):
    """A line of TAP: whether it has failed."""
    name = calls[step - 1] if step <= len(calls) else "none"
    print(f"{'not ok' if why else 'ok'} {number} - {case}: {fault} at {step}, {name}: {outcome},"
          f" {time.monotonic() - began:.1f} s", flush=True)
    if why:
        print("\n".join("# " + line for line in why.splitlines()), flush=True)
    return bool(why)


def print_table(case, calls, table):
    print(f"# {case}: which policy is in force at the end, and apply's exit status")
    print("# step " + " ".join(f"{fault:>12}" for fault in FAULTS))
    for step, name in enumerate(calls, 1):
        if any((fault, step) in table for fault in FAULTS):
            print(f"# {step:4} " + " ".join(f"{table.get((fault, step), ''):>12}" for fault in FAULTS) + f"  {name}")


if __name__ == "__main__":
    sys.exit(main())
